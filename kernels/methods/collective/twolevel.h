/* Within the nodes and between them: the result of planning, and the procedure that has its own file. */
#ifndef SWP_TWOLEVEL_H
#define SWP_TWOLEVEL_H

#include "board_steps.h"
#include "call.h"
#include "group.h"

struct twolevel {
  MPI_Comm node, peers; /* the ranks of the node; the ranks with this local number on each node, by node */
  int number, local;    /* of the node, and of this rank on it */
  int size, least;      /* ranks on the node, and on the node with the fewest */
  bool in_order;        /* blocks by node and local number are blocks by rank */
  bool by_memory;       /* on the node, by boards; else by MPI */
  struct boards boards;
  uint64_t *finished; /* the boards' */
  int64_t *spans;     /* by memory: room for those of a call, see twolevel_leaders.c */

  /* With leaders=N, else 0: see twolevel_leaders.c. */
  int leaders, group_size;
  int share;  /* of the leader of this rank's group */
  bool leads; /* the group */
  MPI_Comm group;
};

/* The parameters. */
enum { NODE, LEADERS };

/* What spans of so many ranks need, of what comes in and goes out. */
enum { SPANS = 4 };

/* What `node=shared` needs. Collective; errors, agreed on the node: as swp_arena_take. */
int swp_node_plan(struct swp_plan *plan);
void swp_node_free(struct swp_plan *plan);

/*
 * Collectives of the node's ranks; `leader` is a local number. `blocks` are those of all of them at the
 * leader, and elsewhere this rank's; the leader's own stays in its place. The reduction is that of the call,
 * of the items of a side. `count` may exceed an int by the node's memory only.
 * Errors: SWP_ERR_MPI.
 */
int swp_node_bcast(struct swp_plan *plan, int leader, char *bytes, int64_t count);
int swp_node_gather(struct swp_plan *plan, int leader, char *blocks);
int swp_node_scatter(struct swp_plan *plan, int leader, char *blocks);
int swp_node_reduce(struct swp_plan *plan, int leader, const struct side *side, const void *send, void *recv);

/* leaders=N: where the ranks of nodes make as many groups, and for an alltoall; what it needs (collective,
   errors agreed: SWP_ERR_MPI, SWP_ERR_MEMORY); and its procedures. */
const char *swp_leaders_applicable(const struct spec *spec, const struct features *features);
const char *swp_leaders_alltoall_applicable(const struct spec *spec, const struct features *features);
int swp_leaders_plan(struct swp_plan *plan);
int64_t swp_leaders_bcast_scratch_bytes(const struct swp_plan *plan);
int64_t swp_leaders_allreduce_scratch_bytes(const struct swp_plan *plan);
int64_t swp_leaders_allgather_scratch_bytes(const struct swp_plan *plan);
int64_t swp_leaders_alltoall_scratch_bytes(const struct swp_plan *plan);
int swp_leaders_bcast(struct swp_plan *plan, void *recv);
int swp_leaders_allreduce(struct swp_plan *plan, const void *send, void *recv);
int swp_leaders_allgather(struct swp_plan *plan, const void *send, void *recv);
int swp_leaders_alltoall(struct swp_plan *plan, const void *send, void *recv);

/* The model's estimate on a node, by what the spec has there; and with its leaders, negative where these
   cannot be. */
double swp_node_s(const struct spec *spec, enum swp_operation operation, const struct group *node, double m);
double swp_leaders_s(const struct spec *spec, enum swp_operation operation, const struct group *group,
                     double m);

int swp_twolevel_allgatherv(struct swp_plan *plan, const void *send, void *recv);
int64_t swp_twolevel_allgatherv_scratch_bytes(const struct swp_plan *plan);

#endif
