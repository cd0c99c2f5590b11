/* Plans that are made to compare methods, and forgotten: of exchanges and collectives alike. */
#ifndef SWP_TRIAL_H
#define SWP_TRIAL_H

#include "kinds.h"

/*
 * Makes *trial a plan of what `plan` is of by another method, on its communicator, of the same problem; it
 * must not outlive `plan`. The estimate, of an exchange, may be NULL. Collective. Free with swp_plan_free.
 * Errors, agreed: those of planning; *trial is NULL then.
 */
int swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, const struct estimate *estimate,
                   struct swp_plan **trial);

/* What an execution reads and writes where the application's buffers are not known yet. */
struct buffers {
  void *send_memory, *recv_memory;
  void *send, *recv; /* for the call: an address in the memory, or MPI_IN_PLACE */
};

/* Zeroed buffers for the plan's problem; swp_buffers_free is due in any case. Local. Errors: SWP_ERR_MEMORY.
 */
int swp_buffers_make(const struct swp_plan *plan, struct buffers *buffers);

void swp_buffers_free(struct buffers *buffers);

/* Errors: this rank's, as of executions. */
int swp_trial_execute(struct swp_plan *trial, const struct buffers *buffers);

#endif
