#include "trial.h"

#include "choices.h"
#include "collective.h"

static int plan_exchange(const struct swp_plan *plan, struct swp_plan *trial) {
  const struct method *method = trial->spec.method;
  trial->method_state = NULL;
  trial->stages = NULL;
  trial->nstages = 0;
  trial->start = method->start;
  trial->advance = method->advance;
  trial->has_self = plan->problem.self.bytes > 0;
  int error = swp_agree(plan->comm, method->plan(trial));
  trial->forwards = trial->nstages > 1;
  return error;
}

/* With the plan's call, and scratch of its own. What it divides the communicator into goes with it. */
static int plan_collective(const struct swp_plan *plan, struct swp_plan *trial) {
  trial->choices = NULL;
  trial->same_comm = false;
  trial->call = swp_allocate(1, sizeof *trial->call, NULL);
  int error = swp_agree(plan->comm, trial->call != NULL ? SWP_SUCCESS : swp_plan_no_memory(trial));
  if (error != SWP_SUCCESS)
    return error;
  *trial->call = *plan->call;
  trial->call->scratch = NULL;
  trial->call->scratch_bytes = 0;
  return swp_collective_choose(trial, trial->spec.text);
}

int swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, struct estimate *estimate,
                   struct swp_plan *trial) {
  *trial = *plan;
  trial->spec = *spec;
  trial->estimate = estimate;
  return swp_is_collective(plan->operation) ? plan_collective(plan, trial) : plan_exchange(plan, trial);
}

int swp_buffers_make(const struct swp_plan *plan, struct buffers *buffers) {
  int64_t send_bytes, recv_bytes;
  *buffers = (struct buffers){0};
  if (swp_is_collective(plan->operation))
    return swp_collective_buffers(plan, buffers);
  swp_problem_spans(&plan->problem, &send_bytes, &recv_bytes);
  buffers->send = buffers->send_memory = swp_allocate((size_t)send_bytes, 1, NULL);
  buffers->recv = buffers->recv_memory = swp_allocate((size_t)recv_bytes, 1, NULL);
  if (buffers->send != NULL && buffers->recv != NULL)
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_MEMORY, "no memory to measure an exchange of %lld and %lld bytes",
                  (long long)send_bytes, (long long)recv_bytes);
}

void swp_buffers_free(struct buffers *buffers) {
  swp_release(buffers->send_memory);
  swp_release(buffers->recv_memory);
}

int swp_trial_execute(struct swp_plan *trial, const struct buffers *buffers) {
  return swp_is_collective(trial->operation) ? swp_collective_execute(trial, buffers->send, buffers->recv)
                                             : swp_exchange_execute(trial, buffers->send, buffers->recv);
}

void swp_trial_free(struct swp_plan *trial) {
  if (swp_is_collective(trial->operation)) {
    swp_choices_free(trial);
    if (trial->call != NULL)
      swp_release(trial->call->scratch);
    swp_release(trial->call);
    trial->call = NULL;
    trial->choices = NULL;
    return;
  }
  if (trial->method_state != NULL && trial->spec.method->free != NULL)
    trial->spec.method->free(trial);
  swp_release(trial->method_state);
  swp_release(trial->stages);
  trial->method_state = NULL;
  trial->stages = NULL;
}
