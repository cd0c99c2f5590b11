/* Where the ranks of a communicator are: on which node, and which of the node's ranks they are. */
#ifndef SWP_TOPOLOGY_H
#define SWP_TOPOLOGY_H

#include "arena.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

enum topology_order {
  TOPOLOGY_BLOCK,  /* rank r is on node r / ppn */
  TOPOLOGY_CYCLIC, /* rank r is on node r mod nodes */
  TOPOLOGY_LISTED  /* anything else: O(P) memory, once for a communicator */
};

/* MPI_Ibarrier here: not tried yet, right, or complete before all ranks have called it. */
enum topology_ibarrier { IBARRIER_UNKNOWN, IBARRIER_RIGHT, IBARRIER_EARLY };

/* Nodes are numbered by their lowest rank; the ranks of a node by increasing rank. The same on every rank but
   for `oversubscribed` and `socket_of`. */
struct topology {
  int procs, nodes;
  int ppn;             /* the most ranks on one node */
  int sockets;         /* the most of one node; SOCKET_UNKNOWN of imposed nodes too */
  bool shared_memory;  /* all ranks share memory, whatever nodes are imposed */
  bool alone;          /* no other rank of the job can be in another communicator: all are in this one */
  bool without_world;  /* MPI_Init was not called, or MPI_Finalize was, on some rank: a session */
  bool oversubscribed; /* this rank's machine has more ranks than cores that they may use */
  enum topology_ibarrier ibarrier;
  enum topology_order order;
  int *node_of, *local_of;       /* listed: per rank */
  int *node_begins, *node_ranks; /* listed: the ranks of node n are node_ranks[node_begins[n] …] */
  int *socket_of;                /* per place on this rank's node; NULL where any rank's is unknown */
  struct arena *arena;           /* that the ranks share where they share memory */
  struct arena *node_arena;      /* that the ranks of each node share */
  struct topology *imposed;      /* of the machine's: the first one of its ranks with imposed nodes */
  struct topology *next;         /* of those, as hints ask for them */
  int asked_ppn, asked_placement;
  atomic_int holders;
};

/*
 * Collective on own, a duplicate of comm. With ppn 0 the machine's own nodes, the groups of ranks that share
 * memory; else nodes of ppn ranks as swp_hints says, equal on all ranks. Each is found once per communicator
 * and kept with an attribute of comm. swp_topology_release must be called. Errors, agreed: SWP_ERR_MEMORY,
 * SWP_ERR_MPI.
 */
int swp_topology_find(MPI_Comm comm, MPI_Comm own, int ppn, int placement, struct topology **topology);

/* Adds a holder of the topology. Each must call swp_topology_release. Local. */
struct topology *swp_topology_hold(struct topology *topology);

/* NULL is allowed. Local. */
void swp_topology_release(struct topology *topology);

/* The node of a rank, and its place among the ranks of that node. */
int swp_topology_node(const struct topology *topology, int rank);
int swp_topology_local(const struct topology *topology, int rank);

/* The ranks on a node, on the one with the fewest, and the local-th of a node. */
int swp_topology_node_size(const struct topology *topology, int node);
int swp_topology_least(const struct topology *topology);
int swp_topology_rank(const struct topology *topology, int node, int local);

/* Returns whether the sockets of all ranks are known; returns that of a rank on this rank's node. */
bool swp_topology_has_sockets(const struct topology *topology);
int swp_topology_socket(const struct topology *topology, int rank);

#endif
