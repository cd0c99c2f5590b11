/*
 * nbx: nonblocking consensus. Synchronous sends tell a rank when all it sent has been received; it then
 * enters a nonblocking barrier, and receives until that completes (Hoefler, Siebert, Lumsdaine, PPoPP'10).
 * barrier=dissemination is a barrier of our own, for libraries whose MPI_Ibarrier is wrong or slow.
 */
#include "probing.h"

#include <stdio.h>

enum { BARRIER };
enum { IBARRIER, DISSEMINATION };
static const char *const barriers[] = {[IBARRIER] = "ibarrier", [DISSEMINATION] = "dissemination", NULL};

struct state {
  struct probing probing;
  bool dissemination;
  bool entered;            /* the barrier */
  int distance;            /* of the round under way, of ours */
  MPI_Request requests[2]; /* the barrier's: Ibarrier, or receive and send of the round */
};

static void nbx_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  swp_probing_free(&state->probing);
}

static int nbx_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state == NULL)
    return swp_plan_no_memory(plan);
  state->dissemination = plan->spec.arguments[BARRIER].value == DISSEMINATION;
  return SWP_SUCCESS;
}

/* In the round of distance d, rank r hears from r − d and tells r + d. */
static int start_round(struct swp_plan *plan, struct state *state) {
  int procs = plan->procs, error = SWP_SUCCESS;
  int to = (plan->rank + state->distance) % procs, from = (plan->rank - state->distance + procs) % procs;
  MPI_TRY(MPI_Irecv(NULL, 0, MPI_BYTE, from, CONTROL_TAG, plan->comm, &state->requests[0]));
  MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, to, CONTROL_TAG, plan->comm, &state->requests[1]));
done:
  return error;
}

static int enter_barrier(struct swp_plan *plan, struct state *state) {
  int error = SWP_SUCCESS;
  state->entered = true;
  state->requests[0] = state->requests[1] = MPI_REQUEST_NULL;
  state->distance = 1;
  if (!state->dissemination)
    MPI_TRY(MPI_Ibarrier(plan->comm, &state->requests[0]));
  else if (plan->procs > 1)
    TRY(start_round(plan, state));
done:
  return error;
}

static int test_barrier(struct swp_plan *plan, struct state *state, bool *complete) {
  int error = SWP_SUCCESS;
  for (;;) {
    TRY(swp_progress(plan, 2, state->requests, false, complete));
    if (!*complete || !state->dissemination || 2 * (int64_t)state->distance >= plan->procs)
      break;
    state->distance *= 2;
    TRY(start_round(plan, state));
  }
done:
  return error;
}

static int nbx_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS;
  bool received, sent, complete = false;
  state->entered = false;
  TRY(swp_probing_send(plan, &state->probing, outbox, true));
  while (!complete) {
    TRY(swp_probing_receive(plan, &state->probing, inbox, false, &received));
    if (received)
      continue;
    if (state->entered) {
      TRY(test_barrier(plan, state, &complete));
    } else {
      TRY(swp_progress(plan, state->probing.count, state->probing.requests, false, &sent));
      if (sent)
        TRY(enter_barrier(plan, state));
    }
    if (!complete)
      swp_plan_relax(plan);
  }
  TRY(swp_probing_finish(plan, &state->probing, inbox, 0));
done:
  return error;
}

static bool nbx_variant(int index, int procs, char *text, size_t length) {
  (void)procs;
  if (barriers[index] == NULL)
    return false;
  snprintf(text, length, "nbx:barrier=%s", barriers[index]);
  return true;
}

const struct method swp_discovery_nbx = {
    .name = "nbx",
    .summary = "synchronous sends, receive until a nonblocking barrier completes",
    .source = "nonblocking consensus; Hoefler, Siebert, Lumsdaine, PPoPP'10",
    .usage = "barrier=ibarrier|dissemination",
    .kind = SWP_DISCOVERY,
    .parameters = {[BARRIER] = {"barrier", PARAMETER_CHOICE, 0, 0, barriers}},
    .variant = nbx_variant,
    .plan = nbx_plan,
    .free = nbx_free,
    .execute = nbx_execute,
};
