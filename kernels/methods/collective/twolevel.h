/* Within the nodes and between them: the result of planning, and the procedure that has its own file. */
#ifndef SWP_TWOLEVEL_H
#define SWP_TWOLEVEL_H

#include "call.h"

struct twolevel {
  MPI_Comm node, peers; /* the ranks of the node; the ranks with this local number on each node, by node */
  int number, local;    /* of the node, and of this rank on it */
  int size, least;      /* ranks on the node, and on the node with the fewest */
  bool in_order;        /* blocks by node and local number are blocks by rank */
};

int swp_twolevel_allgatherv(struct swp_plan *plan, const void *send, void *recv);
int64_t swp_twolevel_allgatherv_scratch_bytes(const struct swp_plan *plan);

#endif
