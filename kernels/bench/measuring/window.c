/*
 * window: rank 0 announces an instant ahead of its clock, all ranks spin until then. It asks first whether
 * all are there, up a binomial tree that also brings the slowest announcement of last time, by which it sets
 * how far ahead the instant must lie; the announcement goes down the same tree.
 * hca: the same for machines with clocks of their own, which are synchronised (clocks.h).
 */
#include "clock.h"
#include "sync.h"

enum { TAG_WINDOW = 2 };

static const int64_t LEAD_LEAST_NS = 5000, LEAD_MOST_NS = 5000000;

/* For the first start, when no announcement was timed yet; without warm-up it already counts. */
static const int64_t LEAD_FIRST_NS = SWP_SIMULATED ? 5000000 : 0;

/* Waits for the ranks below in the tree and notifies the one above; returns the bit that leads up from
   here. */
static int gather(const struct team *team, int64_t *delay_ns) {
  int bit = 1;
  for (; bit < team->procs && !(team->rank & bit); bit <<= 1) {
    int64_t below;
    if (team->rank + bit >= team->procs)
      continue;
    team_receive(team, team->comm, &below, 1, team->rank + bit, TAG_WINDOW);
    if (below > *delay_ns)
      *delay_ns = below;
  }
  if (team->rank)
    team_send(team, team->comm, delay_ns, 1, team->rank - bit, TAG_WINDOW);
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

static struct sync_start start_together(struct sync *sync, const struct clocks *clocks) {
  const struct team *team = sync->team;
  int bit = gather(team, &sync->delay_ns);
  int64_t announcement[2]; /* when it was made, and the instant */
  if (team->rank == 0) {
    sync->lead_ns = next_lead(sync->lead_ns > 0 ? sync->lead_ns : LEAD_FIRST_NS, sync->delay_ns);
    announcement[0] = clock_ns();
    announcement[1] = announcement[0] + sync->lead_ns;
  } else {
    team_receive(team, team->comm, announcement, 2, team->rank - bit, TAG_WINDOW);
  }
  while (bit >>= 1)
    if (team->rank + bit < team->procs)
      team_send(team, team->comm, announcement, 2, team->rank + bit, TAG_WINDOW);

  int64_t now = clock_ns();
  const int64_t begin = clocks_own(clocks, announcement[1]);
  sync->delay_ns = clocks_common(clocks, now) - announcement[0];
  const bool late = now > begin;
  if (begin - now > 2 * LEAD_MOST_NS)
    team_fail("--sync %s: clocks differ by %.3g s; use --sync barrier", sync->scheme->name,
              (double)(begin - now) * 1e-9);
  now = clock_wait(begin, team->oversubscribed);
  return (struct sync_start){begin, clocks_common(clocks, now), late};
}

static struct sync_start start_by_one_clock(struct sync *sync) {
  static const struct clocks one = {.team = NULL};
  return start_together(sync, &one);
}

static struct sync_start start_by_clocks(struct sync *sync) {
  return start_together(sync, &sync->clocks);
}

const struct sync_scheme sync_scheme_window = {
    .name = "window",
    .start = start_by_one_clock,
};

const struct sync_scheme sync_scheme_hca = {
    .name = "hca",
    .start = start_by_clocks,
};
