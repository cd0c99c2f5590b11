#include "canary.h"

#include "clock.h"

enum { TAG_CANARY = 5, ROUND_TRIPS = 3 };

static void pass(const struct team *team, int other, bool sends) {
  int64_t data = 0;
  MPI_Request request;
  if (sends)
    MPI_Isend(&data, 1, MPI_INT64_T, other, TAG_CANARY, team->comm, &request);
  else
    MPI_Irecv(&data, 1, MPI_INT64_T, other, TAG_CANARY, team->comm, &request);
  team_wait(team, 1, &request);
}

static int64_t middle(int64_t a, int64_t b, int64_t c) {
  const int64_t low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

double canary_s(const struct team *team) {
  int64_t trips_ns[ROUND_TRIPS];
  if (team->procs == 1 || team->rank > 1)
    return 0;
  const int other = 1 - team->rank;
  for (int i = -1; i < ROUND_TRIPS; i++) { /* the first one waits for the other rank to arrive */
    const int64_t begin = clock_ns();
    pass(team, other, team->rank == 0);
    pass(team, other, team->rank != 0);
    if (i >= 0)
      trips_ns[i] = clock_ns() - begin;
  }
  return team->rank == 0 ? (double)middle(trips_ns[0], trips_ns[1], trips_ns[2]) * 1e-9 : 0;
}
