/*
 * stfw: store-and-forward over a virtual process topology T_n (Selvitopi & Aykanat, SC'19). Stage d exchanges
 * with the processes that differ in coordinate d only. The schedule is made once, so that no headers travel
 * and nothing is allocated at execution.
 *
 * Planning of store-and-forward: every message ("parcel") is routed stage by stage, headers included, once.
 * The parcels that a rank holds, and their places, then determine the messages of each stage, and every copy.
 *
 * A message of a stage that holds only the rank's own parcels is sent from the caller's buffer, and one of
 * which every parcel has arrived is received into it. The others are packed and unpacked.
 */
#include "formulas.h"
#include "grid.h"
#include "mail.h"
#include "order.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

/* A message of some rank on its way, held here. */
struct parcel {
  int source, destination;
  int64_t bytes;
  int64_t key;             /* orders by route */
  int next;                /* the neighbour's index in this stage, -1: stays here */
  int64_t offset;          /* in the incoming buffer, when it is not this rank's own */
  const struct send *send; /* when it is */
};

/* Numbers of a parcel, which travel in front of a stage at planning. */
enum { HEADER_SOURCE, HEADER_DESTINATION, HEADER_BYTES, HEADER_NUMBERS };

struct scheduler {
  struct swp_plan *plan;
  const struct grid *grid;
  struct schedule *schedule;
  struct receive *expected; /* the problem's receives by increasing peer */
  struct array held;        /* of struct parcel */
  int *neighbors;           /* room for those of the largest stage */
  /* Of the current stage: */
  struct mail mail; /* a box for each neighbour, by increasing rank */
  int64_t nout;     /* held parcels that leave, in front */
};

/* Parcels that leave come first, by neighbour, route and source. */
static int compare_parcels(const void *a, const void *b) {
  const struct parcel *x = a, *y = b;
  if (x->next != y->next)
    return (unsigned)x->next < (unsigned)y->next ? -1 : 1; /* -1, staying, is the greatest */
  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return (x->source > y->source) - (x->source < y->source);
}

static int scheduler_begin(struct scheduler *s) {
  const struct problem *problem = exchange_plan_of(s->plan)->problem;
  int largest = 0;
  for (int d = 0; d < s->grid->ndims; d++)
    largest = s->grid->sizes[d] > largest ? s->grid->sizes[d] : largest;
  s->expected = swp_allocate((size_t)problem->nrecvs, sizeof *s->expected, NULL);
  s->neighbors = swp_allocate(2 * (size_t)largest, sizeof *s->neighbors, NULL);
  if (s->expected == NULL || s->neighbors == NULL)
    return swp_plan_no_memory(s->plan);
  if (problem->nrecvs > 0)
    memcpy(s->expected, problem->recvs, (size_t)problem->nrecvs * sizeof *s->expected);
  qsort(s->expected, (size_t)problem->nrecvs, sizeof *s->expected, swp_by_int);
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    struct parcel *parcel = swp_array_add(&s->held, sizeof *parcel, NULL);
    if (parcel == NULL)
      return swp_plan_no_memory(s->plan);
    *parcel = (struct parcel){.source = s->plan->rank,
                              .destination = send->peer,
                              .bytes = send->bytes,
                              .key = swp_grid_route_key(s->grid, send->peer),
                              .send = send};
  }
  return SWP_SUCCESS;
}

static void stage_end(struct scheduler *s) {
  swp_mail_free(&s->mail);
  s->mail = (struct mail){0};
}

static void scheduler_end(struct scheduler *s) {
  stage_end(s);
  swp_release(s->held.items);
  swp_release(s->expected);
  swp_release(s->neighbors);
}

/* Finds the parcels for each neighbour in this stage, and lists them for it. */
static int list_parcels(struct scheduler *s, int stage) {
  int rank = s->plan->rank, count = swp_grid_neighbors(s->grid, rank, stage, s->neighbors);
  struct parcel *held = s->held.items;
  if (!swp_mail_begin(&s->mail, count))
    return swp_plan_no_memory(s->plan);
  for (int i = 0; i < count; i++)
    s->mail.boxes[i] = (struct box){.rank = s->neighbors[i], .sends = true, .receives = true};
  s->nout = 0;
  for (int64_t i = 0; i < s->held.count; i++) {
    int next = swp_grid_route(s->grid, held[i].source, held[i].destination, stage);
    held[i].next = next != rank ? swp_grid_neighbor_index(s->neighbors, count, next) : -1;
    s->nout += next != rank;
  }
  if (s->held.count > 1)
    qsort(held, (size_t)s->held.count, sizeof *held, compare_parcels);
  for (int64_t i = 0; i < s->nout; i++) {
    const int64_t header[HEADER_NUMBERS] = {held[i].source, held[i].destination, held[i].bytes};
    swp_numbers_add_all(&s->mail.boxes[held[i].next].out, HEADER_NUMBERS, header);
  }
  return SWP_SUCCESS;
}

/* Runs of a parcel in the buffer where it lies. */
static void append_runs(const struct parcel *parcel, struct run *runs, int64_t *nruns) {
  if (parcel->send == NULL) {
    swp_runs_append(runs, nruns, parcel->offset, parcel->bytes);
    return;
  }
  for (int64_t i = 0; i < parcel->send->nruns; i++)
    swp_runs_append(runs, nruns, parcel->send->runs[i].offset, parcel->send->runs[i].bytes);
}

static int64_t parcel_runs(const struct parcel *parcel) {
  return parcel->send != NULL ? parcel->send->nruns : 1;
}

/* Room for the runs of any message of a stage. */
struct workspace {
  struct run *runs;
  struct piece *pieces;
};

/* The message of consecutive parcels to one neighbour: sent from where it lies when it is all this rank's
   own or one run of forwarded bytes, else packed. */
static int plan_send(struct scheduler *s, int d, const struct parcel *parcels, int64_t count, int rank,
                     const struct workspace *space, int64_t *outgoing) {
  struct schedule *schedule = s->schedule;
  int64_t nruns = 0, own = 0, bytes = 0, npieces = 0;
  for (int64_t i = 0; i < count; i++) {
    append_runs(&parcels[i], space->runs, &nruns);
    own += parcels[i].send != NULL;
    bytes += parcels[i].bytes;
  }
  if (own == count)
    return swp_schedule_send(s->plan, schedule, d, rank, PLACE_USER, space->runs, nruns, NULL, 0);
  if (own == 0 && nruns == 1)
    return swp_schedule_send(s->plan, schedule, d, rank, PLACE_INCOMING, space->runs, 1, NULL, 0);
  struct run packed = {*outgoing, bytes};
  for (int64_t i = 0; i < count; i++) {
    enum transfer_place from = parcels[i].send != NULL ? PLACE_USER : PLACE_INCOMING;
    nruns = 0;
    append_runs(&parcels[i], space->runs, &nruns);
    for (int64_t r = 0; r < nruns; r++) {
      space->pieces[npieces++] = (struct piece){from, space->runs[r].offset, *outgoing, space->runs[r].bytes};
      *outgoing += space->runs[r].bytes;
    }
  }
  return swp_schedule_send(s->plan, schedule, d, rank, PLACE_OUTGOING, &packed, 1, space->pieces, npieces);
}

static int plan_sends(struct scheduler *s, int d) {
  int error = SWP_SUCCESS;
  int64_t total_runs = 0, outgoing = 0;
  const struct parcel *parcel = s->held.items;
  for (int64_t i = 0; i < s->nout; i++)
    total_runs += parcel_runs(&parcel[i]);
  struct workspace space = {swp_allocate((size_t)total_runs, sizeof *space.runs, NULL),
                            swp_allocate((size_t)total_runs, sizeof *space.pieces, NULL)};
  if (space.runs == NULL || space.pieces == NULL) {
    error = swp_plan_no_memory(s->plan);
    goto done;
  }
  for (int i = 0; i < s->mail.nboxes; i++) {
    const struct box *box = &s->mail.boxes[i];
    int64_t count = box->out.array.count / HEADER_NUMBERS;
    if (count == 0)
      continue;
    TRY(plan_send(s, d, parcel, count, box->rank, &space, &outgoing));
    parcel += count;
  }
  if (outgoing > s->schedule->outgoing_bytes)
    s->schedule->outgoing_bytes = outgoing;
done:
  swp_release(space.runs);
  swp_release(space.pieces);
  return error;
}

/* The place of an arrived parcel in the caller's receive buffer. */
static int find_place(const struct scheduler *s, int source, int64_t bytes, int64_t *offset) {
  struct receive key = {.peer = source};
  const struct receive *receive =
      bsearch(&key, s->expected, (size_t)exchange_plan_of(s->plan)->problem->nrecvs, sizeof key, swp_by_int);
  if (receive == NULL || receive->bytes != bytes)
    return swp_fail(SWP_ERR_MISMATCH, "exchange: rank %d sends %lld bytes that are not expected here", source,
                    (long long)bytes);
  *offset = receive->offset;
  return SWP_SUCCESS;
}

/* A message of which every parcel has arrived is received into the caller's buffer. */
static int receive_in_place(struct scheduler *s, int d, const struct box *box, struct run *runs) {
  int error = SWP_SUCCESS;
  int64_t nruns = 0, place = 0;
  for (const int64_t *header = box->in; header < box->in + box->nin; header += HEADER_NUMBERS) {
    TRY(find_place(s, (int)header[HEADER_SOURCE], header[HEADER_BYTES], &place));
    swp_runs_append(runs, &nruns, place, header[HEADER_BYTES]);
  }
  TRY(swp_schedule_receive(s->plan, s->schedule, d, box->rank, PLACE_USER, runs, nruns));
done:
  return error;
}

/* Any other is kept in the incoming buffer: what has arrived is unpacked, the rest held. */
static int receive_and_hold(struct scheduler *s, int d, const struct box *box) {
  int error = SWP_SUCCESS;
  int64_t start = s->schedule->incoming_bytes, offset = start, place = 0;
  for (const int64_t *header = box->in; header < box->in + box->nin; header += HEADER_NUMBERS) {
    int source = (int)header[HEADER_SOURCE], destination = (int)header[HEADER_DESTINATION];
    int64_t bytes = header[HEADER_BYTES];
    if (destination == s->plan->rank) {
      TRY(find_place(s, source, bytes, &place));
      TRY(swp_schedule_unpack(s->plan, s->schedule, d, offset, place, bytes));
    } else {
      struct parcel *parcel = swp_array_add(&s->held, sizeof *parcel, NULL);
      if (parcel == NULL)
        return swp_plan_no_memory(s->plan);
      *parcel = (struct parcel){.source = source,
                                .destination = destination,
                                .bytes = bytes,
                                .key = swp_grid_route_key(s->grid, destination),
                                .offset = offset};
      exchange_plan_of(s->plan)->forwarded_bytes += bytes;
    }
    offset += bytes;
  }
  s->schedule->incoming_bytes = offset;
  TRY(swp_schedule_receive(s->plan, s->schedule, d, box->rank, PLACE_INCOMING,
                           &(struct run){start, offset - start}, 1));
done:
  return error;
}

/* Returns whether every parcel of a message has arrived. */
static bool all_arrive(const struct scheduler *s, const struct box *box) {
  const int64_t *header = box->in, *end = box->in + box->nin;
  while (header < end && header[HEADER_DESTINATION] == s->plan->rank)
    header += HEADER_NUMBERS;
  return header == end;
}

static int plan_recvs(struct scheduler *s, int d) {
  int error = SWP_SUCCESS;
  int64_t most = 0;
  for (int i = 0; i < s->mail.nboxes; i++)
    most = s->mail.boxes[i].nin > most ? s->mail.boxes[i].nin : most;
  struct run *runs = swp_allocate((size_t)(most / HEADER_NUMBERS), sizeof *runs, NULL);
  if (runs == NULL)
    return swp_plan_no_memory(s->plan);
  for (int i = 0; i < s->mail.nboxes; i++) {
    const struct box *box = &s->mail.boxes[i];
    if (box->nin > 0)
      TRY(all_arrive(s, box) ? receive_in_place(s, d, box, runs) : receive_and_hold(s, d, box));
  }
done:
  swp_release(runs);
  return error;
}

/* Removes the parcels that leave. */
static void drop_sent(struct scheduler *s) {
  struct parcel *held = s->held.items;
  s->held.count -= s->nout;
  if (s->nout > 0)
    memmove(held, held + s->nout, (size_t)s->held.count * sizeof *held);
}

/* Routes every message of the problem and fills the schedule, a stage a dimension. Collective; errors are
   agreed but for those of the last stage. */
static int fill_schedule(struct swp_plan *plan, const struct grid *grid, struct schedule *schedule) {
  struct scheduler s = {.plan = plan, .grid = grid, .schedule = schedule};
  int error = SWP_SUCCESS, local = scheduler_begin(&s);
  for (int d = 0; d < grid->ndims; d++) {
    if (local == SWP_SUCCESS)
      local = list_parcels(&s, d + 1);
    TRY(swp_mail_exchange(plan, &s.mail, local)); /* agrees on a local error, of the stage before too */
    local = plan_sends(&s, d);
    drop_sent(&s);
    if (local == SWP_SUCCESS)
      local = plan_recvs(&s, d);
    stage_end(&s);
  }
  error = local;
done:
  scheduler_end(&s);
  return error;
}

static int stfw_plan(struct swp_plan *plan) {
  struct schedule *schedule;
  struct grid grid;
  int error = SWP_SUCCESS;
  swp_stfw_choose_grid(&plan->spec, plan->procs, &grid);
  swp_stfw_describe(plan, &grid);
  TRY(swp_agree(plan->comm, swp_schedule_begin(plan, grid.ndims, &schedule)));
  TRY(fill_schedule(plan, &grid, schedule));
  TRY(swp_schedule_end(plan, schedule));
done:
  return error;
}

const struct method swp_exchange_stfw = {
    .name = "stfw",
    .summary = "store and forward along the dimensions of a virtual process grid",
    .source = "STFW_n of Selvitopi & Aykanat, SC'19",
    .usage = STFW_USAGE,
    .parameters = STFW_PARAMETERS,
    .applicable = swp_stfw_applicable,
    .variant = swp_stfw_variant,
    .plan = stfw_plan,
    .free = swp_schedule_free,
    .start = swp_schedule_start,
    .advance = swp_schedule_advance,
    .estimate = swp_estimate_forwarding,
};
