/*
 * ft: the exchange of a Fourier transform of several dimensions. A rank has `rows` rows for every rank, each
 * of `elements` complex numbers. It transforms every row before it sends it; the methods differ in when it
 * sends, and how many rows at a time: algorithms 3 to 5 of the paper, and variants between 4 and 5.
 */
#include "overlap.h"

#include "error.h"
#include "fft.h"
#include "rng.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS, ELEMENTS };
enum { TAG_ROWS = 21, ALIGNMENT_BYTES = 64 };

enum { EXCHANGE, SLABS, PENCILS, CHUNKS };

static const struct overlap_family families[] = {
    [EXCHANGE] = {"exchange", BY_ISEND | BY_PUT, NULL, 0, 0,
                  "transforms all rows, then sends a message to each rank"},
    [SLABS] = {"slabs", BY_ISEND | BY_PUT, NULL, 0, 0, "sends the rows for a rank once they are transformed"},
    [PENCILS] = {"pencils", BY_ISEND | BY_PUT, NULL, 0, 0, "sends each row once it is transformed"},
    [CHUNKS] = {"chunks", BY_ISEND | BY_PUT, "rows", 4, 4,
                "sends a number of rows for a rank once they are transformed"},
    {.name = NULL}};

/* Lengths are in doubles, of which an element is two. A block is one rank's data for another. */
struct ft {
  int64_t row, block;
  double *own, *received; /* block after block, for and from rank 0, 1, ... */
  double *expected;       /* a row, for verification */
  MPI_Win window;         /* of received; MPI_WIN_NULL: no rank puts */
  MPI_Request *requests;
  int nrequests;
  int64_t *own_hashes, *sender_hashes; /* hashes of blocks */
};

/* Transforms the first elements of every row. */
struct work {
  int64_t elements;
  struct fft *fft;
};

static const char *without(void) {
  return fft_is_there() ? NULL : "built without FFTW, which pkg-config did not find";
}

static int64_t rows_of(const struct overlap *overlap, const struct overlap_method *method) {
  switch (method->family - families) {
  case PENCILS:
    return 1;
  case CHUNKS:
    return method->value;
  default:
    return overlap->values[ROWS];
  }
}

static int64_t most(const struct overlap *overlap) {
  return overlap->values[ROWS];
}

static void measure(const struct overlap *overlap, const struct overlap_method *method, int64_t *messages,
                    int64_t *message_bytes) {
  const int64_t rows = overlap->values[ROWS], at_once = rows_of(overlap, method);
  *messages = (overlap->team->procs - 1) * ((rows + at_once - 1) / at_once);
  *message_bytes = at_once * 2 * overlap->values[ELEMENTS] * (int64_t)sizeof(double);
}

static double *allocate_aligned(int64_t doubles) {
  const size_t bytes = ((size_t)doubles * sizeof(double) / ALIGNMENT_BYTES + 1) * ALIGNMENT_BYTES;
  double *memory = aligned_alloc(ALIGNMENT_BYTES, bytes);
  if (!memory)
    team_fail("out of memory: cannot get %zu bytes", bytes);
  return memory;
}

/* The window that ranks put into. Its size is a multiple of 64 bytes: some libraries corrupt others. */
static void make_window(struct overlap *overlap, struct ft *ft, int64_t doubles) {
  const MPI_Aint bytes = (MPI_Aint)(doubles * 8 / ALIGNMENT_BYTES + 1) * ALIGNMENT_BYTES;
  MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, overlap->team->comm, &ft->received, &ft->window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, ft->window);
}

static int create(struct overlap *overlap) {
  const int procs = overlap->team->procs;
  const int64_t rows = overlap->values[ROWS], elements = overlap->values[ELEMENTS];
  struct ft *ft = overlap->state = allocate_zeros(sizeof *ft);
  ft->window = MPI_WIN_NULL;
  ft->row = 2 * elements;
  ft->block = rows * ft->row;
  if (ft->block > INT_MAX || rows * procs > INT_MAX / 2)
    return failure_set("--pattern: %lld rows of %lld elements exceed the largest message, 2^31 - 1 doubles",
                       (long long)rows, (long long)elements);
  overlap->full_flops = (int64_t)((double)(rows * procs) * fft_flops(elements));
  ft->own = allocate_aligned(procs * ft->block);
  if (overlap->puts)
    make_window(overlap, ft, procs * ft->block);
  else
    ft->received = allocate_aligned(procs * ft->block);
  ft->expected = allocate_aligned(ft->row);
  ft->requests = allocate((size_t)(2 * rows * procs) * sizeof *ft->requests);
  ft->own_hashes = allocate((size_t)procs * sizeof *ft->own_hashes);
  ft->sender_hashes = allocate((size_t)procs * sizeof *ft->sender_hashes);
  return 0;
}

static void free_ft(struct overlap *overlap) {
  struct ft *ft = overlap->state;
  if (!ft)
    return;
  if (ft->window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(ft->window);
    MPI_Win_free(&ft->window);
  } else {
    free(ft->received);
  }
  free(ft->own);
  free(ft->expected);
  free(ft->requests);
  free(ft->own_hashes);
  free(ft->sender_hashes);
  free(ft);
}

static void work_create(struct overlap *overlap, int64_t flops, struct overlap_work *work) {
  const struct ft *ft = overlap->state;
  const int64_t rows = overlap->values[ROWS] * overlap->team->procs, elements = overlap->values[ELEMENTS];
  const int64_t length = flops >= overlap->full_flops ? elements : fft_length(elements, (double)flops / rows);
  *work = (struct overlap_work){.flops = (int64_t)((double)rows * fft_flops(length))};
  if (work->flops == 0)
    return;
  struct work *state = work->state = allocate(sizeof *state);
  *state = (struct work){length, fft_create(length, ft->own, ft->row * (int64_t)sizeof(double))};
}

static void work_free(struct overlap_work *work) {
  struct work *state = work->state;
  if (state)
    fft_free(state->fft);
  free(state);
}

/* A row of a rank as it is before its transform, -1 to 1: other numbers in each execution. */
static void fill_row(const struct overlap *overlap, int rank, int64_t row, double *numbers) {
  const uint64_t execution = hash_pair(overlap->seed, overlap->repetition);
  struct rng rng = {hash_pair(hash_pair(execution, (uint64_t)rank), (uint64_t)row)};
  for (int64_t i = 0; i < 2 * overlap->values[ELEMENTS]; i++)
    numbers[i] = (double)(int64_t)rng_next(&rng) * 0x1p-63;
}

static void prepare(struct overlap *overlap) {
  struct ft *ft = overlap->state;
  const int procs = overlap->team->procs;
  for (int64_t row = 0; row < procs * overlap->values[ROWS]; row++)
    fill_row(overlap, overlap->team->rank, row, ft->own + row * ft->row);
  memset(ft->received, 0xff, (size_t)(procs * ft->block) * sizeof(double));
  if (ft->window != MPI_WIN_NULL)
    MPI_Win_sync(ft->window);
}

/* Every message of every other rank. */
static void post_receives(const struct overlap *overlap, int64_t at_once) {
  struct ft *ft = overlap->state;
  const struct team *team = overlap->team;
  for (int64_t first = 0; first < overlap->values[ROWS]; first += at_once)
    for (int t = 1; t < team->procs; t++) {
      const int source = (team->rank - t + team->procs) % team->procs;
      const int64_t left = overlap->values[ROWS] - first, rows = left < at_once ? left : at_once;
      MPI_Irecv(ft->received + source * ft->block + first * ft->row, (int)(rows * ft->row), MPI_DOUBLE,
                source, TAG_ROWS, team->comm, &ft->requests[ft->nrequests++]);
    }
}

/* Sends rows of the block for a rank, from row `first` of it; what is for this rank itself is copied. */
static void send(const struct overlap *overlap, enum overlap_transfer by, int target, int64_t first,
                 int64_t rows) {
  struct ft *ft = overlap->state;
  const struct team *team = overlap->team;
  const double *from = ft->own + target * ft->block + first * ft->row;
  const int64_t to = team->rank * ft->block + first * ft->row, length = rows * ft->row;
  if (target == team->rank)
    memcpy(ft->received + to, from, (size_t)length * sizeof *from);
  else if (by == BY_PUT)
    MPI_Put(from, (int)length, MPI_DOUBLE, target, to, (int)length, MPI_DOUBLE, ft->window);
  else
    MPI_Isend(from, (int)length, MPI_DOUBLE, target, TAG_ROWS, team->comm, &ft->requests[ft->nrequests++]);
}

static void transform(const struct overlap *overlap, const struct overlap_work *work, int64_t first,
                      int64_t rows, struct stopwatch *watch) {
  const struct ft *ft = overlap->state;
  const struct work *state = work->state;
  if (!state)
    return;
  for (int64_t row = first; row < first + rows; row++)
    fft_execute(state->fft, ft->own + row * ft->row);
  lap(watch, COMPUTATION);
}

static void wait(const struct overlap *overlap, enum overlap_transfer by) {
  struct ft *ft = overlap->state;
  if (by == BY_PUT)
    MPI_Win_flush_all(ft->window);
  team_wait(overlap->team, ft->nrequests, ft->requests);
  ft->nrequests = 0;
}

static void run(struct overlap *overlap, const struct overlap_method *method, const struct overlap_work *work,
                bool communicates, struct stopwatch *watch) {
  const struct team *team = overlap->team;
  const int64_t block_rows = overlap->values[ROWS], at_once = rows_of(overlap, method);
  const bool first_all = method->family == &families[EXCHANGE];
  if (communicates && method->by == BY_ISEND) {
    post_receives(overlap, at_once);
    lap(watch, INITIATION);
  }
  if (first_all)
    transform(overlap, work, 0, block_rows * team->procs, watch);
  for (int64_t first = 0; first < block_rows; first += at_once)
    for (int t = 1; t <= team->procs; t++) {
      const int target = (team->rank + t) % team->procs;
      const int64_t left = block_rows - first, rows = left < at_once ? left : at_once;
      if (!first_all)
        transform(overlap, work, target * block_rows + first, rows, watch);
      if (!communicates)
        continue;
      send(overlap, method->by, target, first, rows);
      lap(watch, INITIATION);
    }
  if (!communicates)
    return;
  wait(overlap, method->by);
  lap(watch, WAIT);
  sync_barrier(team);
  lap(watch, BARRIER);
}

static int64_t hash_of(const double *numbers, int64_t count) {
  uint64_t hash = 0;
  for (int64_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    hash = hash_pair(hash, bits);
  }
  return (int64_t)hash;
}

/* An element of the transform of n elements, by the definition. */
static void transform_of(const double *numbers, int64_t n, int64_t element, double *real, double *imaginary) {
  const double step = -2 * acos(-1) / (double)n;
  *real = *imaginary = 0;
  for (int64_t i = 0; i < n; i++) {
    const double angle = step * (double)(i * element % n), x = numbers[2 * i], y = numbers[2 * i + 1];
    *real += x * cos(angle) - y * sin(angle);
    *imaginary += x * sin(angle) + y * cos(angle);
  }
}

/* Checks one row of a rank: an element of its transform, and the data behind the transform. */
static int verify_row(const struct overlap *overlap, const struct overlap_work *work, int source) {
  const struct ft *ft = overlap->state;
  const struct work *state = work->state;
  const int64_t rows = overlap->values[ROWS], length = state ? state->elements : 0;
  struct rng rng = {hash_pair(overlap->repetition, (uint64_t)source)};
  const int64_t row = rng_below(&rng, rows);
  const double *got = ft->received + source * ft->block + row * ft->row;
  fill_row(overlap, source, overlap->team->rank * rows + row, ft->expected);
  if (memcmp(got + 2 * length, ft->expected + 2 * length, (size_t)(ft->row - 2 * length) * sizeof *got) != 0)
    return failure_set("wrong payload from rank %d: row %lld is not what was sent", source, (long long)row);
  if (length == 0)
    return 0;
  const int64_t element = rng_below(&rng, length);
  double real, imaginary;
  transform_of(ft->expected, length, element, &real, &imaginary);
  const double error = hypot(got[2 * element] - real, got[2 * element + 1] - imaginary);
  if (error <= 1e-13 * (double)length) /* also false for NaN */
    return 0;
  return failure_set("wrong transform from rank %d: element %lld of row %lld is %.17g, expected %.17g",
                     source, (long long)element, (long long)row, got[2 * element], real);
}

/* Whole blocks are compared by hashes of the senders' data after the execution. */
static int verify(struct overlap *overlap, const struct overlap_work *work) {
  struct ft *ft = overlap->state;
  const int procs = overlap->team->procs;
  if (ft->window != MPI_WIN_NULL)
    MPI_Win_sync(ft->window);
  for (int rank = 0; rank < procs; rank++)
    ft->own_hashes[rank] = hash_of(ft->own + rank * ft->block, ft->block);
  team_alltoall(overlap->team, ft->own_hashes, ft->sender_hashes);
  for (int rank = 0; rank < procs; rank++) {
    if (hash_of(ft->received + rank * ft->block, ft->block) != ft->sender_hashes[rank])
      return failure_set("wrong payload from rank %d: its %lld rows are not those that it sent", rank,
                         (long long)overlap->values[ROWS]);
    if (verify_row(overlap, work, rank))
      return -1;
  }
  return 0;
}

const struct overlap_kernel overlap_ft = {
    .name = "ft",
    .summary = "a Fourier transform: each rank has `rows` rows of complex `elements` for each",
    .without = without,
    .parameters = {{"rows", 8, 1, 1 << 20}, {"elements", 4096, 1, 1 << 28}},
    .families = families,
    .most = most,
    .create = create,
    .free = free_ft,
    .work_create = work_create,
    .work_free = work_free,
    .measure = measure,
    .prepare = prepare,
    .run = run,
    .verify = verify,
};
