/*
 * rsx: remote summation. Every rank adds one to a counter of each destination between two fences, then
 * probes for as many messages as its own counter says (Hoefler, Siebert, Lumsdaine, PPoPP'10).
 */
#include "formulas.h"
#include "probing.h"
#include "window.h"

struct state {
  struct probing probing;
  MPI_Win window;
  int *counter;  /* in the window */
  int *previous; /* the unused results of the additions */
  int room;      /* of previous */
};

static void rsx_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_probing_free(&state->probing);
  swp_release(state->previous);
  swp_window_free(&state->window);
}

static int rsx_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  int error = SWP_SUCCESS;
  if (state != NULL)
    state->window = MPI_WIN_NULL;
  TRY(swp_agree(plan->comm, state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan)));
  TRY(swp_window_make(plan, sizeof *state->counter, sizeof *state->counter, &state->counter, &state->window));
done:
  return error;
}

static int reserve(struct swp_plan *plan, struct state *state, int count) {
  if (count <= state->room)
    return SWP_SUCCESS;
  swp_release_counted(state->previous, (size_t)state->room, sizeof *state->previous, &plan->account);
  state->previous = swp_plan_allocate(plan, count, sizeof *state->previous);
  state->room = state->previous != NULL ? count : 0;
  return state->previous != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

/* MPI_Fetch_and_op is called, as each MPI_Accumulate of MPICH 5.0.2 loses 128 bytes in windows that the
   library allocated; but SimGrid waits for the result of each. */
static int increment(const struct state *state, int rank, int *previous) {
  static const int one = 1;
  int error = SWP_SUCCESS;
  if (SWP_SIMULATED)
    MPI_TRY(MPI_Accumulate(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM, state->window));
  else
    MPI_TRY(MPI_Fetch_and_op(&one, previous, MPI_INT, rank, 0, MPI_SUM, state->window));
done:
  return error;
}

static int count_senders(struct swp_plan *plan, struct state *state, const struct outbox *outbox,
                         int *expected) {
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Win_fence(0, state->window));
  for (int i = 0; i < outbox->nsends; i++)
    if (outbox->ranks[i] != plan->rank)
      TRY(increment(state, outbox->ranks[i], &state->previous[i]));
  MPI_TRY(MPI_Win_fence(MPI_MODE_NOSUCCEED, state->window));
  *expected = *state->counter;
  *state->counter = 0;
done:
  return error;
}

static int rsx_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS, expected = 0;
  TRY(reserve(plan, state, outbox->nsends));
  TRY(swp_probing_send(plan, &state->probing, outbox, ANY_BYTES, false));
  TRY(count_senders(plan, state, outbox, &expected));
  TRY(swp_probing_finish(plan, &state->probing, inbox, expected));
done:
  return error;
}

static int rsx_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  if (census.degree < 0)
    return SWP_SUCCESS;
  *seconds = 2 * swp_fence_s(&census) + swp_one_sided_s(&census) + swp_probed_s(plan, estimate->model);
  return SWP_SUCCESS;
}

const struct method swp_discovery_rsx = {
    .name = "rsx",
    .summary = "counts by MPI_Fetch_and_op between fences, then probe and receive",
    .source = "remote summation; Hoefler, Siebert, Lumsdaine, PPoPP'10",
    .applicable = swp_window_applicable,
    .plan = rsx_plan,
    .free = rsx_free,
    .execute = rsx_execute,
    .estimate = rsx_estimate,
};
