/*
 * pex: personalized exchange. Every rank sends every other the size of its message (MPI_Alltoall), then
 * receives are posted (Hoefler, Siebert, Lumsdaine, PPoPP'10). O(P) a call.
 */
#include "formulas.h"
#include "inbox.h"
#include "plan.h"

struct state {
  uint32_t *out, *in; /* per rank: bytes + 1, or 0 for no message */
  MPI_Request *requests;
};

static void pex_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_release(state->out);
  swp_release(state->in);
  swp_release(state->requests);
}

static int pex_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state == NULL)
    return swp_plan_no_memory(plan);
  state->out = swp_plan_allocate(plan, plan->procs, sizeof *state->out);
  state->in = swp_plan_allocate(plan, plan->procs, sizeof *state->in);
  state->requests = swp_plan_allocate(plan, 2 * (int64_t)plan->procs, sizeof *state->requests);
  if (state->out == NULL || state->in == NULL || state->requests == NULL)
    return swp_plan_no_memory(plan);
  return SWP_SUCCESS;
}

static int exchange_sizes(struct swp_plan *plan, struct state *state, const struct outbox *outbox) {
  int error = SWP_SUCCESS;
  for (int i = 0; i < outbox->nsends; i++)
    if (outbox->ranks[i] != plan->rank)
      state->out[outbox->ranks[i]] = (uint32_t)(outbox->bytes[i] + 1);
  MPI_TRY(MPI_Alltoall(state->out, 1, MPI_UINT32_T, state->in, 1, MPI_UINT32_T, plan->comm));
  for (int i = 0; i < outbox->nsends; i++)
    state->out[outbox->ranks[i]] = 0;
done:
  return error;
}

static int pex_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS, count = 0;
  TRY(exchange_sizes(plan, state, outbox));
  for (int source = 0; source < plan->procs; source++) {
    if (state->in[source] == 0)
      continue;
    int bytes = (int)(state->in[source] - 1);
    void *data = swp_inbox_add(inbox, source, bytes);
    if (data == NULL)
      return swp_fail(SWP_ERR_MEMORY, "pex: no memory for %d bytes from rank %d", bytes, source);
    MPI_TRY(MPI_Irecv(data, bytes, MPI_BYTE, source, 0, plan->comm, &state->requests[count++]));
  }
  for (int i = 0; i < outbox->nsends; i++)
    if (outbox->ranks[i] != plan->rank)
      MPI_TRY(MPI_Isend(outbox->data[i], (int)outbox->bytes[i], MPI_BYTE, outbox->ranks[i], 0, plan->comm,
                        &state->requests[count++]));
  bool done;
  TRY(swp_progress(plan, count, state->requests, true, &done));
done:
  return error;
}

static double pex_s(const struct census *c) {
  double pairwise = (c->procs - 1) * c->small->step_s + c->small->alpha_s, bruck = 0;
  for (int bit = 1; bit < c->procs; bit *= 2)
    bruck += swp_round_s(c, bit, (double)swp_with_bit(bit, c->procs) * COUNT_BYTES);
  return pairwise < bruck ? pairwise : bruck;
}

static int pex_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  *seconds = pex_s(&census) + swp_payload_s(plan, estimate->model);
  return SWP_SUCCESS;
}

const struct method swp_discovery_pex = {
    .name = "pex",
    .summary = "sizes by MPI_Alltoall, then receives; O(P)",
    .source = "personalized exchange; Hoefler, Siebert, Lumsdaine, PPoPP'10",
    .plan = pex_plan,
    .free = pex_free,
    .execute = pex_execute,
    .estimate = pex_estimate,
};
