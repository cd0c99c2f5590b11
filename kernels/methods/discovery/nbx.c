/* nbx: nonblocking consensus among all ranks, and nothing else. */
#include "formulas.h"
#include "consensus.h"

#include <stdio.h>

static void nbx_free(struct swp_plan *plan) {
  struct consensus *consensus = plan->method_state;
  if (consensus != NULL)
    swp_probing_free(&consensus->probing);
}

static int nbx_plan(struct swp_plan *plan) {
  struct consensus *consensus = plan->method_state = swp_plan_allocate(plan, 1, sizeof *consensus);
  if (consensus == NULL)
    return swp_plan_no_memory(plan);
  swp_consensus_plan(plan, consensus);
  return SWP_SUCCESS;
}

static int nbx_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  return swp_consensus(plan, plan->method_state, outbox, inbox);
}

static bool nbx_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  (void)operation, (void)procs;
  if (swp_consensus_barriers[index] == NULL)
    return false;
  snprintf(text, length, "nbx:barrier=%s", swp_consensus_barriers[index]);
  return true;
}

static int nbx_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  double consensus_s = swp_consensus_s(&census);
  if (consensus_s >= 0)
    *seconds = consensus_s + swp_probed_s(plan, estimate->model);
  return SWP_SUCCESS;
}

const struct method swp_discovery_nbx = {
    .name = "nbx",
    .summary = "synchronous sends, receive until a nonblocking barrier completes",
    .source = "nonblocking consensus; Hoefler, Siebert, Lumsdaine, PPoPP'10",
    .usage = CONSENSUS_USAGE,
    .parameters = {CONSENSUS_PARAMETER},
    .variant = nbx_variant,
    .applicable = swp_consensus_applicable,
    .plan = nbx_plan,
    .free = nbx_free,
    .execute = nbx_execute,
    .estimate = nbx_estimate,
};
