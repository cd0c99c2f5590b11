/* Plans that are made to compare methods, and forgotten. */
#ifndef SWP_TRIAL_H
#define SWP_TRIAL_H

#include "plan.h"

/*
 * Makes *trial a plan of the exchange of `plan` by another method, on its communicator, of the same problem.
 * The estimate may be NULL. Collective. Errors, agreed: those of planning. swp_trial_free is due in any case.
 */
int swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, struct estimate *estimate,
                   struct swp_plan *trial);

void swp_trial_free(struct swp_plan *trial);

#endif
