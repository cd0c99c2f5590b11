/*
 * barrier: every rank counts from its own return from a barrier. Clocks of different nodes are compared by
 * ping-pong before each block, only to tell how far apart the starts were.
 */
#include "../clock.h"
#include "../sync.h"

enum { TAG_BARRIER = 3, TAG_CLOCK = 4, CLOCK_PINGS = 10 };

/* Sends one number, or none, to a rank and receives one from another at the same time. */
static int64_t swap(const struct team *team, int target, int64_t sent, int source, int tag) {
  int64_t received;
  MPI_Request requests[2];
  MPI_Irecv(&received, 1, MPI_INT64_T, source, tag, team->comm, &requests[0]);
  MPI_Isend(&sent, 1, MPI_INT64_T, target, tag, team->comm, &requests[1]);
  team_wait(team, 2, requests);
  return received;
}

void sync_barrier(const struct team *team) {
  const int procs = team->procs;
  for (int distance = 1; distance < procs; distance *= 2)
    swap(team, (team->rank + distance) % procs, 0, (team->rank + procs - distance) % procs, TAG_BARRIER);
}

/* The least delayed of some ping-pongs tells how far the clock of `rank` is from that of rank 0. */
static void compare_clocks(struct sync *sync, int rank) {
  const struct team *team = sync->team;
  int64_t least_ns = INT64_MAX;
  for (int i = 0; i < CLOCK_PINGS; i++) {
    if (team->rank == 0) {
      swap(team, rank, 0, rank, TAG_CLOCK);
      swap(team, rank, clock_ns(), rank, TAG_CLOCK);
    } else {
      const int64_t before = clock_ns();
      swap(team, 0, 0, 0, TAG_CLOCK);
      const int64_t zero_ns = swap(team, 0, 0, 0, TAG_CLOCK);
      const int64_t after = clock_ns();
      if (after - before < least_ns) {
        least_ns = after - before;
        sync->offset_ns = zero_ns - (before + after) / 2;
      }
    }
  }
}

static void prepare(struct sync *sync) {
  if (sync->team->machines == 1)
    return; /* one clock */
  for (int rank = 1; rank < sync->team->procs; rank++)
    if (sync->team->rank == 0 || sync->team->rank == rank)
      compare_clocks(sync, rank);
}

static struct sync_start start(struct sync *sync) {
  sync_barrier(sync->team);
  const int64_t now = clock_ns();
  return (struct sync_start){now, now + sync->offset_ns, false};
}

const struct sync_scheme sync_scheme_barrier = {
    .name = "barrier",
    .summary = "a dissemination barrier; each rank counts from its own return",
    .prepare = prepare,
    .start = start,
};
