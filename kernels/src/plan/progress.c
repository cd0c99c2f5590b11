/* Waiting. MPI libraries that poll without yielding need milliseconds per message when ranks outnumber
   cores. */
#include "outstanding.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* With a library that yields in every poll, yielding here too would double the yields, which cost much more
   than a few polls without yielding. */
enum { POLLS_PER_YIELD = 16 };

void swp_plan_relax(struct swp_plan *plan) {
  if (swp_outstanding_any())
    swp_outstanding_progress();
  if (plan->yields && ++plan->idle_polls % POLLS_PER_YIELD == 0)
    sched_yield();
}

/* Open MPI detects that ranks outnumber cores; MPICH 5 needs a variable, MPICH 4 our preload. */
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

/* MPI_Test returns the error code of a failed request, MPI_Testall has it only in a status. */
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
