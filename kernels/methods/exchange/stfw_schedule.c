/*
 * Planning of store-and-forward: every message ("parcel") is routed stage by stage, headers included, once.
 * What a rank holds and where it lies then fixes the messages of each stage, and every copy.
 *
 * A message of a stage that holds only the rank's own parcels is sent from the caller's buffer, and one of
 * which every parcel has arrived is received into it. The others are packed and unpacked.
 */
#include "stfw.h"

#include <limits.h>
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

/* What travels in front of a stage at planning. */
struct header {
  int64_t source_destination; /* source · 2^32 + destination */
  int64_t bytes;
};

struct neighbor {
  int rank;
  int64_t out, in; /* parcels in this stage */
};

struct scheduler {
  struct swp_plan *plan;
  struct stfw *stfw;
  struct receive *expected; /* the problem's receives by increasing peer */
  struct parcel *held;
  int64_t nheld, capacity;
  /* Of the stage at hand: */
  int nneighbors;
  struct neighbor *neighbors; /* by increasing rank; room for the largest stage */
  int *ranks;                 /* of them */
  MPI_Request *requests;      /* two for each */
  int64_t nout, nin;
  struct header *out, *in;
};

static int compare_receives(const void *a, const void *b) {
  int x = ((const struct receive *)a)->peer, y = ((const struct receive *)b)->peer;
  return (x > y) - (x < y);
}

/* Parcels that leave come first, by neighbour, route and source. */
static int compare_parcels(const void *a, const void *b) {
  const struct parcel *x = a, *y = b;
  if (x->next != y->next)
    return (unsigned)x->next < (unsigned)y->next ? -1 : 1; /* -1, staying, is the greatest */
  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return (x->source > y->source) - (x->source < y->source);
}

static int compare_neighbors(const void *a, const void *b) {
  int x = *(const int *)a, y = ((const struct neighbor *)b)->rank;
  return (x > y) - (x < y);
}

static int scheduler_begin(struct scheduler *s) {
  const struct problem *problem = &s->plan->problem;
  const struct grid *grid = &s->stfw->grid;
  int largest = 0;
  for (int d = 0; d < grid->ndims; d++)
    largest = grid->sizes[d] > largest ? grid->sizes[d] : largest;
  size_t neighbors = 2 * (size_t)largest;
  s->capacity = problem->nsends;
  s->held = swp_allocate((size_t)s->capacity, sizeof *s->held, NULL);
  s->expected = swp_allocate((size_t)problem->nrecvs, sizeof *s->expected, NULL);
  s->neighbors = swp_allocate(neighbors, sizeof *s->neighbors, NULL);
  s->ranks = swp_allocate(neighbors, sizeof *s->ranks, NULL);
  s->requests = swp_allocate(2 * neighbors, sizeof *s->requests, NULL);
  if (s->held == NULL || s->expected == NULL || s->neighbors == NULL || s->ranks == NULL ||
      s->requests == NULL)
    return swp_plan_no_memory(s->plan);
  if (problem->nrecvs > 0)
    memcpy(s->expected, problem->recvs, (size_t)problem->nrecvs * sizeof *s->expected);
  qsort(s->expected, (size_t)problem->nrecvs, sizeof *s->expected, compare_receives);
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    s->held[s->nheld++] = (struct parcel){.source = s->plan->rank,
                                          .destination = send->peer,
                                          .bytes = send->bytes,
                                          .key = swp_grid_route_key(grid, send->peer),
                                          .send = send};
  }
  return SWP_SUCCESS;
}

static void scheduler_end(struct scheduler *s) {
  swp_release(s->held);
  swp_release(s->expected);
  swp_release(s->neighbors);
  swp_release(s->ranks);
  swp_release(s->requests);
  swp_release(s->out);
  swp_release(s->in);
}

/* Finds who gets what in this stage and tells every neighbour how many parcels come. Allocates nothing. */
static int exchange_counts(struct scheduler *s, int stage) {
  const struct grid *grid = &s->stfw->grid;
  int error = SWP_SUCCESS, rank = s->plan->rank;
  s->nneighbors = swp_grid_neighbors(grid, rank, stage, s->ranks);
  for (int i = 0; i < s->nneighbors; i++)
    s->neighbors[i] = (struct neighbor){s->ranks[i], 0, 0};
  s->nout = s->nin = 0;
  for (int64_t i = 0; i < s->nheld; i++) {
    struct parcel *parcel = &s->held[i];
    int next = swp_grid_route(grid, parcel->source, parcel->destination, stage);
    parcel->next = -1;
    if (next == rank)
      continue;
    struct neighbor *neighbor =
        bsearch(&next, s->neighbors, (size_t)s->nneighbors, sizeof *neighbor, compare_neighbors);
    parcel->next = (int)(neighbor - s->neighbors);
    neighbor->out++;
    s->nout++;
  }
  for (int i = 0; i < s->nneighbors; i++)
    MPI_TRY(MPI_Irecv(&s->neighbors[i].in, 1, MPI_INT64_T, s->neighbors[i].rank, stage, s->plan->comm,
                      &s->requests[2 * i]));
  for (int i = 0; i < s->nneighbors; i++)
    MPI_TRY(MPI_Isend(&s->neighbors[i].out, 1, MPI_INT64_T, s->neighbors[i].rank, stage, s->plan->comm,
                      &s->requests[2 * i + 1]));
  bool done;
  TRY(swp_progress(s->plan, 2 * s->nneighbors, s->requests, true, &done));
  for (int i = 0; i < s->nneighbors; i++)
    s->nin += s->neighbors[i].in;
done:
  return error;
}

/* Room for all that comes in this stage, so that nothing fails between here and the next agreement. */
static int make_room(struct scheduler *s) {
  if (s->nin > INT_MAX / 2 || s->nout > INT_MAX / 2)
    return swp_fail(SWP_ERR_TOO_LARGE, "%s: over 2^30 messages are forwarded by one rank",
                    s->plan->spec.text);
  swp_release(s->out);
  swp_release(s->in);
  s->out = swp_allocate((size_t)s->nout, sizeof *s->out, NULL);
  s->in = swp_allocate((size_t)s->nin, sizeof *s->in, NULL);
  struct parcel *held = s->held;
  if (s->nheld + s->nin > s->capacity) {
    s->capacity = s->nheld + s->nin;
    held = swp_allocate((size_t)s->capacity, sizeof *held, NULL);
    if (held != NULL && s->nheld > 0)
      memcpy(held, s->held, (size_t)s->nheld * sizeof *held);
    if (held != NULL) {
      swp_release(s->held);
      s->held = held;
    }
  }
  return held != NULL && s->out != NULL && s->in != NULL ? SWP_SUCCESS : swp_plan_no_memory(s->plan);
}

static int exchange_headers(struct scheduler *s, int stage) {
  int error = SWP_SUCCESS, count = 0;
  int64_t out = 0, in = 0;
  for (int64_t i = 0; i < s->nout; i++)
    s->out[i] = (struct header){(int64_t)s->held[i].source << 32 | s->held[i].destination, s->held[i].bytes};
  for (int i = 0; i < s->nneighbors; i++) {
    const struct neighbor *n = &s->neighbors[i];
    if (n->in > 0)
      MPI_TRY(MPI_Irecv(s->in + in, 2 * (int)n->in, MPI_INT64_T, n->rank, stage, s->plan->comm,
                        &s->requests[count++]));
    in += n->in;
  }
  for (int i = 0; i < s->nneighbors; i++) {
    const struct neighbor *n = &s->neighbors[i];
    if (n->out > 0)
      MPI_TRY(MPI_Isend(s->out + out, 2 * (int)n->out, MPI_INT64_T, n->rank, stage, s->plan->comm,
                        &s->requests[count++]));
    out += n->out;
  }
  bool done;
  TRY(swp_progress(s->plan, count, s->requests, true, &done));
done:
  return error;
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
  struct schedule *schedule = &s->stfw->schedule;
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
  int64_t total_runs = 0, outgoing = 0, first = 0;
  for (int64_t i = 0; i < s->nout; i++)
    total_runs += parcel_runs(&s->held[i]);
  struct workspace space = {swp_allocate((size_t)total_runs, sizeof *space.runs, NULL),
                            swp_allocate((size_t)total_runs, sizeof *space.pieces, NULL)};
  if (space.runs == NULL || space.pieces == NULL) {
    error = swp_plan_no_memory(s->plan);
    goto done;
  }
  for (int i = 0; i < s->nneighbors; i++) {
    int64_t count = s->neighbors[i].out;
    if (count > 0)
      TRY(plan_send(s, d, s->held + first, count, s->neighbors[i].rank, &space, &outgoing));
    first += count;
  }
  if (outgoing > s->stfw->schedule.outgoing_bytes)
    s->stfw->schedule.outgoing_bytes = outgoing;
done:
  swp_release(space.runs);
  swp_release(space.pieces);
  return error;
}

/* Where an arrived parcel belongs in the caller's receive buffer. */
static int find_place(const struct scheduler *s, int source, int64_t bytes, int64_t *offset) {
  struct receive key = {.peer = source};
  const struct receive *receive =
      bsearch(&key, s->expected, (size_t)s->plan->problem.nrecvs, sizeof key, compare_receives);
  if (receive == NULL || receive->bytes != bytes)
    return swp_fail(SWP_ERR_MISMATCH, "exchange: rank %d sends %lld bytes that are not expected here", source,
                    (long long)bytes);
  *offset = receive->offset;
  return SWP_SUCCESS;
}

static int header_source(const struct header *header) {
  return (int)(header->source_destination >> 32);
}

static int header_destination(const struct header *header) {
  return (int)(header->source_destination & 0xffffffff);
}

/* A message of which every parcel has arrived is received into the caller's buffer. */
static int receive_in_place(struct scheduler *s, int d, const struct header *headers, int64_t count, int rank,
                            struct run *runs) {
  int error = SWP_SUCCESS;
  int64_t nruns = 0, place = 0;
  for (int64_t i = 0; i < count; i++) {
    TRY(find_place(s, header_source(&headers[i]), headers[i].bytes, &place));
    swp_runs_append(runs, &nruns, place, headers[i].bytes);
  }
  TRY(swp_schedule_receive(s->plan, &s->stfw->schedule, d, rank, PLACE_USER, runs, nruns));
done:
  return error;
}

/* Any other is kept in the incoming buffer: what has arrived is unpacked, the rest held. */
static int receive_and_hold(struct scheduler *s, int d, const struct header *headers, int64_t count,
                            int rank) {
  struct schedule *schedule = &s->stfw->schedule;
  int error = SWP_SUCCESS;
  int64_t start = schedule->incoming_bytes, offset = start, place = 0;
  for (int64_t i = 0; i < count; i++) {
    int source = header_source(&headers[i]), destination = header_destination(&headers[i]);
    if (destination == s->plan->rank) {
      TRY(find_place(s, source, headers[i].bytes, &place));
      TRY(swp_schedule_unpack(s->plan, schedule, d, offset, place, headers[i].bytes));
    } else {
      s->held[s->nheld++] = (struct parcel){.source = source,
                                            .destination = destination,
                                            .bytes = headers[i].bytes,
                                            .key = swp_grid_route_key(&s->stfw->grid, destination),
                                            .offset = offset};
      s->plan->forwarded_bytes += headers[i].bytes;
    }
    offset += headers[i].bytes;
  }
  schedule->incoming_bytes = offset;
  TRY(swp_schedule_receive(s->plan, schedule, d, rank, PLACE_INCOMING, &(struct run){start, offset - start},
                           1));
done:
  return error;
}

static int plan_recvs(struct scheduler *s, int d) {
  int error = SWP_SUCCESS;
  const struct header *headers = s->in;
  struct run *runs = swp_allocate((size_t)s->nin, sizeof *runs, NULL);
  if (runs == NULL) {
    error = swp_plan_no_memory(s->plan);
    goto done;
  }
  for (int i = 0; i < s->nneighbors; i++) {
    int64_t count = s->neighbors[i].in, arrived = 0;
    if (count == 0)
      continue;
    for (int64_t k = 0; k < count; k++)
      arrived += header_destination(&headers[k]) == s->plan->rank;
    if (arrived == count)
      TRY(receive_in_place(s, d, headers, count, s->neighbors[i].rank, runs));
    else
      TRY(receive_and_hold(s, d, headers, count, s->neighbors[i].rank));
    headers += count;
  }
done:
  swp_release(runs);
  return error;
}

int swp_stfw_schedule(struct swp_plan *plan, struct stfw *stfw) {
  struct scheduler s = {.plan = plan, .stfw = stfw};
  int error = SWP_SUCCESS, local;
  TRY(swp_agree(plan->comm, scheduler_begin(&s)));
  local = SWP_SUCCESS;
  for (int d = 0; d < stfw->grid.ndims; d++) {
    TRY(exchange_counts(&s, d + 1));
    /* A local error of the stage before is agreed on only here: until now every rank has kept pace. */
    if (local == SWP_SUCCESS)
      local = make_room(&s);
    TRY(swp_agree(plan->comm, local));
    qsort(s.held, (size_t)s.nheld, sizeof *s.held, compare_parcels);
    TRY(exchange_headers(&s, d + 1));
    local = plan_sends(&s, d);
    s.nheld -= s.nout;
    memmove(s.held, s.held + s.nout, (size_t)s.nheld * sizeof *s.held);
    if (local == SWP_SUCCESS)
      local = plan_recvs(&s, d);
  }
  error = local;
done:
  scheduler_end(&s);
  return error;
}
