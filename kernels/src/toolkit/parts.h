/*
 * Communicators of some of a plan's ranks. Plans that share their communicator (SWP_SAME_COMM) share these
 * too: there are few. They then live as long as that communicator.
 */
#ifndef SWP_PARTS_H
#define SWP_PARTS_H

#include "plan.h"

/* The name of a division of the ranks, by which it is found again: equal on all ranks, and only for the same
   division. */
struct division {
  const char *name; /* static */
  int64_t first, second;
};

/* The ranks of this one's color, by order. Collective on the plan's ranks. Errors, agreed: SWP_ERR_MEMORY,
   SWP_ERR_MPI. */
int swp_part_take(struct swp_plan *plan, const struct division *division, int color, int order,
                  MPI_Comm *part);

/* The ranks of this one's node, likewise. */
int swp_part_take_node(struct swp_plan *plan, MPI_Comm *part);

/* Ends the plan's use of the part. MPI_COMM_NULL is allowed. Collective on the part. */
void swp_part_give(const struct swp_plan *plan, MPI_Comm *part);

#endif
