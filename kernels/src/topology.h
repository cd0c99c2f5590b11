/* Where the ranks of a communicator are: on which node, and which of the node's ranks they are. */
#ifndef SWP_TOPOLOGY_H
#define SWP_TOPOLOGY_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

enum topology_order {
  TOPOLOGY_BLOCK,  /* rank r is on node r / ppn */
  TOPOLOGY_CYCLIC, /* rank r is on node r mod nodes */
  TOPOLOGY_LISTED  /* anything else: O(P) memory, once for a communicator */
};

/* Nodes are numbered by their lowest rank; the ranks of a node by increasing rank. The same on every rank but
   for `oversubscribed`. */
struct topology {
  int procs, nodes;
  int ppn;             /* the most ranks on one node */
  bool shared_memory;  /* all ranks share memory, whatever nodes are imposed */
  bool oversubscribed; /* this rank's machine has more ranks than cores that they may use */
  enum topology_order order;
  int *node_of, *local_of;       /* listed: per rank */
  int *node_begins, *node_ranks; /* listed: the ranks of node n are node_ranks[node_begins[n] …] */
  atomic_int holders;
};

/*
 * Collective on own, a duplicate of comm. With ppn 0 the machine's own nodes, the groups of ranks that share
 * memory, found once per communicator and kept as an attribute of comm; else nodes of ppn ranks as swp_hints
 * says. swp_topology_release is due. Errors, agreed: SWP_ERR_MEMORY, SWP_ERR_MPI.
 */
int swp_topology_find(MPI_Comm comm, MPI_Comm own, int ppn, int placement, struct topology **topology);

/* NULL is allowed. Local. */
void swp_topology_release(struct topology *topology);

/* The node of a rank, and its place among the ranks of that node. */
int swp_topology_node(const struct topology *topology, int rank);
int swp_topology_local(const struct topology *topology, int rank);

/* The ranks on a node, and the local-th of them. */
int swp_topology_node_size(const struct topology *topology, int node);
int swp_topology_rank(const struct topology *topology, int node, int local);

#endif
