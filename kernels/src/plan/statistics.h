/* The statistics of plans: this rank's counts, reduced over all ranks. */
#ifndef SWP_STATISTICS_H
#define SWP_STATISTICS_H

#include "kinds.h"

/* Finds the statistics of an exchange's problem, and the features that follow for all ranks; checks that
   every send has its receive. Collective. Errors: SWP_ERR_MISMATCH, _MPI. */
int swp_statistics_find(struct exchange_plan *exchange);

/* Finds the statistics of the stages of an exchange's method. Collective. Errors: SWP_ERR_MEMORY, _MPI. */
int swp_statistics_gather(struct exchange_plan *exchange);

/* Sets the statistics of ranks, nodes and memory, which all plans have. Local. */
void swp_statistics_describe_place(struct swp_plan *plan);

#endif
