/*
 * spmv: the product of a sparse matrix, whose nonzeros lie anywhere, with a vector. A rank owns `rows` rows
 * and as many elements of the vector, and needs those of every other rank, a block, before it can multiply
 * with them: algorithms 6 to 8 of the paper. Step t is of the block of rank (rank + t) mod P; step 0 needs no
 * other rank.
 */
#include "overlap.h"

#include "csr.h"
#include "error.h"
#include "rng.h"

#include <float.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS, NONZEROS };
enum { TAG_BLOCK = 22, ALIGNMENT_BYTES = 64 };
enum { BULK, GATHER, SCATTER };

static const struct overlap_family families[] = {
    [BULK] = {"bulk", BY_GET, NULL, 0, 0, "gets all blocks, then multiplies"},
    [GATHER] = {"gather", BY_GET, "prefetch", 1, 2, "gets blocks while it multiplies with those before"},
    [SCATTER] = {"scatter", BY_ISEND | BY_PUT, "prefetch", 1, 2,
                 "sends its block to the others while it multiplies"},
    {.name = NULL}};

/* The memory that others get from and put into; blocks and flags by rank. */
struct spmv_overlap {
  double *own;                   /* elements */
  double *blocks;                /* received; that of this rank's elements stays empty */
  MPI_Win window;                /* own, blocks, and flags: the last execution in which a block was put */
  int64_t executed;              /* what a flag is set to */
  MPI_Request *sends, *receives; /* by step */
  double *y;
};

/* The blocks of the matrix, by step. */
struct work {
  int procs;
  struct csr *blocks;
};

static MPI_Aint place_of_block(const struct overlap *overlap, int rank) {
  return (MPI_Aint)((1 + rank) * overlap->values[ROWS] * (int64_t)sizeof(double));
}

static MPI_Aint place_of_flag(const struct overlap *overlap, int rank) {
  return place_of_block(overlap, overlap->team->procs) + (MPI_Aint)((size_t)rank * sizeof(int64_t));
}

static int64_t most(const struct overlap *overlap) {
  return overlap->team->procs > 2 ? overlap->team->procs - 1 : 1;
}

static void measure(const struct overlap *overlap, const struct overlap_method *method, int64_t *messages,
                    int64_t *message_bytes) {
  (void)method;
  *messages = overlap->team->procs - 1;
  *message_bytes = overlap->values[ROWS] * (int64_t)sizeof(double);
}

static int create(struct overlap *overlap) {
  const int procs = overlap->team->procs;
  const int64_t rows = overlap->values[ROWS];
  struct spmv_overlap *spmv = overlap->state = allocate_zeros(sizeof *spmv);
  spmv->window = MPI_WIN_NULL;
  overlap->full_flops = 2 * procs * (rows * overlap->values[NONZEROS] / procs);
  const MPI_Aint bytes = (place_of_flag(overlap, procs) / ALIGNMENT_BYTES + 1) * ALIGNMENT_BYTES;
  char *memory;
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, overlap->team->comm, &memory, &spmv->window);
  memset(memory, 0, (size_t)bytes);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, spmv->window);
  spmv->own = (double *)(void *)memory;
  spmv->blocks = (double *)(void *)(memory + place_of_block(overlap, 0));
  spmv->sends = allocate((size_t)procs * sizeof *spmv->sends);
  spmv->receives = allocate((size_t)procs * sizeof *spmv->receives);
  spmv->y = allocate((size_t)rows * sizeof *spmv->y);
  return 0;
}

static void free_spmv(struct overlap *overlap) {
  struct spmv_overlap *spmv = overlap->state;
  if (!spmv)
    return;
  MPI_Win_unlock_all(spmv->window);
  MPI_Win_free(&spmv->window);
  free(spmv->sends);
  free(spmv->receives);
  free(spmv->y);
  free(spmv);
}

/* Distributes nonzeros as evenly as possible over the rows, in any columns. Only the first block sets rows of
   y. */
static void make_block(const struct overlap *overlap, int step, int64_t nonzeros, struct csr *csr) {
  const int64_t rows = overlap->values[ROWS];
  struct rng rng = {hash_pair(hash_pair(overlap->seed, (uint64_t)overlap->team->rank), (uint64_t)step)};
  *csr = (struct csr){.nrows = (int32_t)rows,
                      .rows = step ? allocate((size_t)rows * sizeof *csr->rows) : NULL,
                      .offsets = allocate(((size_t)rows + 1) * sizeof *csr->offsets),
                      .columns = allocate((size_t)nonzeros * sizeof *csr->columns),
                      .values = allocate((size_t)nonzeros * sizeof *csr->values)};
  for (int64_t row = 0; row <= rows; row++)
    csr->offsets[row] = nonzeros / rows * row + nonzeros % rows * row / rows;
  for (int32_t row = 0; csr->rows && row < rows; row++)
    csr->rows[row] = row;
  for (int64_t k = 0; k < nonzeros; k++) {
    csr->columns[k] = (int32_t)rng_below(&rng, rows);
    csr->values[k] = (double)(int64_t)rng_next(&rng) * 0x1p-63;
  }
}

static void work_create(struct overlap *overlap, int64_t flops, struct overlap_work *work) {
  const int procs = overlap->team->procs;
  const int64_t nonzeros = flops / 2 / procs;
  *work = (struct overlap_work){.flops = 2 * nonzeros * procs};
  if (nonzeros == 0)
    return;
  struct work *state = work->state = allocate(sizeof *state);
  *state = (struct work){procs, allocate((size_t)procs * sizeof *state->blocks)};
  for (int step = 0; step < procs; step++)
    make_block(overlap, step, nonzeros, &state->blocks[step]);
}

static void work_free(struct overlap_work *work) {
  struct work *state = work->state;
  if (!state)
    return;
  for (int step = 0; step < state->procs; step++)
    csr_free(&state->blocks[step]);
  free(state->blocks);
  free(state);
}

/* An element of the vector, from 1 to 2: known to every rank, and another in each execution. */
static double element(const struct overlap *overlap, int rank, int64_t row) {
  const uint64_t execution = hash_pair(overlap->seed, overlap->repetition);
  const uint64_t bits = hash_pair(hash_pair(execution, (uint64_t)rank), (uint64_t)row);
  return 1 + (double)(bits >> 11) * 0x1p-53;
}

static void prepare(struct overlap *overlap) {
  struct spmv_overlap *spmv = overlap->state;
  const int64_t rows = overlap->values[ROWS];
  for (int64_t row = 0; row < rows; row++)
    spmv->own[row] = element(overlap, overlap->team->rank, row);
  memset(spmv->blocks, 0, (size_t)(overlap->team->procs * rows) * sizeof *spmv->blocks);
  memset(spmv->y, 0xff, (size_t)rows * sizeof *spmv->y);
  spmv->executed = (int64_t)overlap->repetition;
  MPI_Win_sync(spmv->window);
}

/* The rank whose block this one multiplies with in a step, and the one that needs this one's block then. */
static int needed_in(const struct team *team, int step) {
  return (team->rank + step) % team->procs;
}

static int needing_in(const struct team *team, int step) {
  return (team->rank - step + team->procs) % team->procs;
}

static void post_receives(const struct overlap *overlap) {
  struct spmv_overlap *spmv = overlap->state;
  const struct team *team = overlap->team;
  const int rows = (int)overlap->values[ROWS];
  for (int step = 1; step < team->procs; step++) {
    const int source = needed_in(team, step);
    MPI_Irecv(spmv->blocks + (int64_t)source * rows, rows, MPI_DOUBLE, source, TAG_BLOCK, team->comm,
              &spmv->receives[step]);
  }
}

/* The flag is put after the block has arrived: two puts may arrive in any order. */
static void put_notified(const struct overlap *overlap, int target) {
  struct spmv_overlap *spmv = overlap->state;
  const int rows = (int)overlap->values[ROWS], rank = overlap->team->rank;
  MPI_Put(spmv->own, rows, MPI_DOUBLE, target, place_of_block(overlap, rank), rows, MPI_DOUBLE, spmv->window);
  MPI_Win_flush(target, spmv->window);
  MPI_Accumulate(&spmv->executed, 1, MPI_INT64_T, target, place_of_flag(overlap, rank), 1, MPI_INT64_T,
                 MPI_REPLACE, spmv->window);
}

/* Begins the transfer of a step. */
static void begin(const struct overlap *overlap, enum overlap_transfer by, int step) {
  struct spmv_overlap *spmv = overlap->state;
  const struct team *team = overlap->team;
  const int rows = (int)overlap->values[ROWS], source = needed_in(team, step);
  if (by == BY_GET)
    MPI_Rget(spmv->blocks + (int64_t)source * rows, rows, MPI_DOUBLE, source, 0, rows, MPI_DOUBLE,
             spmv->window, &spmv->receives[step]);
  else if (by == BY_ISEND)
    MPI_Isend(spmv->own, rows, MPI_DOUBLE, needing_in(team, step), TAG_BLOCK, team->comm, &spmv->sends[step]);
  else
    put_notified(overlap, needing_in(team, step));
}

/* Waits until the block of a step has arrived. */
static void await(const struct overlap *overlap, enum overlap_transfer by, int step) {
  struct spmv_overlap *spmv = overlap->state;
  const struct team *team = overlap->team;
  if (by != BY_PUT) {
    team_wait(team, 1, &spmv->receives[step]);
    return;
  }
  const MPI_Aint flag = place_of_flag(overlap, needed_in(team, step));
  for (int64_t seen = 0, unused = 0; seen != spmv->executed;) {
    MPI_Fetch_and_op(&unused, &seen, MPI_INT64_T, team->rank, flag, MPI_NO_OP, spmv->window);
    MPI_Win_flush(team->rank, spmv->window);
    if (team->oversubscribed && seen != spmv->executed)
      sched_yield();
  }
  MPI_Win_sync(spmv->window);
}

static void multiply(const struct overlap *overlap, const struct overlap_work *work, int step,
                     struct stopwatch *watch) {
  const struct spmv_overlap *spmv = overlap->state;
  const struct work *state = work->state;
  if (!state)
    return;
  const struct csr *csr = &state->blocks[step];
  const int64_t rows = overlap->values[ROWS];
  const double *x = step ? spmv->blocks + needed_in(overlap->team, step) * rows : spmv->own;
  csr_multiply(csr, 0, csr->nrows, 1, x, spmv->y);
  lap(watch, COMPUTATION);
}

/* Waits until the others have this rank's data, which they get or were sent. */
static void complete(const struct overlap *overlap, enum overlap_transfer by) {
  struct spmv_overlap *spmv = overlap->state;
  if (by == BY_ISEND && overlap->team->procs > 1)
    team_wait(overlap->team, overlap->team->procs - 1, spmv->sends + 1);
  if (by == BY_PUT)
    MPI_Win_flush_all(spmv->window);
}

/* Steps before the first that is awaited have begun: `prefetch` when this rank's own block is multiplied. */
static void run(struct overlap *overlap, const struct overlap_method *method, const struct overlap_work *work,
                bool communicates, struct stopwatch *watch) {
  const int procs = overlap->team->procs, steps = communicates ? procs : 1;
  const bool bulk = method->family == &families[BULK];
  const int ahead = bulk ? procs : (int)method->value;
  int next = 1;
  if (communicates && method->by == BY_ISEND)
    post_receives(overlap);
  for (; next < ahead && next < steps; next++)
    begin(overlap, method->by, next);
  lap(watch, INITIATION);
  for (int step = 1; bulk && step < steps; step++)
    await(overlap, method->by, step);
  lap(watch, WAIT);
  for (int step = 0; step < procs; step++) {
    if (next < steps) {
      begin(overlap, method->by, next++);
      lap(watch, INITIATION);
    }
    if (step > 0 && !bulk && communicates) {
      await(overlap, method->by, step);
      lap(watch, WAIT);
    }
    multiply(overlap, work, step, watch);
  }
  if (!communicates)
    return;
  complete(overlap, method->by);
  lap(watch, WAIT);
  sync_barrier(overlap->team);
  lap(watch, BARRIER);
}

static int verify_blocks(const struct overlap *overlap) {
  const struct spmv_overlap *spmv = overlap->state;
  const int64_t rows = overlap->values[ROWS];
  for (int step = 1; step < overlap->team->procs; step++) {
    const int source = needed_in(overlap->team, step);
    for (int64_t row = 0; row < rows; row++) {
      const double expected = element(overlap, source, row), got = spmv->blocks[source * rows + row];
      if (memcmp(&got, &expected, sizeof got) != 0)
        return failure_set("wrong payload from rank %d: element %lld is %.17g, expected %.17g", source,
                           (long long)row, got, expected);
    }
  }
  return 0;
}

/* Checks against elements that every rank knows without communication; the two sums differ by rounding
   only. */
static int verify_row(const struct overlap *overlap, const struct work *work, int64_t row) {
  const struct spmv_overlap *spmv = overlap->state;
  double sum = 0, magnitude = 0;
  int64_t terms = 0;
  for (int step = 0; step < work->procs; step++) {
    const struct csr *csr = &work->blocks[step];
    for (int64_t k = csr->offsets[row]; k < csr->offsets[row + 1]; k++, terms++) {
      const double term = csr->values[k] * element(overlap, needed_in(overlap->team, step), csr->columns[k]);
      sum += term;
      magnitude += fabs(term);
    }
  }
  if (fabs(spmv->y[row] - sum) <= 2 * (double)terms * DBL_EPSILON * magnitude)
    return 0;
  return failure_set("wrong product: row %lld is %.17g, expected %.17g", (long long)row, spmv->y[row], sum);
}

static int verify(struct overlap *overlap, const struct overlap_work *work) {
  struct spmv_overlap *spmv = overlap->state;
  MPI_Win_sync(spmv->window);
  if (verify_blocks(overlap))
    return -1;
  for (int64_t row = 0; work->state && row < overlap->values[ROWS]; row++)
    if (verify_row(overlap, work->state, row))
      return -1;
  return 0;
}

const struct overlap_kernel overlap_spmv = {
    .name = "spmv",
    .summary = "a sparse product: each rank has `rows` rows, each with `nonzeros` anywhere",
    .parameters = {{"rows", 4096, 1, 1 << 27}, {"nonzeros", 64, 1, 1 << 20}},
    .families = families,
    .most = most,
    .create = create,
    .free = free_spmv,
    .work_create = work_create,
    .work_free = work_free,
    .measure = measure,
    .prepare = prepare,
    .run = run,
    .verify = verify,
};
