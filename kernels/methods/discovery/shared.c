/*
 * shared: for ranks of one node, which read in each other's bulletins what is for them. O(P) a call, but no
 * message where there is nothing to send.
 */
#include "bulletins.h"
#include "formulas.h"

static void shared_free(struct swp_plan *plan) {
  swp_bulletins_give(plan->method_state);
}

static int shared_plan(struct swp_plan *plan) {
  struct bulletins *bulletins = plan->method_state = swp_plan_allocate(plan, 1, sizeof *bulletins);
  const int error = bulletins != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
  return swp_bulletins_take(plan, false, plan->comm, error, bulletins);
}

static int shared_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  return swp_bulletins_exchange(plan, plan->method_state, outbox, inbox);
}

static int shared_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  const struct features *features = &plan->features;
  *seconds = census.small->alpha_s;
  if (features->bytes > SHARING_BYTES)
    *seconds += swp_payload_s(plan, estimate->model);
  else if (features->mmax > 0 && features->bytes > 0)
    *seconds += 2 * (double)(features->mmax * features->bytes) * estimate->model->copy_s_per_byte;
  return SWP_SUCCESS;
}

const struct method swp_discovery_shared = {
    .name = "shared",
    .summary = "sizes and small messages in memory that the ranks of one node share; O(P)",
    .source = "the personalized exchange of Hoefler, Siebert, Lumsdaine, PPoPP'10, by loads and stores",
    .node_memory = true,
    .applicable = swp_sharing_applicable,
    .plan = shared_plan,
    .free = shared_free,
    .execute = shared_execute,
    .estimate = shared_estimate,
};
