/*
 * stfw: store-and-forward over a virtual process topology T_n (Selvitopi & Aykanat, SC'19). Stage d exchanges
 * with the processes that differ in coordinate d only. The schedule is made once (swp_stfw_schedule.c), so
 * that no headers travel and nothing is allocated at execution.
 */
#include "stfw.h"

#include "stfw_grid.h"

static void stfw_free(struct swp_plan *plan) {
  struct stfw *stfw = plan->method_state;
  swp_stfw_stages_free(stfw);
  swp_release(stfw->incoming);
  swp_release(stfw->outgoing);
}

static int stfw_plan(struct swp_plan *plan) {
  struct stfw *stfw = plan->method_state = swp_plan_allocate(plan, 1, sizeof *stfw);
  int error = stfw != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
  if (error == SWP_SUCCESS) {
    swp_stfw_choose_grid(&plan->spec, plan->procs, &stfw->grid);
    swp_stfw_describe(plan, &stfw->grid);
    stfw->stages = swp_plan_allocate(plan, stfw->grid.ndims, sizeof *stfw->stages);
    error = stfw->stages != NULL ? swp_plan_stages(plan, stfw->grid.ndims) : swp_plan_no_memory(plan);
  }
  TRY(swp_agree(plan->comm, error));
  TRY(swp_stfw_schedule(plan, stfw));
  stfw->incoming = swp_plan_allocate(plan, stfw->incoming_bytes, 1);
  stfw->outgoing = swp_plan_allocate(plan, stfw->outgoing_bytes, 1);
  plan->buffer_bytes = stfw->incoming_bytes + stfw->outgoing_bytes;
  if (stfw->incoming == NULL || stfw->outgoing == NULL)
    error = swp_plan_no_memory(plan);
done:
  return error;
}

static int send_stage(struct swp_plan *plan, struct stfw *stfw) {
  const struct stfw_stage *stage = &stfw->stages[stfw->stage];
  int error = SWP_SUCCESS;
  for (int64_t i = 0; i < stage->npacks; i++) {
    const struct piece *piece = &stage->packs[i];
    const char *from = piece->from == PLACE_USER ? stfw->send : stfw->incoming;
    swp_runs_pack(&(struct run){piece->from_offset, piece->bytes}, 1, from,
                  stfw->outgoing + piece->to_offset);
  }
  for (int i = 0; i < stage->nsends; i++) {
    const struct transfer *t = &stage->sends[i];
    const char *from = t->place == PLACE_USER       ? stfw->send
                       : t->place == PLACE_OUTGOING ? stfw->outgoing
                                                    : stfw->incoming;
    MPI_TRY(MPI_Isend(from + t->offset, t->count, t->type, t->peer, stfw->stage, plan->comm,
                      &stage->requests[stage->nrecvs + i]));
  }
done:
  return error;
}

static int stfw_start(struct swp_plan *plan, const char *send, char *recv) {
  struct stfw *stfw = plan->method_state;
  int error = SWP_SUCCESS;
  stfw->send = send;
  stfw->recv = recv;
  stfw->stage = 0;
  for (int d = 0; d < stfw->grid.ndims; d++) {
    const struct stfw_stage *stage = &stfw->stages[d];
    for (int i = 0; i < stage->nrecvs; i++) {
      const struct transfer *t = &stage->recvs[i];
      char *to = t->place == PLACE_USER ? recv : stfw->incoming;
      MPI_TRY(MPI_Irecv(to + t->offset, t->count, t->type, t->peer, d, plan->comm, &stage->requests[i]));
    }
  }
  TRY(send_stage(plan, stfw));
done:
  return error;
}

static int stfw_advance(struct swp_plan *plan, bool block, bool *done) {
  struct stfw *stfw = plan->method_state;
  int error = SWP_SUCCESS;
  for (;;) {
    const struct stfw_stage *stage = &stfw->stages[stfw->stage];
    TRY(swp_progress(plan, stage->nrecvs + stage->nsends, stage->requests, block, done));
    if (!*done)
      break;
    for (int64_t i = 0; i < stage->nunpacks; i++) {
      const struct piece *piece = &stage->unpacks[i];
      swp_runs_unpack(&(struct run){piece->to_offset, piece->bytes}, 1, stfw->incoming + piece->from_offset,
                      stfw->recv);
    }
    if (++stfw->stage == stfw->grid.ndims)
      break;
    TRY(send_stage(plan, stfw));
  }
done:
  return error;
}

const struct method swp_exchange_stfw = {
    .name = "stfw",
    .summary = "store and forward along the dimensions of a virtual process grid",
    .source = "STFW_n of Selvitopi & Aykanat, SC'19",
    .usage = STFW_USAGE,
    .kind = SWP_EXCHANGE,
    .parameters = STFW_PARAMETERS,
    .applicable = swp_stfw_applicable,
    .variant = swp_stfw_variant,
    .plan = stfw_plan,
    .free = stfw_free,
    .start = stfw_start,
    .advance = stfw_advance,
};
