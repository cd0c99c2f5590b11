/*
 * Started exchanges that forward. Other ranks need this process at each of their stages, also while it waits
 * for another plan: all that waits by swp_progress or swp_plan_relax lets them go on.
 */
#ifndef SWP_OUTSTANDING_H
#define SWP_OUTSTANDING_H

#include "kinds.h"

/* From now on the plan may be advanced by any thread that waits. */
void swp_outstanding_add(struct exchange_plan *exchange);

/* From now on the plan is the caller's alone; its background says what became of it meanwhile. */
void swp_outstanding_take(struct exchange_plan *exchange);

/* Advances all plans, without waiting. */
void swp_outstanding_progress(void);

#endif
