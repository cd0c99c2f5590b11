/*
 * rsx: remote summation. Every rank adds one to a counter of each destination between two fences, then
 * probes for as many messages as its own counter says (Hoefler, Siebert, Lumsdaine, PPoPP'10).
 */
#include "formulas.h"
#include "probing.h"

/* Some libraries corrupt windows whose size is not a multiple of 16 bytes. */
enum { WINDOW_BYTES = 64 };

struct state {
  struct probing probing;
  MPI_Win window;
  int *counter;  /* in the window */
  int *previous; /* the unused results of the additions; room for as many as probing has */
};

/* Open MPI 4 gives the files behind windows of two disjoint communicators the same names, which corrupts both
   if they are made at the same time. Shared-memory windows are not affected. */
static const char *rsx_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
#if defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION < 5
  if (!features->shared_memory && !features->alone)
    return "on some of the job's ranks, on several nodes, Open MPI 4 may confuse its windows with those of "
           "other ranks";
#else
  (void)features;
#endif
  return NULL;
}

static void rsx_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_probing_free(&state->probing);
  swp_release(state->previous);
  if (state->window != MPI_WIN_NULL)
    MPI_Win_free(&state->window);
}

/* In windows of shared memory of SimGrid 3.32 all ranks are rank 0 to others. */
static int make_window(struct swp_plan *plan, struct state *state) {
  int error = SWP_SUCCESS;
  if (plan->features.shared_memory && !SWP_SIMULATED)
    MPI_TRY(MPI_Win_allocate_shared(WINDOW_BYTES, sizeof(int), MPI_INFO_NULL, plan->comm, &state->counter,
                                    &state->window));
  else
    MPI_TRY(MPI_Win_allocate(WINDOW_BYTES, sizeof(int), MPI_INFO_NULL, plan->comm, &state->counter,
                             &state->window));
  MPI_TRY(MPI_Win_set_errhandler(state->window, MPI_ERRORS_RETURN));
  *state->counter = 0;
done:
  return error;
}

static int rsx_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  int error = SWP_SUCCESS;
  if (state != NULL)
    state->window = MPI_WIN_NULL;
  TRY(swp_agree(plan->comm, state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan)));
  TRY(make_window(plan, state));
done:
  return error;
}

static int reserve(struct swp_plan *plan, struct state *state, int count) {
  if (count <= state->probing.capacity)
    return SWP_SUCCESS;
  swp_release(state->previous);
  state->previous = swp_plan_allocate(plan, count, sizeof *state->previous);
  return state->previous != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

/* By MPI_Fetch_and_op, as each MPI_Accumulate of MPICH 5.0.2 loses 128 bytes in windows that the library
   allocated; but SimGrid waits for the result of each. */
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
  TRY(swp_probing_send(plan, &state->probing, outbox, false));
  TRY(count_senders(plan, state, outbox, &expected));
  TRY(swp_probing_finish(plan, &state->probing, inbox, expected));
done:
  return error;
}

static int rsx_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  if (census.degree < 0)
    return SWP_SUCCESS;
  double barriers = census.model->fence_barriers > 0 ? census.model->fence_barriers : 1;
  double more = census.degree > 1 ? (double)census.degree - 1 : 0;
  *seconds = 2 * barriers * swp_barrier_s(&census) + census.small->alpha_s +
             more * (census.small->step_s + census.small->receive_s) + swp_probed_s(plan, estimate->model);
  return SWP_SUCCESS;
}

const struct method swp_discovery_rsx = {
    .name = "rsx",
    .summary = "counts by MPI_Fetch_and_op between fences, then probe and receive",
    .source = "remote summation; Hoefler, Siebert, Lumsdaine, PPoPP'10",
    .applicable = rsx_applicable,
    .plan = rsx_plan,
    .free = rsx_free,
    .execute = rsx_execute,
    .estimate = rsx_estimate,
};
