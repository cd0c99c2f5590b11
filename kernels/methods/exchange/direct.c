/*
 * direct: post receives, send to each neighbour. The baseline BL of Selvitopi & Aykanat, SC'19 (topology
 * T_1). A message whose items lie together is sent from where it is; others are packed first.
 */
#include "transfer.h"

struct state {
  int nrecvs, nsends;
  struct transfer *recvs, *sends;
  char *staging; /* packed messages */
  MPI_Request *requests;
};

static void direct_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  for (int i = 0; state->recvs != NULL && i < state->nrecvs; i++)
    swp_transfer_free(&state->recvs[i]);
  for (int i = 0; state->sends != NULL && i < state->nsends; i++)
    swp_transfer_free(&state->sends[i]);
  swp_release(state->recvs);
  swp_release(state->sends);
  swp_release(state->staging);
  swp_release(state->requests);
}

static int plan_transfers(struct swp_plan *plan, struct state *state) {
  const struct problem *problem = &plan->problem;
  int error = SWP_SUCCESS;
  int64_t staged = 0;
  for (int i = 0; i < problem->nrecvs; i++) {
    const struct receive *receive = &problem->recvs[i];
    struct run run = {receive->offset, receive->bytes};
    TRY(swp_transfer_set(&state->recvs[i], receive->peer, PLACE_USER, &run, 1));
  }
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    struct run packed = {staged, send->bytes};
    bool together = send->nruns == 1;
    TRY(swp_transfer_set(&state->sends[i], send->peer, together ? PLACE_USER : PLACE_OUTGOING,
                         together ? send->runs : &packed, 1));
    staged += together ? 0 : send->bytes;
  }
done:
  return error;
}

static int direct_plan(struct swp_plan *plan) {
  const struct problem *problem = &plan->problem;
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state == NULL || swp_plan_stages(plan, 1) != SWP_SUCCESS)
    return swp_plan_no_memory(plan);
  state->nrecvs = problem->nrecvs;
  state->nsends = problem->nsends;
  int64_t staging_bytes = 0;
  for (int i = 0; i < problem->nsends; i++) {
    swp_plan_count(plan, 0, problem->sends[i].peer, problem->sends[i].bytes);
    staging_bytes += problem->sends[i].nruns == 1 ? 0 : problem->sends[i].bytes;
  }
  plan->buffer_bytes = plan->copied_bytes = staging_bytes;
  state->recvs = swp_plan_allocate(plan, state->nrecvs, sizeof *state->recvs);
  state->sends = swp_plan_allocate(plan, state->nsends, sizeof *state->sends);
  state->requests = swp_plan_allocate(plan, (int64_t)state->nrecvs + state->nsends, sizeof *state->requests);
  state->staging = swp_plan_allocate(plan, staging_bytes, 1);
  if (state->recvs == NULL || state->sends == NULL || state->requests == NULL || state->staging == NULL)
    return swp_plan_no_memory(plan);
  return plan_transfers(plan, state);
}

static int direct_start(struct swp_plan *plan, const char *send, char *recv) {
  struct state *state = plan->method_state;
  MPI_Request *request = state->requests;
  int error = SWP_SUCCESS;
  for (int i = 0; i < state->nrecvs; i++) {
    const struct transfer *t = &state->recvs[i];
    MPI_TRY(MPI_Irecv(recv + t->offset, t->count, t->type, t->peer, 0, plan->comm, request++));
  }
  for (int i = 0; i < state->nsends; i++) {
    const struct transfer *t = &state->sends[i];
    const char *from = send + t->offset;
    if (t->place == PLACE_OUTGOING) {
      const struct send *message = &plan->problem.sends[i];
      swp_runs_pack(message->runs, message->nruns, send, state->staging + t->offset);
      from = state->staging + t->offset;
    }
    MPI_TRY(MPI_Isend(from, t->count, t->type, t->peer, 0, plan->comm, request++));
  }
done:
  return error;
}

static int direct_advance(struct swp_plan *plan, bool block, bool *done) {
  struct state *state = plan->method_state;
  return swp_progress(plan, state->nrecvs + state->nsends, state->requests, block, done);
}

const struct method swp_exchange_direct = {
    .name = "direct",
    .summary = "post receives, send to each neighbour",
    .source = "baseline BL of Selvitopi & Aykanat, SC'19",
    .usage = "",
    .kind = SWP_EXCHANGE,
    .plan = direct_plan,
    .free = direct_free,
    .start = direct_start,
    .advance = direct_advance,
};
