/* The state of a launch that goes through methods by size: swpbench run and swpbench soak. */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "cache.h"
#include "launch.h"

struct session {
  struct launch launch;
  const struct team *team;
  const struct options *options;
  struct pattern pattern;
  struct pattern_features features;
  struct method *methods; /* of the current race */
  int nmethods;
  struct cache_filler filler; /* empty unless caches are to be cold */
};

/*
 * Makes the pattern and the list of methods of the first race, opens the file and writes its header, in which
 * the launch is of `operation`. Collective; the failure is agreed. session_free must be called in both cases.
 */
int session_prepare(struct session *session, const struct team *team, const struct options *options,
                    const char *operation);
void session_free(struct session *session);

/* Makes the list of the methods that race next. Local; the failure is equal on all ranks. */
int session_enter(struct session *session, const struct size_race *race);

/* Notes on rank 0 that no method is measured at a size, and why. Local. */
void session_skip_size(struct session *session, int64_t size_bytes, const char *reason);

/* Returns whether the operation can carry the pattern's largest message at this size. */
bool session_is_possible(const struct session *session, int64_t size_bytes);

/* The workload of a size, its seed, and the virtual nodes of the options. Collective; the failure is agreed.
   workload_free must be called in both cases. */
int session_workload(const struct session *session, int64_t size_bytes, struct workload *workload);

#endif
