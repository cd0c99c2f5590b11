/* Waiting. MPI libraries that poll without yielding need milliseconds a message when ranks outnumber cores.
 */
#include "outstanding.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* A library that itself yields in every poll would give the core away twice a poll: much more than what a
   few polls cost where it does not. */
enum { POLLS_PER_YIELD = 16 };

void swp_plan_relax(struct swp_plan *plan) {
  if (swp_outstanding_any())
    swp_outstanding_progress();
  if (plan->yields && ++plan->idle_polls % POLLS_PER_YIELD == 0)
    sched_yield();
}

/* Open MPI finds by itself that ranks outnumber cores; MPICH 5 is told by a variable, MPICH 4 by our preload.
 */
bool swp_mpi_yields(void) {
#ifdef OPEN_MPI
  const char *setting = getenv("OMPI_MCA_mpi_yield_when_idle");
  return setting == NULL || strcmp(setting, "0") != 0;
#else
  const char *throttle = getenv("MPIR_CVAR_CH4_PROGRESS_THROTTLE"), *preload = getenv("LD_PRELOAD");
  return (throttle != NULL && strcmp(throttle, "0") != 0) ||
         (preload != NULL && strstr(preload, "libswp_yield") != NULL);
#endif
}

/* MPI_Test gives the code of what failed, MPI_Testall has it in a status only. */
static int test(int count, MPI_Request *requests, int *complete) {
  return count == 1 ? MPI_Test(requests, complete, MPI_STATUS_IGNORE)
                    : MPI_Testall(count, requests, complete, MPI_STATUSES_IGNORE);
}

int swp_progress_poll(struct swp_plan *plan, int count, MPI_Request *requests, bool block, bool *done) {
  int error = SWP_SUCCESS, complete = 0;
  MPI_TRY(test(count, requests, &complete));
  while (block && !complete) {
    swp_plan_relax(plan);
    MPI_TRY(test(count, requests, &complete));
  }
done:
  *done = complete != 0;
  return error;
}
