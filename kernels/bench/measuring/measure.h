/* Measures one block, all methods at one size: docs/explanation/measuring.md. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "cache.h"
#include "contender.h"
#include "sync.h"

/* Rounds before those that count. */
enum { WARM_UPS = SWP_SIMULATED ? 0 : 2 };

enum next_round { STOP, RUN, RUN_VERIFIED };

/* The kind of round that follows n rounds out of at most `most`; the last one is always verified. *why says
   why none follows: "limit", "precision" or "budget". */
enum next_round next_round(int n, int most, bool precise, bool over, enum next_round last, const char **why);

struct block {
  const struct team *team;
  struct sync *sync;
  struct workload *workload;
  struct contender *contenders;
  int count;
  uint64_t seed; /* of the order within the rounds */
  int max_samples;
  bool staggered;             /* in each round ranks begin up to stagger_ns late */
  int64_t stagger_ns;         /* 0: the time of the fastest method's execution */
  struct cache_filler filler; /* read before each sample; empty: caches stay warm */
  int64_t tick_ns;
  int64_t deadline_ns; /* of rank 0's clock; INT64_MAX: none */
  int samples;         /* measured, of each contender that has a plan */
  const char *stopped; /* on rank 0: "precision", "limit" or "budget" */
};

/*
 * Measures until precise, at the limit or out of time; at least one round. Collective. Wrong payloads are
 * agreed (-1); a failing execution ends the job.
 */
int block_measure(struct block *block);

/* The time of the shortest of this many rounds, of which nothing is kept. Collective; a failing execution
   ends the job. */
int64_t block_try(struct block *block, int rounds);

#endif
