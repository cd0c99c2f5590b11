/* bruck of two levels, as far as the method needs it: see bruck_levels.c. */
#ifndef SWP_BRUCK_H
#define SWP_BRUCK_H

#include "call.h"
#include "group.h"

/* What levels=2 keeps; its communicator must be given back also after an error. Collective. Errors, agreed:
   SWP_ERR_MPI, SWP_ERR_MEMORY. */
struct levels {
  MPI_Comm node;
};

int swp_levels_plan(struct swp_plan *plan);
void swp_levels_free(struct swp_plan *plan);

/* The allgather. */
const char *swp_levels_applicable(const struct features *features);
int64_t swp_levels_scratch_bytes(const struct swp_plan *plan);
int swp_levels_allgather(struct swp_plan *plan, const void *send, void *recv);

/* The model's estimate of it; negative where nodes have different numbers of ranks. */
double swp_levels_s(const struct group *group, double m);

#endif
