/* Reads the caller's description of a collective for this rank. */
#ifndef SWP_COLLECTIVE_PROBLEM_H
#define SWP_COLLECTIVE_PROBLEM_H

#include "kinds.h"

/* Reads the problem into the plan's call, and the features that MPI makes equal on every rank; those of an
   alltoallv's bytes are this rank's own. Local. Errors: SWP_ERR_ARGUMENT, _MEMORY, _MPI, _TOO_LARGE. */
int swp_collective_begin(struct collective_plan *collective, const struct swp_collective *problem);

/* Makes these equal, too, for the plan's call or another one. Collective. Errors, agreed: SWP_ERR_MISMATCH (a
   rank expects other bytes of one than that sends it), _MPI. */
int swp_collective_agree(const struct swp_plan *plan, const struct call *call, struct features *features);

#endif
