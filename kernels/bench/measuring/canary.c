#include "canary.h"

#include "clock.h"

#include <stdlib.h>

enum { TAG_CANARY = 5, ROUND_TRIPS = 3, CROSSING_WORDS = (64 << 10) / sizeof(int64_t) };

static int64_t middle(int64_t a, int64_t b, int64_t c) {
  const int64_t low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

/* The median round trip with another rank, of which the lower one sends first. */
static double ping_pong_s(const struct team *team, int other, int64_t *data, int count) {
  int64_t trips_ns[ROUND_TRIPS];
  for (int i = -1; i < ROUND_TRIPS; i++) { /* the first one waits for the other rank to arrive */
    const int64_t begin = clock_ns();
    if (team->rank < other)
      team_send(team, team->comm, data, count, other, TAG_CANARY);
    team_receive(team, team->comm, data, count, other, TAG_CANARY);
    if (team->rank > other)
      team_send(team, team->comm, data, count, other, TAG_CANARY);
    if (i >= 0)
      trips_ns[i] = clock_ns() - begin;
  }
  return (double)middle(trips_ns[0], trips_ns[1], trips_ns[2]) * 1e-9;
}

double canary_s(const struct team *team) {
  int64_t data = 0;
  if (team->procs == 1 || team->rank > 1)
    return 0;
  const double trip_s = ping_pong_s(team, 1 - team->rank, &data, 1);
  return team->rank == 0 ? trip_s : 0;
}

double canary_crossing_s(const struct team *team) {
  const struct swp_hints real = SWP_HINTS_DEFAULT;
  const int half = team->procs / 2, other = team->rank < half ? team->rank + half : team->rank - half;
  double trip_s = 0;
  bool near = true;
  if (team->nodes == 1)
    return 0;
  if (team->rank < 2 * half) /* else it is the odd one */
    team_find_near(team, &real, 1, &other, &near);
  if (!near) {
    int64_t *data = allocate_zeros(CROSSING_WORDS * sizeof *data);
    trip_s = ping_pong_s(team, other, data, CROSSING_WORDS);
    free(data);
  }
  team_allreduce(team, &trip_s, 1, MPI_DOUBLE, MPI_MAX);
  return trip_s;
}
