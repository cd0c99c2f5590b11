#include "session.h"

#include "rng.h"

#include <stdlib.h>

void session_skip_size(struct session *session, int64_t size_bytes, const char *reason) {
  for (int m = 0; m < session->nmethods; m++)
    launch_skip(&session->launch, session->methods[m].spec, size_bytes, reason);
  if (session->team->rank == 0 && !session->options->quiet)
    printf("%lld B left out: %s\n", (long long)size_bytes, reason);
}

bool session_is_possible(const struct session *session, int64_t size_bytes) {
  const int64_t most = session->options->operation->message_bytes_most;
  return most == 0 || session->features.message_items_max <= most / size_bytes;
}

int session_workload(const struct session *session, int64_t size_bytes, struct workload *workload) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = (int)session->options->ppn;
  hints.placement = session->options->placement;
  return workload_create(session->team, session->options->operation, &session->pattern, &session->features,
                         size_bytes, hash_pair((uint64_t)session->options->seed, (uint64_t)size_bytes),
                         &hints, workload);
}

int session_enter(struct session *session, const struct size_race *race) {
  const enum swp_operation operation = session->options->operation->operation;
  free(session->methods);
  session->methods = NULL;
  return methods_expand(operation, race->methods, session->team->procs, &session->methods,
                        &session->nmethods);
}

int session_prepare(struct session *session, const struct team *team, const struct options *options,
                    const char *operation) {
  *session =
      (struct session){.launch = launch_create(team, options, operation), .team = team, .options = options};
  if (options->cold)
    session->filler = cache_filler_create();
  struct launch *launch = &session->launch;
  if (launch_open(launch, session_enter(session, &options->races[0])) ||
      pattern_generate(team, &options->pattern, &session->pattern))
    return -1;
  pattern_measure(team, &session->pattern, &session->features);
  pattern_print(&options->pattern, launch->pattern, sizeof launch->pattern);
  return launch_begin(launch);
}

void session_free(struct session *session) {
  launch_free(&session->launch);
  pattern_free(&session->pattern);
  free(session->methods);
  cache_filler_free(&session->filler);
}
