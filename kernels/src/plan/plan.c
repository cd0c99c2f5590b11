#include "kinds.h"

void *swp_plan_allocate(struct swp_plan *plan, int64_t count, size_t bytes) {
  return swp_allocate((size_t)count, bytes, &plan->account);
}

int swp_plan_stages(struct swp_plan *plan, int nstages) {
  struct exchange_plan *exchange = exchange_plan_of(plan);
  exchange->stages = swp_plan_allocate(plan, nstages, sizeof *exchange->stages);
  if (exchange->estimate != NULL)
    exchange->tallies = swp_plan_allocate(plan, nstages, sizeof *exchange->tallies);
  if (exchange->stages == NULL || (exchange->estimate != NULL && exchange->tallies == NULL))
    return swp_plan_no_memory(plan);
  exchange->nstages = nstages;
  return SWP_SUCCESS;
}

int swp_plan_prepare(struct swp_plan *plan) {
  plan->method_state = NULL;
  plan->prepared = true;
  return swp_agree(plan->comm, plan->spec.method->plan(plan));
}

void swp_plan_unprepare(struct swp_plan *plan) {
  if (plan->prepared && plan->spec.method->free != NULL)
    plan->spec.method->free(plan);
  swp_release(plan->method_state);
  plan->method_state = NULL;
  plan->prepared = false;
}
