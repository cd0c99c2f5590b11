/*
 * shared: for ranks of one node. A rank writes a message to a slot in memory that all share, where the
 * receiver reads it; starting an exchange writes all of them, so that nobody needs a later wait of the
 * sender. Messages over SHARING_BYTES are sent as by `direct`.
 *
 * A message has two slots, which take turns. That of call n is written again in call n + 2, when the receiver
 * has read it: it has if its own message of call n + 1 came, as it then had completed call n. A receiver that
 * sends the sender nothing acknowledges. A sender that waits for this has waited for call n + 1, which by
 * MPI's rules may take until the receiver starts that call: so no correct program hangs.
 */
#include "formulas.h"
#include "mail.h"
#include "messages.h"
#include "sharing.h"

#include <string.h>

enum { MOST_BYTES = 1 << 26, SLOTS = 2 }; /* MOST: of the slots of a rank */

struct slot {
  call_number call; /* whose message this is; written last, read first */
  char data[];
};

/* A message that goes by slots; in memory of the sender, but for `read`. */
struct channel {
  union {
    const struct send *out;
    const struct receive *in;
  } message;
  char *slots;
  int64_t slot_bytes;
  call_number *read; /* by the receiver, the last call; NULL: its own messages show it */
};

struct state {
  struct messages large;
  struct share share;
  uint64_t call;
  int64_t copied_bytes;
  char *recv;
  int nout, nin, nread; /* nread: of the incoming, in this call */
  struct channel *out, *in;
};

static int64_t slot_bytes(int64_t bytes) {
  return swp_round_up((int64_t)sizeof(struct slot) + bytes, LINE_BYTES);
}

static inline struct slot *slot_of(const struct channel *channel, uint64_t call) {
  return (struct slot *)(void *)(channel->slots + (int64_t)(call % SLOTS) * channel->slot_bytes);
}

static void shared_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_messages_free(&state->large);
  swp_release(state->out);
  swp_release(state->in);
  swp_arena_give(plan->topology->arena, &state->share);
}

/* ---- Planning ---- */

static int add_channels(struct swp_plan *plan, struct state *state) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  state->out = swp_plan_allocate(plan, problem->nsends, sizeof *state->out);
  state->in = swp_plan_allocate(plan, problem->nrecvs, sizeof *state->in);
  if (state->out == NULL || state->in == NULL)
    return swp_plan_no_memory(plan);
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    if (send->bytes > SHARING_BYTES)
      continue;
    state->out[state->nout++] = (struct channel){.message.out = send, .slot_bytes = slot_bytes(send->bytes)};
    state->copied_bytes += send->bytes;
  }
  for (int i = 0; i < problem->nrecvs; i++) {
    const struct receive *receive = &problem->recvs[i];
    if (receive->bytes > SHARING_BYTES)
      continue;
    state->in[state->nin++] =
        (struct channel){.message.in = receive, .slot_bytes = slot_bytes(receive->bytes)};
    state->copied_bytes += receive->bytes;
  }
  exchange_plan_of(plan)->copied_bytes += state->copied_bytes;
  return SWP_SUCCESS;
}

/* The bytes of this rank's slots, then of a number for each message that it may have to acknowledge. */
static int64_t part_bytes(const struct state *state) {
  int64_t bytes = (int64_t)state->nin * LINE_BYTES;
  for (int i = 0; i < state->nout; i++)
    bytes += SLOTS * state->out[i].slot_bytes;
  return bytes;
}

static int check_bytes(int64_t bytes) {
  return bytes <= MOST_BYTES
             ? SWP_SUCCESS
             : swp_fail(SWP_ERR_NOT_APPLICABLE, "shared: slots of %lld bytes; at most %d of a rank",
                        (long long)bytes, MOST_BYTES);
}

/* Places what this rank writes. */
static void lay_out(const struct swp_plan *plan, const struct state *state) {
  char *place = swp_share_of(&state->share, plan->rank);
  for (int i = 0; i < state->nout; i++) {
    state->out[i].slots = place;
    for (uint64_t slot = 0; slot < SLOTS; slot++)
      swp_reach(&slot_of(&state->out[i], slot)->call, state->call);
    place += SLOTS * state->out[i].slot_bytes;
  }
  for (int i = 0; i < state->nin; i++, place += LINE_BYTES) {
    state->in[i].read = (call_number *)(void *)place;
    swp_reach(state->in[i].read, state->call);
  }
}

/* What this rank knows of another one. */
struct partner {
  bool sends, receives; /* messages of any size */
  int box;
};

/* A box for each partner, with no number yet. */
static void open_boxes(const struct swp_plan *plan, struct partner *partners, struct mail *mail) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  mail->nboxes = 0;
  for (int i = 0; i < problem->nsends; i++)
    partners[problem->sends[i].peer].receives = true;
  for (int i = 0; i < problem->nrecvs; i++)
    partners[problem->recvs[i].peer].sends = true;
  for (int rank = 0; rank < plan->procs; rank++)
    if (partners[rank].sends || partners[rank].receives) {
      struct box *box = &mail->boxes[partners[rank].box = mail->nboxes++];
      *box = (struct box){.rank = rank, .sends = true, .receives = true};
      swp_numbers_add(&box->out, -1);
    }
}

static void set_number(const struct partner *partner, struct mail *mail, int64_t number) {
  struct box *box = &mail->boxes[partner->box];
  if (!box->out.spoilt)
    swp_numbers(&box->out)[0] = number;
}

static char *place_at(const struct state *state, const struct partner *partner, const struct mail *mail) {
  const struct box *box = &mail->boxes[partner->box];
  return swp_share_of(&state->share, box->rank) + box->in[0];
}

/* Each sends its partner one number: where in its part the slots for that one begin, or, if it only receives
   from it, what it has read. */
static int introduce(struct swp_plan *plan, struct state *state) {
  const char *mine = swp_share_of(&state->share, plan->rank);
  struct partner *partners = swp_allocate((size_t)plan->procs, sizeof *partners, NULL);
  struct mail mail;
  swp_mail_begin(&mail, plan->procs);
  int error = partners != NULL && mail.boxes != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
  if (error == SWP_SUCCESS) {
    open_boxes(plan, partners, &mail);
    for (int i = 0; i < state->nin; i++) {
      const struct partner *partner = &partners[state->in[i].message.in->peer];
      if (partner->receives)
        state->in[i].read = NULL;
      else
        set_number(partner, &mail, (char *)state->in[i].read - mine);
    }
    for (int i = 0; i < state->nout; i++)
      set_number(&partners[state->out[i].message.out->peer], &mail, state->out[i].slots - mine);
  }
  TRY(swp_mail_exchange(plan, &mail, error));
  for (int i = 0; i < state->nin; i++)
    state->in[i].slots = place_at(state, &partners[state->in[i].message.in->peer], &mail);
  for (int i = 0; i < state->nout; i++) {
    const struct partner *partner = &partners[state->out[i].message.out->peer];
    if (!partner->sends)
      state->out[i].read = (call_number *)(void *)place_at(state, partner, &mail);
  }
done:
  swp_mail_free(&mail);
  swp_release(partners);
  return error;
}

static int plan_local(struct swp_plan *plan, struct state *state) {
  if (state == NULL || swp_plan_stages(plan, 1) != SWP_SUCCESS)
    return swp_plan_no_memory(plan);
  int error = swp_messages_plan(plan, SHARING_BYTES, &state->large);
  if (error == SWP_SUCCESS)
    error = add_channels(plan, state);
  return error == SWP_SUCCESS ? check_bytes(part_bytes(state)) : error;
}

/* Without any message in slots it would be `direct` by another name. Collective; `error` is an earlier one.
 */
static int check_any(const struct swp_plan *plan, const struct state *state, int error) {
  int mine = error == SWP_SUCCESS && state->nout > 0, any;
  MPI_TRY(MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, plan->comm));
  if (error == SWP_SUCCESS && !any)
    error = swp_fail(SWP_ERR_NOT_APPLICABLE, "shared: no message is of %d bytes or less", SHARING_BYTES);
done:
  return error;
}

static int shared_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  struct share share;
  int error = check_any(plan, state, plan_local(plan, state));
  TRY(swp_arena_take(plan->topology->arena, plan->comm, error, error == SWP_SUCCESS ? part_bytes(state) : 0,
                     &share));
  state->share = share;
  state->call = swp_calls_begin;
  plan->account += share.bytes;
  lay_out(plan, state);
  TRY(introduce(plan, state));
done:
  return error;
}

/* ---- Execution ---- */

HOT static int deposit(struct swp_plan *plan, const struct channel *channel, uint64_t call,
                       const char *send) {
  struct slot *slot = slot_of(channel, call);
  int error = SWP_SUCCESS;
  if (channel->read != NULL)
    TRY(swp_await(plan, channel->read, call - SLOTS));
  swp_runs_pack(channel->message.out->runs, channel->message.out->nruns, send, slot->data);
  swp_reach(&slot->call, call);
done:
  return error;
}

static void fetch(const struct channel *channel, uint64_t call, char *recv) {
  const struct receive *message = channel->message.in;
  memcpy(recv + message->offset, slot_of(channel, call)->data, (size_t)message->bytes);
  if (channel->read != NULL)
    swp_reach(channel->read, call);
}

HOT static int shared_start(struct swp_plan *plan, const char *send, char *recv) {
  struct state *state = plan->method_state;
  const uint64_t call = ++state->call;
  int error = SWP_SUCCESS;
  state->recv = recv;
  state->nread = 0;
  TRY(swp_messages_start(plan, &state->large, send, recv));
  for (int i = 0; i < state->nout; i++)
    TRY(deposit(plan, &state->out[i], call, send));
done:
  return error;
}

HOT static int shared_advance(struct swp_plan *plan, bool block, bool *done) {
  struct state *state = plan->method_state;
  const uint64_t call = state->call;
  int error = SWP_SUCCESS;
  for (; state->nread < state->nin; state->nread++) {
    const struct channel *channel = &state->in[state->nread];
    const call_number *number = &slot_of(channel, call)->call;
    if (!block && !swp_has_reached(number, call)) {
      *done = false;
      return swp_sharing_progress(plan);
    }
    TRY(swp_await(plan, number, call));
    fetch(channel, call, state->recv);
  }
  *done = true;
  if (state->large.nmessages > 0)
    TRY(swp_messages_advance(plan, &state->large, block, done));
done:
  return error;
}

/* As long as a small message, copying twice, and the larger messages. */
static int shared_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct state *state = plan->method_state;
  const struct census census = swp_census(plan, estimate);
  int64_t most_bytes;
  int error = swp_estimate_larger(plan, estimate, SHARING_BYTES, seconds);
  if (error != SWP_SUCCESS)
    return error;
  MPI_TRY(MPI_Allreduce(&state->copied_bytes, &most_bytes, 1, MPI_INT64_T, MPI_MAX, plan->comm));
  *seconds += census.small->alpha_s + (double)most_bytes * estimate->model->copy_s_per_byte;
done:
  return error;
}

const struct method swp_exchange_shared = {
    .name = "shared",
    .summary = "messages in memory that the ranks of one node share",
    .source = "discovery shared, for known senders: no rank looks at others than its own",
    .applicable = swp_sharing_applicable,
    .plan = shared_plan,
    .free = shared_free,
    .start = shared_start,
    .advance = shared_advance,
    .estimate = shared_estimate,
};
