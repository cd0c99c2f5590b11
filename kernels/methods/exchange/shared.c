/*
 * shared: a rank writes a message for a rank of its node to a slot in memory that they share, where the
 * receiver reads it; starting an exchange writes all of them, so that nobody needs a later wait of the
 * sender. Messages over SHARING_BYTES, and those between nodes, are sent as by `direct`.
 */
#include "formulas.h"
#include "messages.h"
#include "slots.h"

struct state {
  struct messages sent; /* the messages that do not go by slots */
  struct slots slots;
  struct run *places; /* of the receives by slots */
  char *recv;
  int64_t nread; /* of the receives by slots, in this call */
};

static void shared_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_messages_free(&state->sent);
  swp_slots_free(&state->slots);
  swp_release(state->places);
}

/* ---- Planning ---- */

static int add_channels(struct swp_plan *plan, struct state *state) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  struct channel *channel;
  int error = SWP_SUCCESS;
  state->places = swp_plan_allocate(plan, problem->nrecvs, sizeof *state->places);
  if (state->places == NULL)
    return swp_plan_no_memory(plan);
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    TRY(swp_slots_add(plan, &state->slots, SLOTS_OUT, send->peer, send->bytes, &channel));
    if (channel != NULL) {
      channel->runs = send->runs;
      channel->nruns = send->nruns;
    }
  }
  for (int i = 0; i < problem->nrecvs; i++) {
    const struct receive *receive = &problem->recvs[i];
    state->places[i] = (struct run){receive->offset, receive->bytes};
    TRY(swp_slots_add(plan, &state->slots, SLOTS_IN, receive->peer, receive->bytes, &channel));
    if (channel != NULL) {
      channel->runs = &state->places[i];
      channel->nruns = 1;
    }
  }
done:
  return error;
}

static int plan_local(struct swp_plan *plan, struct state *state) {
  int error = SWP_SUCCESS;
  TRY(swp_slots_begin(plan, plan->features.nodes > 1, &state->slots));
  if (swp_plan_stages(plan, 1) != SWP_SUCCESS)
    return swp_plan_no_memory(plan);
  TRY(swp_messages_plan(plan, &state->slots, &state->sent));
  TRY(add_channels(plan, state));
done:
  return error;
}

static int shared_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  int error = swp_agree(plan->comm, state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan));
  if (error != SWP_SUCCESS)
    return error;
  return swp_slots_place(plan, &state->slots, plan_local(plan, state));
}

/* ---- Execution ---- */

HOT static int shared_start(struct swp_plan *plan, const char *send, char *recv) {
  struct state *state = plan->method_state;
  const struct array *out = &state->slots.channels[SLOTS_OUT];
  const struct channel *channels = out->items;
  const uint64_t call = ++state->slots.call;
  int error = SWP_SUCCESS;
  state->recv = recv;
  state->nread = 0;
  TRY(swp_messages_start(plan, &state->sent, send, recv));
  for (int64_t i = 0; i < out->count; i++) {
    TRY(swp_slot_await(plan, &channels[i], call));
    swp_slot_write(&channels[i], call, send);
  }
done:
  return error;
}

HOT static int shared_advance(struct swp_plan *plan, bool block, bool *done) {
  struct state *state = plan->method_state;
  const struct array *in = &state->slots.channels[SLOTS_IN];
  const struct channel *channels = in->items;
  const uint64_t call = state->slots.call;
  int error = SWP_SUCCESS;
  for (; state->nread < in->count; state->nread++) {
    const struct channel *channel = &channels[state->nread];
    const call_number *number = &swp_slot_of(channel, call)->call;
    if (!block && !swp_has_reached(number, call)) {
      *done = false;
      return swp_sharing_progress(plan);
    }
    TRY(swp_await(plan, number, call));
    swp_slot_read(channel, call, state->recv);
  }
  *done = true;
  if (state->sent.nmessages > 0)
    TRY(swp_messages_advance(plan, &state->sent, block, done));
done:
  return error;
}

/* An execution takes as long as a small message on a node, copying twice, and the messages sent. */
static int shared_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct state *state = plan->method_state;
  const struct pair_model *pair = &estimate->model->pairs[PAIR_ON_NODE];
  int error = SWP_SUCCESS;
  TRY(swp_estimate_sent(plan, estimate, &state->slots, seconds));
  TRY(swp_estimate_slots(plan, estimate, pair, 1, &state->slots.copied_bytes, seconds));
done:
  return error;
}

const struct method swp_exchange_shared = {
    .name = "shared",
    .summary = "messages in memory that the ranks of a node share, and as direct between nodes",
    .source = "discovery shared, for known senders: no rank looks at others than its own",
    .node_memory = true,
    .applicable = swp_sharing_applicable_within_nodes,
    .plan = shared_plan,
    .free = shared_free,
    .start = shared_start,
    .advance = shared_advance,
    .estimate = shared_estimate,
};
