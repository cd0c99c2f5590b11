#include "trial.h"

int swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, struct estimate *estimate,
                   struct swp_plan *trial) {
  *trial = *plan;
  trial->spec = *spec;
  trial->method_state = NULL;
  trial->stages = NULL;
  trial->nstages = 0;
  trial->estimate = estimate;
  trial->start = spec->method->start;
  trial->advance = spec->method->advance;
  trial->has_self = plan->problem.self.bytes > 0;
  int error = swp_agree(plan->comm, spec->method->plan(trial));
  trial->forwards = trial->nstages > 1;
  return error;
}

void swp_trial_free(struct swp_plan *trial) {
  if (trial->method_state != NULL && trial->spec.method->free != NULL)
    trial->spec.method->free(trial);
  swp_release(trial->method_state);
  swp_release(trial->stages);
  trial->method_state = NULL;
  trial->stages = NULL;
}
