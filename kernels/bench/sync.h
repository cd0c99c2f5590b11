/* Schemes that start an execution on all ranks together. */
#ifndef BENCH_SYNC_H
#define BENCH_SYNC_H

#include "team.h"

#include <stdint.h>

struct sync_scheme;

struct sync {
  const struct sync_scheme *scheme;
  const struct team *team;
  int64_t offset_ns; /* what this rank's clock must be put forward to show rank 0's time */
  int64_t lead_ns;   /* window: how far ahead rank 0 sets the start instant */
  int64_t delay_ns;  /* window: how long the last announcement took to this rank */
};

/* One start, as this rank saw it. */
struct sync_start {
  int64_t origin_ns; /* the instant from which this rank's part of the sample counts, on its own clock */
  int64_t begin_ns;  /* when it really began, on rank 0's clock */
  bool late;         /* it was not there at the start instant */
};

/* A scheme: one file in sync/, registered by one line in sync/schemes.def. */
struct sync_scheme {
  const char *name;
  const char *summary;
  /* Called before each block of measurements; may be NULL. Collective. */
  void (*prepare)(struct sync *sync);
  /* Returns when this rank is to execute. Collective. */
  struct sync_start (*start)(struct sync *sync);
};

/* The index-th scheme, NULL past the last. */
const struct sync_scheme *sync_scheme(int index);

/* The scheme of that name; NULL: none. An empty name: the window where all ranks share a node, else the
 * barrier. */
const struct sync_scheme *sync_choose(const struct team *team, const char *name);

struct sync sync_create(const struct sync_scheme *scheme, const struct team *team);

/* A dissemination barrier of messages, so that no library's barrier is relied upon. Collective. */
void sync_barrier(const struct team *team);

#endif
