/* Schemes that start an execution on all ranks together. */
#ifndef BENCH_SYNC_H
#define BENCH_SYNC_H

#include "clocks.h"

struct sync_scheme;

struct sync {
  const struct sync_scheme *scheme;
  const struct team *team;
  struct clocks clocks;
  struct clock_check check; /* the latest, of the clocks */
  bool falls_back;          /* to barriers: clocks do not agree well enough for the usual scheme */
  int64_t lead_ns;          /* window: how far ahead rank 0 sets the start instant */
  int64_t delay_ns;         /* window: how long the last announcement took to this rank */
};

/* One start, as this rank saw it. */
struct sync_start {
  int64_t origin_ns; /* the instant from which this rank's part of the sample counts, on its own clock */
  int64_t begin_ns;  /* when it really began, on rank 0's clock */
  bool late;         /* it was not ready at the start instant */
};

/* A scheme: defined in a file here, registered in sync.c. */
struct sync_scheme {
  const char *name;
  /* Returns when this rank is to execute. Collective. */
  struct sync_start (*start)(struct sync *sync);
};

/* The scheme of that name; NULL: none. */
const struct sync_scheme *sync_find(const char *name);

/* 0, or -1 with failure_text() set where the scheme of that name cannot start ranks of so many machines.
   Local. */
int sync_check_scheme(const struct team *team, const char *name);

/*
 * Starts by the scheme of that name, or for an empty one: window on one machine; on several hca if their
 * clocks agree after a first synchronisation, and else barrier, which rank 0 then reports on stdout.
 * Collective.
 */
struct sync sync_create(const struct team *team, const char *name);

/* Synchronises the clocks of several machines anew: before each block of measurements, and before those of
   its rounds for which that is due. Collective. */
void sync_prepare(struct sync *sync);

/* Whether it is due before the n-th round of a block, from 0 on: now and then, as clocks drift apart. */
bool sync_is_due(int round);

/* Sets sync->check, after each block. Collective. */
void sync_check(struct sync *sync);

/* A dissemination barrier of messages, so that no library's barrier is relied upon. Collective. */
void sync_barrier(const struct team *team);

#endif
