#include "contender.h"

#include "clock.h"
#include "error.h"
#include "hang.h"
#include "sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Plans and notes the time. Errors are those of the library, equal on every rank. */
static int plan_timed(const struct workload *workload, struct contender *contender) {
  hang_next("planning", contender->method->spec, workload->payload.item_bytes);
  sync_barrier(workload->team);
  const int64_t begin = clock_ns();
  const int error = workload->operation->plan(workload, contender->method->spec, &contender->plan);
  if (error)
    return error;
  contender->plan_s = (double)(clock_ns() - begin) * 1e-9;
  team_allreduce(workload->team, &contender->plan_s, 1, MPI_DOUBLE, MPI_MAX);
  return SWP_SUCCESS;
}

static int plan_contender(const struct workload *workload, struct contender *contender) {
  if (!contender->method->applicable) {
    snprintf(contender->reason, sizeof contender->reason, "not applicable to %d processes",
             workload->team->procs);
    return 0;
  }
  const int error = plan_timed(workload, contender);
  if (error == SWP_ERR_NOT_APPLICABLE || error == SWP_ERR_TOO_LARGE) {
    snprintf(contender->reason, sizeof contender->reason, "%s", swp_error_message());
    return 0;
  }
  if (error)
    return failure_set("cannot plan %s: %s", contender->method->spec, swp_error_message());
  swp_plan_statistics(contender->plan, NULL, &contender->statistics);
  team_allreduce(workload->team, &contender->statistics.plan_bytes, 1, MPI_INT64_T, MPI_MAX);
  snprintf(contender->selected, sizeof contender->selected, "%s", swp_plan_method(contender->plan));
  if (strcmp(contender->spec, "auto") != 0)
    memcpy(contender->spec, contender->selected, sizeof contender->spec);
  else
    swp_plan_describe(contender->plan, contender->described, sizeof contender->described);
  return 0;
}

int contenders_plan(const struct workload *workload, const struct method *methods, int nmethods,
                    struct contender *contenders, int *count) {
  *count = 0;
  for (int m = 0; m < nmethods; m++) {
    struct contender *contender = &contenders[*count];
    *contender = (struct contender){.method = &methods[m], .inner = 1};
    memcpy(contender->spec, methods[m].spec, sizeof contender->spec);
    ++*count;
    if (team_agree(workload->team, plan_contender(workload, contender)))
      return -1;
    for (int i = 0; i < *count - 1; i++)
      if (strcmp(contenders[i].spec, contender->spec) == 0) {
        swp_plan_free(&contender->plan);
        --*count;
        break;
      }
  }
  return 0;
}

void contenders_free(struct contender *contenders, int count) {
  hang_next("going on to a size", NULL, 0);
  for (int i = 0; i < count; i++) {
    swp_plan_free(&contenders[i].plan);
    free(contenders[i].samples);
  }
}
