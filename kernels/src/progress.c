/* Waiting. MPI libraries that poll without yielding need milliseconds a message when ranks outnumber cores.
 */
#include "plan.h"

#include <sched.h>

/* A library that itself yields in every poll would give the core away twice a poll: much more than what a
   few polls cost where it does not. */
enum { POLLS_PER_YIELD = 16 };

void swp_plan_relax(struct swp_plan *plan) {
  if (plan->yields && ++plan->idle_polls % POLLS_PER_YIELD == 0)
    sched_yield();
}

int swp_progress(struct swp_plan *plan, int count, MPI_Request *requests, bool block, bool *done) {
  int error = SWP_SUCCESS, complete = 0;
  if (block && !plan->yields) {
    MPI_TRY(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    complete = 1;
  }
  while (!complete) {
    MPI_TRY(MPI_Testall(count, requests, &complete, MPI_STATUSES_IGNORE));
    if (complete || !block)
      break;
    swp_plan_relax(plan);
  }
done:
  *done = complete != 0;
  return error;
}
