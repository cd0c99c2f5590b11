/* Reads the caller's description of a collective for this rank. */
#ifndef SWP_COLLECTIVE_PROBLEM_H
#define SWP_COLLECTIVE_PROBLEM_H

#include "kinds.h"

/* Reads the problem into the plan's call, and the features that MPI makes equal on every rank; those of an
   alltoallv's bytes are this rank's own. Local. Errors: SWP_ERR_ARGUMENT, _MEMORY, _MPI, _TOO_LARGE. */
int swp_collective_begin(struct collective_plan *collective, const struct swp_collective *problem);

/* Makes these equal, too. Collective. Errors, agreed: SWP_ERR_MISMATCH, _MPI. */
int swp_collective_agree(const struct swp_plan *plan, struct features *features);

#endif
