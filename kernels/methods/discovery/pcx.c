/*
 * pcx: personalized census. By MPI_Reduce_scatter_block every rank learns how many messages to expect, and
 * then probes for them (Hoefler, Siebert, Lumsdaine, PPoPP'10). O(P) a call.
 */
#include "formulas.h"
#include "probing.h"

struct state {
  struct probing probing;
  int *counts; /* per rank: messages from here, 0 or 1 */
};

static void pcx_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_probing_free(&state->probing);
  swp_release(state->counts);
}

static int pcx_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state == NULL)
    return swp_plan_no_memory(plan);
  state->counts = swp_plan_allocate(plan, plan->procs, sizeof *state->counts);
  return state->counts != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

static int census(struct swp_plan *plan, struct state *state, const struct outbox *outbox, int *expected) {
  int error = SWP_SUCCESS;
  for (int i = 0; i < outbox->nsends; i++)
    state->counts[outbox->ranks[i]] = outbox->ranks[i] != plan->rank;
  MPI_TRY(MPI_Reduce_scatter_block(state->counts, expected, 1, MPI_INT, MPI_SUM, plan->comm));
  for (int i = 0; i < outbox->nsends; i++)
    state->counts[outbox->ranks[i]] = 0;
done:
  return error;
}

static int pcx_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS, expected = 0;
  TRY(swp_probing_send(plan, &state->probing, outbox, ANY_BYTES, false));
  TRY(census(plan, state, outbox, &expected));
  TRY(swp_probing_finish(plan, &state->probing, inbox, expected));
done:
  return error;
}

static double pcx_s(const struct census *c) {
  double seconds = 0;
  for (int left = c->procs; left > 1;) {
    left = (left + 1) / 2;
    seconds += swp_round_s(c, left, (double)left * COUNT_BYTES);
  }
  return seconds;
}

static int pcx_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  *seconds = pcx_s(&census) + swp_probed_s(plan, estimate->model);
  return SWP_SUCCESS;
}

const struct method swp_discovery_pcx = {
    .name = "pcx",
    .summary = "counts by MPI_Reduce_scatter_block, then probe and receive; O(P)",
    .source = "personalized census; Hoefler, Siebert, Lumsdaine, PPoPP'10",
    .plan = pcx_plan,
    .free = pcx_free,
    .execute = pcx_execute,
    .estimate = pcx_estimate,
};
