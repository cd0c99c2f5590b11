/*
 * lent: for ranks of one node. What a rank sends lies in memory that all share, lent to those that receive
 * it, who read it there. The application may write it there itself, to what swp_exchange_buffer gives, so
 * that receivers alone copy; what lies elsewhere is copied there when the exchange starts.
 */
#include "formulas.h"
#include "mail.h"
#include "sharing.h"

#include <string.h>

/*
 * Two buffers of a rank take turns. That of call n is written again for call n + 2, when its receivers have
 * completed call n. A sender that waits for this has waited for call n + 1, which by MPI's rules may take
 * until they start that call: so no correct program hangs. kernels/tests/protocols/lent.pml is a model of
 * this.
 */
enum { BUFFERS = 2 };

/* What comes before the buffers in each rank's part of the memory. */
struct head {
  _Alignas(LINE_BYTES) call_number lent;      /* the last call whose data can be read */
  _Alignas(LINE_BYTES) call_number completed; /* the last call in which this rank has read what it receives */
};

/* What this rank reads of another one. */
struct source {
  const struct head *head;
  int64_t buffer_bytes;
  const struct run *runs; /* of its buffer */
  int64_t nruns;
  int64_t offset; /* in this rank's receive buffer */
};

struct state {
  struct share share;
  int64_t buffer_bytes;
  uint64_t call;    /* the last that was started */
  uint64_t offered; /* the last for which the application got a buffer */
  struct run *copied;
  int64_t ncopied;
  struct source *sources; /* in the order of the receives */
  struct run *runs;       /* of all sources */
  char *recv;
  int nread; /* sources, in this call */
};

static void lent_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_release(state->copied);
  swp_release(state->sources);
  swp_release(state->runs);
  swp_arena_give(plan->topology->arena, &state->share);
}

static struct head *head_of(const struct state *state, int rank) {
  return (struct head *)(void *)swp_share_of(&state->share, rank);
}

static int64_t place_of(int64_t buffer_bytes, uint64_t call) {
  return (int64_t)sizeof(struct head) + (int64_t)(call % BUFFERS) * buffer_bytes;
}

static char *own_buffer(const struct swp_plan *plan, const struct state *state, uint64_t call) {
  return swp_share_of(&state->share, plan->rank) + place_of(state->buffer_bytes, call);
}

/* ---- Planning ---- */

/* Lists what this rank sends to others, each item once. */
static int list_copied(struct swp_plan *plan, struct state *state) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int64_t nruns = 0;
  for (int i = 0; i < problem->nsends; i++)
    nruns += problem->sends[i].nruns;
  state->copied = swp_plan_allocate(plan, nruns, sizeof *state->copied);
  if (state->copied == NULL)
    return swp_plan_no_memory(plan);
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    memcpy(state->copied + state->ncopied, send->runs, (size_t)send->nruns * sizeof *send->runs);
    state->ncopied += send->nruns;
  }
  state->ncopied = swp_runs_unite(state->copied, state->ncopied);
  exchange_plan_of(plan)->copied_bytes = swp_runs_bytes(state->copied, state->ncopied) + problem->recv_bytes;
  return SWP_SUCCESS;
}

static int plan_local(struct swp_plan *plan, struct state *state, int64_t *bytes) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int error = SWP_SUCCESS;
  state->buffer_bytes = problem->nsends > 0 ? swp_round_up(problem->buffer_bytes, LINE_BYTES) : 0;
  *bytes = place_of(state->buffer_bytes, 0) + BUFFERS * state->buffer_bytes;
  state->sources = swp_plan_allocate(plan, problem->nrecvs, sizeof *state->sources);
  if (state->sources == NULL || swp_plan_stages(plan, 1) != SWP_SUCCESS)
    return swp_plan_no_memory(plan);
  TRY(list_copied(plan, state));
  TRY(swp_sharing_check(plan, *bytes));
done:
  return error;
}

static int take_memory(struct swp_plan *plan, struct state *state) {
  int64_t bytes = 0;
  int error = state != NULL ? plan_local(plan, state, &bytes) : swp_plan_no_memory(plan);
  struct share *share = state != NULL ? &state->share : NULL;
  error = swp_sharing_take(plan, plan->topology->arena, plan->comm, error, bytes, share);
  if (error != SWP_SUCCESS)
    return error;
  state->call = state->offered = swp_calls_begin;
  swp_reach(&head_of(state, plan->rank)->lent, state->call);
  swp_reach(&head_of(state, plan->rank)->completed, state->call);
  return SWP_SUCCESS;
}

/* What receivers must know: the bytes of this rank's buffers, and the runs of their messages. */
static int write_mail(const struct swp_plan *plan, const struct state *state, struct mail *mail) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  if (!swp_mail_begin(mail, problem->nsends + problem->nrecvs))
    return swp_plan_no_memory(plan);
  struct box *box = mail->boxes;
  for (int i = 0; i < problem->nsends; i++, box++) {
    const struct send *send = &problem->sends[i];
    *box = (struct box){.rank = send->peer, .sends = true};
    swp_numbers_add(&box->out, state->buffer_bytes);
    for (int64_t k = 0; k < send->nruns; k++) {
      swp_numbers_add(&box->out, send->runs[k].offset);
      swp_numbers_add(&box->out, send->runs[k].bytes);
    }
  }
  for (int i = 0; i < problem->nrecvs; i++, box++)
    *box = (struct box){.rank = problem->recvs[i].peer, .receives = true};
  return SWP_SUCCESS;
}

static int read_mail(struct swp_plan *plan, struct state *state, const struct mail *mail) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  const struct box *boxes = mail->boxes + problem->nsends;
  int64_t nruns = 0;
  for (int i = 0; i < problem->nrecvs; i++)
    nruns += boxes[i].nin / 2;
  struct run *run = state->runs = swp_plan_allocate(plan, nruns, sizeof *state->runs);
  if (run == NULL)
    return swp_plan_no_memory(plan);
  for (int i = 0; i < problem->nrecvs; i++) {
    const struct receive *receive = &problem->recvs[i];
    const int64_t *numbers = boxes[i].in;
    state->sources[i] = (struct source){.head = head_of(state, receive->peer),
                                        .buffer_bytes = numbers[0],
                                        .runs = run,
                                        .nruns = boxes[i].nin / 2,
                                        .offset = receive->offset};
    for (int64_t k = 1; k < boxes[i].nin; k += 2)
      *run++ = (struct run){numbers[k], numbers[k + 1]};
  }
  return SWP_SUCCESS;
}

static int lent_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  struct mail mail = {0};
  int error = take_memory(plan, state);
  if (error != SWP_SUCCESS)
    return error;
  TRY(swp_mail_exchange(plan, &mail, write_mail(plan, state, &mail)));
  TRY(read_mail(plan, state, &mail));
done:
  swp_mail_free(&mail);
  return error;
}

/* ---- Execution ---- */

/* Waits until the receivers have read the buffer of a call when it was last used. */
static int await_receivers(struct swp_plan *plan, const struct state *state, uint64_t call) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int error = SWP_SUCCESS;
  for (int i = 0; i < problem->nsends; i++)
    TRY(swp_await(plan, &head_of(state, problem->sends[i].peer)->completed, call - BUFFERS));
done:
  return error;
}

static int lent_buffer(struct swp_plan *plan, char **buffer) {
  struct state *state = plan->method_state;
  const uint64_t call = state->call + 1;
  int error = SWP_SUCCESS;
  TRY(await_receivers(plan, state, call));
  *buffer = own_buffer(plan, state, call);
  state->offered = call;
done:
  return error;
}

/* Receivers may still have read a buffer that was kept from earlier when the application wrote it. */
static int refuse_kept(void) {
  return swp_fail(SWP_ERR_STATE,
                  "lent: the plan's buffer is of an earlier execution; call swp_exchange_buffer "
                  "before each");
}

HOT static int lent_start(struct swp_plan *plan, const char *send, char *recv) {
  struct state *state = plan->method_state;
  const uint64_t call = state->call + 1;
  char *own = own_buffer(plan, state, call);
  const char *other = own_buffer(plan, state, call - 1);
  int error = SWP_SUCCESS;
  if (state->buffer_bytes > 0 && (send == other || (send == own && state->offered != call)))
    return refuse_kept();
  state->call = call;
  state->recv = recv;
  state->nread = 0;
  if (send != own) {
    TRY(await_receivers(plan, state, call));
    swp_runs_copy(state->copied, state->ncopied, send, own);
  }
  swp_reach(&head_of(state, plan->rank)->lent, call);
done:
  return error;
}

HOT static int lent_advance(struct swp_plan *plan, bool block, bool *done) {
  struct state *state = plan->method_state;
  const int nsources = exchange_plan_of(plan)->problem->nrecvs;
  const uint64_t call = state->call;
  int error = SWP_SUCCESS;
  *done = false;
  for (; state->nread < nsources; state->nread++) {
    const struct source *source = &state->sources[state->nread];
    if (!block && !swp_has_reached(&source->head->lent, call))
      return swp_sharing_progress(plan);
    TRY(swp_await(plan, &source->head->lent, call));
    swp_runs_pack(source->runs, source->nruns,
                  (const char *)source->head + place_of(source->buffer_bytes, call),
                  state->recv + source->offset);
  }
  swp_reach(&head_of(state, plan->rank)->completed, call);
  *done = true;
done:
  return error;
}

/* An execution takes as long as a small message, and copying twice. */
static int lent_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  *seconds = 0;
  return swp_estimate_slots(plan, estimate, census.pair, 1, &exchange_plan_of(plan)->copied_bytes, seconds);
}

const struct method swp_exchange_lent = {
    .name = "lent",
    .summary = "messages are read where the sender has them, in memory that the ranks of one node share",
    .source = "Brightwell, Pedretti, Hudson, SMARTMAP, SC'08: receivers copy from the sender's memory",
    .node_memory = true,
    .applicable = swp_sharing_applicable,
    .plan = lent_plan,
    .free = lent_free,
    .buffer = lent_buffer,
    .start = lent_start,
    .advance = lent_advance,
    .estimate = lent_estimate,
};
