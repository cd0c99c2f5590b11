/* Probes of all ranks: a nonblocking barrier, and a fence. */
#include "together.h"

#include "clock.h"

enum { WARM_UP = 2, WINDOW_BYTES = 64, PUT = 0, SUM = 1, CELLS = 2 };

/* All ranks do it together; the slowest counts. */
static void measure(struct sync *sync, void (*once)(const struct team *team, MPI_Win window), MPI_Win window,
                    int samples, double *seconds) {
  sync_barrier(sync->team);
  sync_prepare(sync);
  for (int s = -WARM_UP; s < samples; s++) {
    sync->scheme->start(sync);
    const int64_t begin_ns = clock_ns();
    once(sync->team, window);
    if (s >= 0)
      seconds[s] = (double)(clock_ns() - begin_ns) * 1e-9;
  }
  team_allreduce(sync->team, seconds, samples, MPI_DOUBLE, MPI_MAX);
}

static void barrier_once(const struct team *team, MPI_Win window) {
  MPI_Request request;
  (void)window;
  MPI_Ibarrier(team->comm, &request);
  team_wait(team, 1, &request);
}

static void fence_once(const struct team *team, MPI_Win window) {
  (void)team;
  MPI_Win_fence(0, window);
}

void together_barriers(struct sync *sync, int samples, double *seconds) {
  measure(sync, barrier_once, MPI_WIN_NULL, samples, seconds);
}

/* The ways to get a window. false: it is none for these ranks. */
static bool allocated(const struct team *team, int **cells, MPI_Win *window) {
  return MPI_Win_allocate(WINDOW_BYTES, sizeof(int), MPI_INFO_NULL, team->comm, cells, window) == MPI_SUCCESS;
}

static bool allocated_shared(const struct team *team, int **cells, MPI_Win *window) {
  return team->nodes == 1 && MPI_Win_allocate_shared(WINDOW_BYTES, sizeof(int), MPI_INFO_NULL, team->comm,
                                                     cells, window) == MPI_SUCCESS;
}

static bool created(const struct team *team, int **cells, MPI_Win *window) {
  static int own[WINDOW_BYTES / sizeof(int)];
  *cells = own;
  return MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, team->comm, window) == MPI_SUCCESS;
}

static bool (*const kinds[])(const struct team *team, int **cells,
                             MPI_Win *window) = {allocated, allocated_shared, created};

/* Every rank puts its number at the next one, and adds one at every rank. */
static bool holds(const struct team *team, volatile int *cells, MPI_Win window) {
  const int one = 1, next = (team->rank + 1) % team->procs;
  const int before = (team->rank + team->procs - 1) % team->procs;
  cells[PUT] = -1;
  cells[SUM] = 0;
  MPI_Win_fence(0, window);
  MPI_Put(&team->rank, 1, MPI_INT, next, PUT, 1, MPI_INT, window);
  for (int rank = 0; rank < team->procs; rank++)
    MPI_Accumulate(&one, 1, MPI_INT, rank, SUM, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  int right = cells[PUT] == before && cells[SUM] == team->procs;
  MPI_Win_fence(0, window);
  team_allreduce(team, &right, 1, MPI_INT, MPI_MIN);
  return right;
}

bool together_fences(struct sync *sync, int samples, double *seconds) {
  const struct team *team = sync->team;
  bool measured = false;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && !measured; k++) {
    int *cells;
    MPI_Win window;
    if (!kinds[k](team, &cells, &window))
      continue;
    measured = holds(team, cells, window);
    if (measured)
      measure(sync, fence_once, window, samples, seconds);
    MPI_Win_free(&window);
  }
  return measured;
}
