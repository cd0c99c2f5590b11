/* Plans that are made to compare methods, and forgotten: of exchanges and collectives alike. */
#ifndef SWP_TRIAL_H
#define SWP_TRIAL_H

#include "kinds.h"

/*
 * Makes *trial a plan for the problem of `plan` by another method, on the same communicator; it must not
 * outlive `plan`. The estimate, of an exchange, may be NULL. Collective. Free with swp_plan_free. Errors,
 * agreed: those of planning; *trial is NULL then.
 */
int swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, const struct estimate *estimate,
                   struct swp_plan **trial);

/* Buffers for executions while the application's are not known yet. */
struct buffers {
  void *send_memory, *recv_memory;
  void *send, *recv; /* for the call: an address in the memory, or MPI_IN_PLACE */
};

/* Finds whether this rank sends in place. Collective. Errors: SWP_ERR_MPI. */
int swp_buffers_agree(const struct swp_plan *plan, bool *in_place);

/* Zeroed buffers for the plan's problem; swp_buffers_free must be called in any case. Local. Errors:
   SWP_ERR_MEMORY. */
int swp_buffers_make(const struct swp_plan *plan, bool in_place, struct buffers *buffers);

void swp_buffers_free(struct buffers *buffers);

/* Errors: local to this rank, as for executions. */
int swp_trial_execute(struct swp_plan *trial, const struct buffers *buffers);

#endif
