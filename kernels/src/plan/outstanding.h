/*
 * Started exchanges that forward. Other ranks need this process at each of their stages, even while it waits
 * for another plan: every wait by swp_progress or swp_plan_relax lets them progress.
 */
#ifndef SWP_OUTSTANDING_H
#define SWP_OUTSTANDING_H

#include "kinds.h"

/* Any thread that waits may advance the plan from now on. */
void swp_outstanding_add(struct exchange_plan *exchange);

/* Only the caller advances the plan from now on; its background holds the progress made meanwhile. */
void swp_outstanding_take(struct exchange_plan *exchange);

/* Advances all plans, without waiting. */
void swp_outstanding_progress(void);

#endif
