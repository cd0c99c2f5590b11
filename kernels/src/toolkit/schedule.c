/* Messages in stages: made at planning, executed without headers. */
#include "schedule.h"

#include <limits.h>
#include <string.h>

int swp_transfer_set(struct transfer *transfer, int peer, enum transfer_place place, const struct run *runs,
                     int64_t nruns) {
  if (nruns == 1 && runs[0].bytes <= INT_MAX) {
    *transfer = (struct transfer){peer, (int)runs[0].bytes, MPI_BYTE, runs[0].offset, place};
    return SWP_SUCCESS;
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int error = swp_runs_type(runs, nruns, &type);
  if (error == SWP_SUCCESS)
    *transfer = (struct transfer){peer, 1, type, 0, place};
  return error;
}

void swp_transfer_free(struct transfer *transfer) {
  if (transfer->count > 0 && transfer->type != MPI_BYTE)
    MPI_Type_free(&transfer->type);
}

int swp_schedule_begin(struct swp_plan *plan, int nstages, struct schedule **schedule) {
  *schedule = plan->method_state = swp_plan_allocate(plan, 1, sizeof **schedule);
  if (*schedule != NULL)
    (*schedule)->stages = swp_plan_allocate(plan, nstages, sizeof *(*schedule)->stages);
  if (*schedule == NULL || (*schedule)->stages == NULL)
    return swp_plan_no_memory(plan);
  (*schedule)->nstages = nstages;
  return swp_plan_stages(plan, nstages);
}

/* Appends a copy, joined with the one before when they continue each other; `first` is the first that it may
   be joined with. */
static int add_piece(struct swp_plan *plan, struct array *pieces, int64_t first, const struct piece *piece) {
  struct piece *last = pieces->count > first ? (struct piece *)pieces->items + pieces->count - 1 : NULL;
  exchange_plan_of(plan)->copied_bytes += piece->bytes;
  if (last != NULL && last->from == piece->from && last->from_offset + last->bytes == piece->from_offset &&
      last->to_offset + last->bytes == piece->to_offset) {
    last->bytes += piece->bytes;
    return SWP_SUCCESS;
  }
  struct piece *added = swp_array_add(pieces, sizeof *added, &plan->account);
  if (added == NULL)
    return swp_plan_no_memory(plan);
  *added = *piece;
  return SWP_SUCCESS;
}

int swp_schedule_send(struct swp_plan *plan, struct schedule *schedule, int stage, int peer,
                      enum transfer_place place, const struct run *runs, int64_t nruns,
                      const struct piece *pieces, int64_t npieces) {
  struct schedule_stage *to = &schedule->stages[stage];
  int error = SWP_SUCCESS;
  int64_t first = to->packs.count;
  struct scheduled_send *send = swp_array_add(&to->sends, sizeof *send, &plan->account);
  if (send == NULL)
    return swp_plan_no_memory(plan);
  for (int64_t i = 0; i < npieces; i++)
    TRY(add_piece(plan, &to->packs, first, &pieces[i]));
  send->npieces = to->packs.count - first;
  TRY(swp_transfer_set(&send->transfer, peer, place, runs, nruns));
  swp_plan_count(plan, stage, peer, swp_runs_bytes(runs, nruns));
done:
  return error;
}

int swp_schedule_receive(struct swp_plan *plan, struct schedule *schedule, int stage, int peer,
                         enum transfer_place place, const struct run *runs, int64_t nruns) {
  struct transfer *transfer = swp_array_add(&schedule->stages[stage].recvs, sizeof *transfer, &plan->account);
  swp_plan_count_receive(plan, stage, peer, swp_runs_bytes(runs, nruns));
  return transfer != NULL ? swp_transfer_set(transfer, peer, place, runs, nruns) : swp_plan_no_memory(plan);
}

int swp_schedule_handover(struct swp_plan *plan, struct schedule *schedule, int stage,
                          enum direction direction, int peer, enum transfer_place place,
                          const struct run *runs, int64_t nruns, bool *added) {
  struct schedule_stage *to = &schedule->stages[stage];
  const int64_t number = schedule->slots.channels[direction].count;
  int64_t bytes;
  struct channel *channel;
  struct handover *handover;
  int error = SWP_SUCCESS;
  *added = false;
  bytes = swp_runs_bytes(runs, nruns);
  TRY(swp_slots_add(plan, &schedule->slots, direction, peer, bytes, &channel));
  if (channel == NULL)
    return SWP_SUCCESS;
  handover = swp_array_add(&to->handovers[direction], sizeof *handover, &plan->account);
  if (handover != NULL)
    handover->runs = swp_plan_allocate(plan, nruns, sizeof *runs);
  if (handover == NULL || handover->runs == NULL)
    return swp_plan_no_memory(plan);
  memcpy(handover->runs, runs, (size_t)nruns * sizeof *runs);
  handover->place = place;
  handover->channel = number;
  channel->runs = handover->runs;
  channel->nruns = nruns;
  to->handover_bytes += bytes;
  *added = true;
done:
  return error;
}

int swp_schedule_unpack(struct swp_plan *plan, struct schedule *schedule, int stage, int64_t from_offset,
                        int64_t to_offset, int64_t bytes) {
  return add_piece(plan, &schedule->stages[stage].unpacks, 0,
                   &(struct piece){PLACE_INCOMING, from_offset, to_offset, bytes});
}

int swp_schedule_end(struct swp_plan *plan, struct schedule *schedule) {
  for (int d = 0; d < schedule->nstages; d++) {
    struct schedule_stage *stage = &schedule->stages[d];
    stage->requests =
        swp_plan_allocate(plan, stage->recvs.count + stage->sends.count, sizeof *stage->requests);
    if (stage->requests == NULL)
      return swp_plan_no_memory(plan);
    swp_array_trim(&stage->packs, sizeof(struct piece), &plan->account);
    swp_array_trim(&stage->unpacks, sizeof(struct piece), &plan->account);
  }
  schedule->incoming = swp_plan_allocate(plan, schedule->incoming_bytes, 1);
  schedule->outgoing = swp_plan_allocate(plan, schedule->outgoing_bytes, 1);
  bool allocated = schedule->incoming != NULL && schedule->outgoing != NULL;
  return allocated ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

static void free_handovers(struct array *handovers) {
  struct handover *handover = handovers->items;
  for (int64_t i = 0; i < handovers->count; i++)
    swp_release(handover[i].runs);
  swp_release(handovers->items);
}

void swp_schedule_free(struct swp_plan *plan) {
  struct schedule *schedule = plan->method_state;
  if (schedule == NULL)
    return;
  for (int d = 0; d < schedule->nstages; d++) {
    struct schedule_stage *stage = &schedule->stages[d];
    struct transfer *recvs = stage->recvs.items;
    struct scheduled_send *sends = stage->sends.items;
    for (int64_t i = 0; i < stage->recvs.count; i++)
      swp_transfer_free(&recvs[i]);
    for (int64_t i = 0; i < stage->sends.count; i++)
      swp_transfer_free(&sends[i].transfer);
    swp_release(recvs);
    swp_release(sends);
    swp_release(stage->packs.items);
    swp_release(stage->unpacks.items);
    swp_release(stage->requests);
    for (int direction = 0; direction < DIRECTIONS; direction++)
      free_handovers(&stage->handovers[direction]);
  }
  swp_slots_free(&schedule->slots);
  swp_release(schedule->stages);
  swp_release(schedule->incoming);
  swp_release(schedule->outgoing);
}

static char *plan_buffer(const struct schedule *schedule, enum transfer_place place) {
  return place == PLACE_OUTGOING ? schedule->outgoing : schedule->incoming;
}

/* The buffers of a place: what is sent lies in the one, what is received in the other. */
static const char *send_buffer(const struct schedule *schedule, enum transfer_place place) {
  return place == PLACE_USER ? schedule->send : plan_buffer(schedule, place);
}

static char *recv_buffer(const struct schedule *schedule, enum transfer_place place) {
  return place == PLACE_USER ? schedule->recv : plan_buffer(schedule, place);
}

static int post_receives(struct swp_plan *plan, const struct schedule *schedule) {
  int error = SWP_SUCCESS;
  for (int d = 0; d < schedule->nstages; d++) {
    const struct schedule_stage *stage = &schedule->stages[d];
    const struct transfer *t = stage->recvs.items;
    for (int64_t i = 0; i < stage->recvs.count; i++, t++) {
      char *to = recv_buffer(schedule, t->place);
      MPI_TRY(MPI_Irecv(to + t->offset, t->count, t->type, t->peer, d, plan->comm, &stage->requests[i]));
    }
  }
done:
  return error;
}

static int send_stage(struct swp_plan *plan, const struct schedule *schedule) {
  const struct schedule_stage *stage = &schedule->stages[schedule->stage];
  const struct scheduled_send *sends = stage->sends.items;
  const struct piece *piece = stage->packs.items;
  MPI_Request *request = stage->requests + stage->recvs.count;
  int error = SWP_SUCCESS;
  for (int64_t i = 0; i < stage->sends.count; i++) {
    for (int64_t k = 0; k < sends[i].npieces; k++, piece++)
      swp_runs_pack(&(struct run){piece->from_offset, piece->bytes}, 1, send_buffer(schedule, piece->from),
                    schedule->outgoing + piece->to_offset);
    const struct transfer *t = &sends[i].transfer;
    const char *from = send_buffer(schedule, t->place);
    MPI_TRY(MPI_Isend(from + t->offset, t->count, t->type, t->peer, schedule->stage, plan->comm, request++));
  }
done:
  return error;
}

/* Writes the handovers of the stage; without block, up to one whose slot is not free yet. */
static int deposit(struct swp_plan *plan, struct schedule *schedule, bool block) {
  const struct array *handovers = &schedule->stages[schedule->stage].handovers[SLOTS_OUT];
  const struct handover *handover = handovers->items;
  const struct channel *channels = schedule->slots.channels[SLOTS_OUT].items;
  const uint64_t call = schedule->slots.call;
  int error = SWP_SUCCESS;
  for (int64_t *i = &schedule->ndone[SLOTS_OUT]; *i < handovers->count; ++*i) {
    const struct channel *channel = &channels[handover[*i].channel];
    if (!block && !swp_slot_is_free(channel, call))
      break;
    TRY(swp_slot_await(plan, channel, call));
    swp_slot_write(channel, call, send_buffer(schedule, handover[*i].place));
  }
done:
  return error;
}

/* Reads those that come; without block, up to one that has not come yet. */
static int fetch(struct swp_plan *plan, struct schedule *schedule, bool block) {
  const struct array *handovers = &schedule->stages[schedule->stage].handovers[SLOTS_IN];
  const struct handover *handover = handovers->items;
  const struct channel *channels = schedule->slots.channels[SLOTS_IN].items;
  const uint64_t call = schedule->slots.call;
  int error = SWP_SUCCESS;
  for (int64_t *i = &schedule->ndone[SLOTS_IN]; *i < handovers->count; ++*i) {
    const struct channel *channel = &channels[handover[*i].channel];
    const call_number *number = &swp_slot_of(channel, call)->call;
    if (!block && !swp_has_reached(number, call))
      break;
    TRY(swp_await(plan, number, call));
    swp_slot_read(channel, call, recv_buffer(schedule, handover[*i].place));
  }
done:
  return error;
}

static int move_handovers(struct swp_plan *plan, struct schedule *schedule, bool block, bool *done) {
  const struct schedule_stage *stage = &schedule->stages[schedule->stage];
  int error = SWP_SUCCESS;
  TRY(deposit(plan, schedule, block));
  TRY(fetch(plan, schedule, block));
  *done = schedule->ndone[SLOTS_OUT] == stage->handovers[SLOTS_OUT].count &&
          schedule->ndone[SLOTS_IN] == stage->handovers[SLOTS_IN].count;
  if (!*done)
    TRY(swp_sharing_progress(plan));
done:
  return error;
}

static int begin_stage(struct swp_plan *plan, struct schedule *schedule, int number, bool block) {
  int error = SWP_SUCCESS;
  schedule->stage = number;
  schedule->ndone[SLOTS_OUT] = schedule->ndone[SLOTS_IN] = 0;
  TRY(send_stage(plan, schedule));
  TRY(deposit(plan, schedule, block));
done:
  return error;
}

static int complete_stage(struct swp_plan *plan, struct schedule *schedule, bool block, bool *done) {
  const struct schedule_stage *stage = &schedule->stages[schedule->stage];
  int error = SWP_SUCCESS;
  if (stage->handovers[SLOTS_OUT].count + stage->handovers[SLOTS_IN].count > 0) {
    TRY(move_handovers(plan, schedule, block, done));
    if (!*done)
      return SWP_SUCCESS;
  }
  TRY(swp_progress(plan, (int)(stage->recvs.count + stage->sends.count), stage->requests, block, done));
done:
  return error;
}

static bool receives_nothing(const struct schedule_stage *stage) {
  return stage->recvs.count == 0 && stage->handovers[SLOTS_IN].count == 0;
}

int swp_schedule_start(struct swp_plan *plan, const char *send, char *recv) {
  struct schedule *schedule = plan->method_state;
  int error = SWP_SUCCESS;
  schedule->send = send;
  schedule->recv = recv;
  schedule->slots.call++;
  TRY(post_receives(plan, schedule));
  TRY(begin_stage(plan, schedule, 0, true));
  /* The next stage may begin at once if there is nothing to receive first. */
  while (schedule->stage + 1 < schedule->nstages && receives_nothing(&schedule->stages[schedule->stage])) {
    bool done;
    TRY(complete_stage(plan, schedule, false, &done));
    if (!done)
      break;
    TRY(begin_stage(plan, schedule, schedule->stage + 1, true));
  }
done:
  return error;
}

int swp_schedule_advance(struct swp_plan *plan, bool block, bool *done) {
  struct schedule *schedule = plan->method_state;
  int error = SWP_SUCCESS;
  for (;;) {
    const struct schedule_stage *stage = &schedule->stages[schedule->stage];
    TRY(complete_stage(plan, schedule, block, done));
    if (!*done)
      break;
    const struct piece *piece = stage->unpacks.items;
    for (int64_t i = 0; i < stage->unpacks.count; i++, piece++)
      swp_runs_unpack(&(struct run){piece->to_offset, piece->bytes}, 1,
                      schedule->incoming + piece->from_offset, schedule->recv);
    if (schedule->stage + 1 == schedule->nstages)
      break;
    TRY(begin_stage(plan, schedule, schedule->stage + 1, block));
  }
done:
  return error;
}
