/*
 * direct: post receives, send to each neighbour. The baseline BL of Selvitopi & Aykanat, SC'19 (topology
 * T_1). A message whose items lie together is sent from where it is; others are packed first.
 */
#include "formulas.h"
#include "schedule.h"

struct state {
  int nrecvs, nmessages;       /* nmessages: receives and sends */
  MPI_Request *requests;       /* of the receives, then of the sends */
  char *staging;               /* packed messages */
  struct transfer transfers[]; /* as the requests */
};

static void direct_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  for (int i = 0; i < state->nmessages; i++)
    swp_transfer_free(&state->transfers[i]);
  swp_release(state->staging);
  swp_release(state->requests);
}

static int plan_transfers(struct swp_plan *plan, struct state *state) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int error = SWP_SUCCESS;
  int64_t staged = 0;
  for (int i = 0; i < problem->nrecvs; i++) {
    const struct receive *receive = &problem->recvs[i];
    struct run run = {receive->offset, receive->bytes};
    TRY(swp_transfer_set(&state->transfers[i], receive->peer, PLACE_USER, &run, 1));
  }
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    struct run packed = {staged, send->bytes};
    bool together = send->nruns == 1;
    TRY(swp_transfer_set(&state->transfers[state->nrecvs + i], send->peer,
                         together ? PLACE_USER : PLACE_OUTGOING, together ? send->runs : &packed, 1));
    staged += together ? 0 : send->bytes;
  }
done:
  return error;
}

static int direct_plan(struct swp_plan *plan) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  const int nmessages = problem->nrecvs + problem->nsends;
  struct state *state = plan->method_state =
      swp_plan_allocate(plan, 1, sizeof *state + (size_t)nmessages * sizeof *state->transfers);
  if (state == NULL || swp_plan_stages(plan, 1) != SWP_SUCCESS)
    return swp_plan_no_memory(plan);
  state->nrecvs = problem->nrecvs;
  state->nmessages = nmessages;
  int64_t staging_bytes = 0;
  for (int i = 0; i < problem->nsends; i++) {
    swp_plan_count(plan, 0, problem->sends[i].peer, problem->sends[i].bytes);
    staging_bytes += problem->sends[i].nruns == 1 ? 0 : problem->sends[i].bytes;
  }
  for (int i = 0; i < problem->nrecvs; i++)
    swp_plan_count_receive(plan, 0, problem->recvs[i].peer, problem->recvs[i].bytes);
  exchange_plan_of(plan)->copied_bytes = staging_bytes;
  state->requests = swp_plan_allocate(plan, nmessages, sizeof *state->requests);
  state->staging = swp_plan_allocate(plan, staging_bytes, 1);
  if (state->requests == NULL || state->staging == NULL)
    return swp_plan_no_memory(plan);
  return plan_transfers(plan, state);
}

HOT static int direct_start(struct swp_plan *plan, const char *send, char *recv) {
  const struct state *state = plan->method_state;
  const struct transfer *t = state->transfers, *sends = t + state->nrecvs, *end = t + state->nmessages;
  MPI_Request *request = state->requests;
  int error = SWP_SUCCESS;
  for (; t < sends; t++)
    MPI_TRY(MPI_Irecv(recv + t->offset, t->count, t->type, t->peer, 0, plan->comm, request++));
  for (; t < end; t++) {
    const char *from = send + t->offset;
    if (t->place == PLACE_OUTGOING) {
      const struct send *message = &exchange_plan_of(plan)->problem->sends[t - sends];
      swp_runs_pack(message->runs, message->nruns, send, state->staging + t->offset);
      from = state->staging + t->offset;
    }
    MPI_TRY(MPI_Isend(from, t->count, t->type, t->peer, 0, plan->comm, request++));
  }
done:
  return error;
}

HOT static int direct_advance(struct swp_plan *plan, bool block, bool *done) {
  const struct state *state = plan->method_state;
  return swp_progress(plan, state->nmessages, state->requests, block, done);
}

const struct method swp_exchange_direct = {
    .name = "direct",
    .summary = "post receives, send to each neighbour",
    .source = "baseline BL of Selvitopi & Aykanat, SC'19",
    .plan = direct_plan,
    .free = direct_free,
    .start = direct_start,
    .advance = direct_advance,
    .estimate = swp_estimate_messages,
};
