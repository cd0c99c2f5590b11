/*
 * What the model in a table says of methods, where no rule holds. Methods say themselves what they take: see
 * `estimate` in method.h. Collectives are not estimated: their default, the library's own, has no formula.
 */
#ifndef SWP_ESTIMATE_H
#define SWP_ESTIMATE_H

#include "model.h"
#include "table.h"

/*
 * Sets *spec to the method that is predicted to take least, where that is clearly less than the default
 * takes, and evidence, which has EVIDENCE_BYTES, to the times. *found is false, and nothing set, where the
 * model has not the parameters of these ranks or this operation. Collective on plan->comm, and the same on
 * every rank. Errors, agreed: SWP_ERR_METHOD, _MEMORY, _MPI.
 */
int swp_estimate_method(struct swp_plan *plan, const struct swp_table *table, struct spec *spec,
                        char *evidence, bool *found);

/* Seconds that the model says one execution by the method takes; negative: it cannot tell. Plans the exchange
   methods for it, and forgets the plans. Collective, errors as above; the method must be applicable. */
int swp_estimate_seconds(struct swp_plan *plan, const struct model *model, const char *method,
                         double *seconds);

#endif
