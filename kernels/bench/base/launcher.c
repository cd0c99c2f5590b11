#include "launcher.h"
#include "error.h"

#include <stdbool.h>
#include <stdlib.h>

/* Variables with the number of processes that was started by Open MPI's launcher, and by MPICH's and its kin;
   by srun, and by Flux, in whose jobs another launcher may have started the processes. */
static const char *const launchers[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
static const char *const schedulers[] = {"SLURM_STEP_NUM_TASKS", "FLUX_JOB_SIZE"};

/* Returns whether a variable has a number, and one with several, unless one has 1: that of another launcher,
   inside a job of the first. */
static bool find_count(const char *const variables[2], const char **several) {
  for (int i = 0; i < 2; i++) {
    const char *value = getenv(variables[i]);
    const long count = value ? strtol(value, NULL, 10) : 0;
    if (count == 1) {
      *several = NULL;
      return true;
    }
    if (count > 1)
      *several = variables[i];
  }
  return *several != NULL;
}

int launcher_check(int procs) {
  const char *several = NULL;
  if (procs == 1 && !find_count(launchers, &several))
    find_count(schedulers, &several);
  if (!several)
    return 0;
  return failure_set(
      "the launcher started %s processes (%s), but MPI knows of this one only: start swpbench with "
      "the launcher of the MPI that it was built with",
      getenv(several), several);
}
