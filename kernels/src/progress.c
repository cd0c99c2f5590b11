/* Waiting. MPI libraries that poll without yielding need milliseconds a message when ranks outnumber cores.
 */
#include "plan.h"

#include <sched.h>

void plan_relax(const struct swp_plan *plan) {
  if (plan->yields)
    sched_yield();
}

int progress(const struct swp_plan *plan, int count, MPI_Request *requests, bool block, bool *done) {
  int error = SWP_SUCCESS, complete = 0;
  if (block && !plan->yields) {
    MPI_TRY(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    complete = 1;
  }
  while (!complete) {
    MPI_TRY(MPI_Testall(count, requests, &complete, MPI_STATUSES_IGNORE));
    if (complete || !block)
      break;
    sched_yield();
  }
done:
  *done = complete != 0;
  return error;
}
