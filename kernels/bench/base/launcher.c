#include "launcher.h"
#include "error.h"

#include <stddef.h>
#include <stdlib.h>

/* Variables with the number of processes that was started by Open MPI's launcher, MPICH's and its kin, srun,
   and Flux. */
static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
                                     "FLUX_JOB_SIZE"};

int launcher_check(int procs) {
  const char *several = NULL;
  if (procs > 1)
    return 0;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    const char *value = getenv(counts[i]);
    const long count = value ? strtol(value, NULL, 10) : 0;
    if (count == 1) /* another launcher, inside a job of the first */
      return 0;
    if (count > 1 && !several)
      several = counts[i];
  }
  if (!several)
    return 0;
  return failure_set(
      "the launcher started %s processes (%s), but MPI knows of this one only: start swpbench with "
      "the launcher of the MPI that it was built with",
      getenv(several), several);
}
