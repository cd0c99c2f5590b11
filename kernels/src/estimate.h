/*
 * What the model in a table says of methods, when no rule tells: the equations of tuner/models (delivery.py,
 * exchange.py, discovery.py). Collectives are not estimated: their default, the library's own, has no
 * formula.
 */
#ifndef SWP_ESTIMATE_H
#define SWP_ESTIMATE_H

#include "plan.h"
#include "table.h"

/*
 * Sets plan->spec and plan->chosen_by to the method that is predicted to take least, where that is clearly
 * less than the default takes. *found is false, and nothing set, where the model has not the parameters of
 * these ranks or this operation. Collective on plan->comm, and the same on every rank. Errors, agreed:
 * SWP_ERR_METHOD, _MEMORY, _MPI.
 */
int swp_estimate_method(struct swp_plan *plan, const struct swp_table *table, bool *found);

/* Seconds that the model says one execution by the method takes; negative: it cannot tell. Plans the exchange
   methods for it, and forgets the plans. Collective, errors as above; the method must be applicable. */
int swp_estimate_seconds(struct swp_plan *plan, const struct model *model, const char *method,
                         double *seconds);

/* For swp_plan_count: this rank's messages of a method that is being estimated. */
void swp_estimate_send(struct swp_plan *plan, int stage, int peer, int64_t bytes);
void swp_estimate_receive(struct swp_plan *plan, int stage, int peer, int64_t bytes);

#endif
