/* Collectives: reading a problem, choosing a method for it, executing. */
#ifndef SWP_COLLECTIVE_H
#define SWP_COLLECTIVE_H

#include "call.h"
#include "trial.h"

/* Makes plan->call, and sets the features that MPI makes equal on every rank. Local. swp_collective_end is
   due. Errors: SWP_ERR_ARGUMENT, _MEMORY, _MPI, _TOO_LARGE. */
int swp_collective_begin(struct swp_plan *plan, const struct swp_collective *problem);

/* Sets what features tell of a reduction's operation, or of MPI_OP_NULL. Local. Errors: SWP_ERR_MPI. */
int swp_collective_read_op(MPI_Op op, struct features *features);

/* Finds the methods that the plan may use and takes the one for its call. Collective. Errors, agreed:
   SWP_ERR_METHOD, _NOT_APPLICABLE, _TABLE, _MEMORY, _MPI. */
int swp_collective_choose(struct swp_plan *plan, const char *method);

/* Whether calls of it do not wait for each other, as only one rank has everybody's data. */
bool swp_collective_is_rooted(enum swp_operation operation);

/* As swp_buffers_make, which calls it. */
int swp_collective_buffers(const struct swp_plan *plan, struct buffers *buffers);

void swp_collective_end(struct swp_plan *plan);

#endif
