/*
 * barrier: every rank counts from its own return from a barrier. The clocks of several machines serve only to
 * report how far apart the starts were.
 */
#include "clock.h"
#include "sync.h"

enum { TAG_BARRIER = 3 };

void sync_barrier(const struct team *team) {
  const int procs = team->procs;
  for (int distance = 1; distance < procs; distance *= 2) {
    const int target = (team->rank + distance) % procs, source = (team->rank + procs - distance) % procs;
    MPI_Request requests[2];
    MPI_Irecv(NULL, 0, MPI_BYTE, source, TAG_BARRIER, team->comm, &requests[0]);
    MPI_Isend(NULL, 0, MPI_BYTE, target, TAG_BARRIER, team->comm, &requests[1]);
    team_wait(team, 2, requests);
  }
}

static struct sync_start start(struct sync *sync) {
  sync_barrier(sync->team);
  const int64_t now = clock_ns();
  return (struct sync_start){now, clocks_common(&sync->clocks, now), false};
}

const struct sync_scheme sync_scheme_barrier = {
    .name = "barrier",
    .start = start,
};
