#include "sync.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS_BETWEEN = 10 };

extern const struct sync_scheme sync_scheme_window, sync_scheme_hca, sync_scheme_barrier;

static const struct sync_scheme *const schemes[] = {&sync_scheme_window, &sync_scheme_hca,
                                                    &sync_scheme_barrier, NULL};

const struct sync_scheme *sync_find(const char *name) {
  for (int i = 0; schemes[i]; i++)
    if (strcmp(schemes[i]->name, name) == 0)
      return schemes[i];
  return NULL;
}

int sync_check_scheme(const struct team *team, const char *name) {
  return team->machines > 1 && strcmp(name, "window") == 0
             ? failure_set("--sync window: these machines have clocks of their own; write hca or barrier")
             : 0;
}

bool sync_is_due(int round) {
  return round > 0 && round % ROUNDS_BETWEEN == 0;
}

void sync_prepare(struct sync *sync) {
  clocks_learn(&sync->clocks);
}

void sync_check(struct sync *sync) {
  sync->check = clocks_check(&sync->clocks);
}

static const char *usual_scheme(const struct sync *sync) {
  if (sync->team->machines == 1)
    return "window";
  return sync->falls_back ? "barrier" : "hca";
}

struct sync sync_create(const struct team *team, const char *name) {
  struct sync sync = {.team = team, .clocks = clocks_create(team)};
  sync_prepare(&sync);
  sync_check(&sync);
  sync.falls_back = !*name && !sync.check.agrees;
  sync.scheme = sync_find(*name ? name : usual_scheme(&sync));
  if (sync.falls_back && team->rank == 0)
    printf("swpbench: executions start by barriers: the clocks of %d machines agree only to %.3g us\n",
           team->machines, sync.check.error_s * 1e6);
  return sync;
}
