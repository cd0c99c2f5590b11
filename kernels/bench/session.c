#include "session.h"

#include "clock.h"
#include "error.h"
#include "rng.h"

#include <stdlib.h>
#include <string.h>

void session_skip(struct session *session, const char *method, int64_t size_bytes, const char *reason) {
  if (session->team->rank)
    return;
  const size_t room = ((size_t)session->nskipped + 1) * sizeof *session->skipped;
  session->skipped = reallocate(session->skipped, room);
  struct skipped *skipped = &session->skipped[session->nskipped++];
  *skipped = (struct skipped){.size_bytes = size_bytes};
  snprintf(skipped->method, sizeof skipped->method, "%s", method);
  snprintf(skipped->reason, sizeof skipped->reason, "%s", reason);
}

void session_skip_size(struct session *session, int64_t size_bytes, const char *reason) {
  for (int m = 0; m < session->nmethods; m++)
    session_skip(session, session->methods[m].spec, size_bytes, reason);
  if (session->team->rank == 0)
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

double session_seconds(const struct session *session) {
  return (double)(clock_ns() - session->begin_ns) * 1e-9;
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
  *session = (struct session){.team = team, .options = options, .begin_ns = clock_ns()};
  int status = session_enter(session, &options->races[0]);
  if (status == 0 && team->rank == 0)
    status = output_open(&session->output, options->out);
  if (team_agree(team, status) || pattern_generate(team, &options->pattern, &session->pattern))
    return -1;
  pattern_measure(team, &session->pattern, &session->features);
  facts_collect(team, &session->facts);
  session->sync = sync_create(team, options->sync);
  pattern_print(&options->pattern, session->pattern_text, sizeof session->pattern_text);
  session->launch = (struct launch){.team = team,
                                    .options = options,
                                    .facts = &session->facts,
                                    .sync = &session->sync,
                                    .tick_ns = clock_tick_ns(),
                                    .operation = operation,
                                    .pattern = session->pattern_text};
  return team_agree(team, team->rank == 0 ? emit_header(&session->output, &session->launch) : 0);
}

void session_free(struct session *session) {
  output_close(&session->output);
  pattern_free(&session->pattern);
  free(session->methods);
  free(session->skipped);
  free(session->facts.hostnames);
}
