/*
 * put: by one-sided communication each rank puts its short messages, or the sizes of its longer ones, where
 * their receivers look for them after a fence (Geyko, Collom, Schafer, Bridges, Bienz, arXiv 2308.13869).
 */
#include "formulas.h"
#include "puts.h"

static void put_free(struct swp_plan *plan) {
  if (plan->method_state != NULL)
    swp_puts_free(plan->method_state);
}

static int put_plan(struct swp_plan *plan) {
  struct puts *puts = plan->method_state = swp_plan_allocate(plan, 1, sizeof *puts);
  if (puts != NULL)
    puts->window = MPI_WIN_NULL;
  return swp_puts_plan(plan, puts != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan), puts);
}

static int put_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  return swp_puts_exchange(plan, plan->method_state, outbox, inbox);
}

static int put_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  if (census.degree < 0)
    return SWP_SUCCESS;
  *seconds = swp_one_sided_s(&census) + swp_fence_s(&census);
  if (plan->features.bytes > SLIP_DATA_BYTES)
    *seconds += swp_probed_s(plan, estimate->model);
  return SWP_SUCCESS;
}

const struct method swp_discovery_put = {
    .name = "put",
    .summary = "short messages by MPI_Put before a fence, longer ones announced so; O(P)",
    .source = "a more scalable sparse dynamic data exchange, arXiv 2308.13869",
    .applicable = swp_window_applicable,
    .plan = put_plan,
    .free = put_free,
    .execute = put_execute,
    .estimate = put_estimate,
};
