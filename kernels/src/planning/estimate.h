/*
 * Estimates of methods by the model in a table, where no rule matches. Each method computes its own: see
 * `estimate` in method.h. No collective is chosen by estimates: the library's own takes the least of the
 * textbook's algorithms, as its choice is not known.
 */
#ifndef SWP_ESTIMATE_H
#define SWP_ESTIMATE_H

#include "model.h"
#include "table.h"

/*
 * Sets *spec to the method predicted to be fastest, if it is clearly faster than the default, and evidence,
 * of EVIDENCE_BYTES, to the times. *found is false, and nothing is set, if the model lacks the parameters for
 * these ranks or this operation. Collective on plan->comm, and the same on every rank. Errors, agreed:
 * SWP_ERR_METHOD, _MEMORY, _MPI.
 */
int swp_estimate_method(struct swp_plan *plan, const struct swp_table *table, struct spec *spec,
                        char *evidence, bool *found);

/* Estimates the seconds of one execution by the method; negative: unknown. Plans exchange methods for this,
   and discards the plans. Collective, errors as above, and SWP_ERR_NOT_APPLICABLE of such a plan; the
   features must fit the method. */
int swp_estimate_seconds(struct swp_plan *plan, const struct model *model, const char *method,
                         double *seconds);

#endif
