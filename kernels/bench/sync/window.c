/*
 * window: rank 0 announces an instant ahead of the common clock, all ranks spin until then. It asks first
 * whether all are there, up a binomial tree that also brings the slowest announcement of last time, by which
 * it sets how far ahead the instant must lie; the announcement goes down the same tree.
 */
#include "../clock.h"
#include "../error.h"
#include "../sync.h"

enum { TAG_WINDOW = 2 };

static const int64_t LEAD_LEAST_NS = 5000, LEAD_MOST_NS = 5000000;

static void receive(const struct team *team, int64_t *data, int count, int source) {
  MPI_Request request;
  MPI_Irecv(data, count, MPI_INT64_T, source, TAG_WINDOW, team->comm, &request);
  team_wait(team, 1, &request);
}

static void send(const struct team *team, const int64_t *data, int count, int target) {
  MPI_Request request;
  MPI_Isend(data, count, MPI_INT64_T, target, TAG_WINDOW, team->comm, &request);
  team_wait(team, 1, &request);
}

/* Waits for the ranks below in the tree and tells the one above; returns the bit that leads up from here. */
static int gather(const struct team *team, int64_t *delay_ns) {
  int bit = 1;
  for (; bit < team->procs && !(team->rank & bit); bit <<= 1) {
    int64_t below;
    if (team->rank + bit >= team->procs)
      continue;
    receive(team, &below, 1, team->rank + bit);
    if (below > *delay_ns)
      *delay_ns = below;
  }
  if (team->rank)
    send(team, delay_ns, 1, team->rank - bit);
  return bit;
}

/* Three times the slowest announcement; after a slow one it shrinks back step by step. */
static int64_t next_lead(int64_t lead_ns, int64_t delay_ns) {
  int64_t wanted = lead_ns - lead_ns / 8;
  if (wanted < 3 * delay_ns)
    wanted = 3 * delay_ns;
  if (wanted < LEAD_LEAST_NS)
    wanted = LEAD_LEAST_NS;
  return wanted < LEAD_MOST_NS ? wanted : LEAD_MOST_NS;
}

static struct sync_start start(struct sync *sync) {
  const struct team *team = sync->team;
  int bit = gather(team, &sync->delay_ns);
  int64_t announcement[2]; /* when it was made, and the instant */
  if (team->rank == 0) {
    sync->lead_ns = next_lead(sync->lead_ns, sync->delay_ns);
    announcement[0] = clock_ns();
    announcement[1] = announcement[0] + sync->lead_ns;
  } else {
    receive(team, announcement, 2, team->rank - bit);
  }
  while (bit >>= 1)
    if (team->rank + bit < team->procs)
      send(team, announcement, 2, team->rank + bit);

  int64_t now = clock_ns();
  sync->delay_ns = now - announcement[0];
  const bool late = now > announcement[1];
  if (announcement[1] - now > LEAD_MOST_NS) {
    failure_set("--sync window needs one clock for all ranks; use --sync barrier");
    team_abort();
  }
  now = clock_wait(announcement[1], team->oversubscribed);
  return (struct sync_start){announcement[1], now, late};
}

const struct sync_scheme sync_scheme_window = {
    .name = "window",
    .summary = "a common start instant; needs a common clock",
    .start = start,
};
