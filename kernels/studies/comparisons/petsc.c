/* PETSc's PetscCommBuildTwoSided, with each of its types. It requires messages of one size. */
#include "rival.h"

#include <petscsys.h>

/* In the order of .variants. */
static const PetscBuildTwoSidedType types[] = {PETSC_BUILDTWOSIDED_ALLREDUCE, PETSC_BUILDTWOSIDED_IBARRIER,
                                               PETSC_BUILDTWOSIDED_REDSCATTER};

static PetscMPIInt *sources;
static void *received;

static void check(PetscErrorCode error) {
  if (error == PETSC_SUCCESS)
    return;
  team_fail("PETSc fails with error %d", (int)error);
}

/* Stays initialized, as the attributes that it keeps on a communicator must outlive that. */
static void start(const struct workload *workload) {
  (void)workload;
  PetscBool initialized;
  check(PetscInitialized(&initialized));
  if (!initialized)
    check(PetscInitializeNoArguments());
}

static struct delivery execute(const struct workload *workload, int message_bytes, int variant) {
  const struct lists *sends = &workload->pattern->sends;
  PetscMPIInt nsources;
  check(PetscCommBuildTwoSidedSetType(workload->team->comm, types[variant]));
  check(PetscCommBuildTwoSided(workload->team->comm, message_bytes, MPI_BYTE, sends->n, sends->ranks,
                               workload->send, &nsources, &sources, &received));
  return (struct delivery){nsources, sources, received};
}

static void release(void) {
  check(PetscFree(sources));
  check(PetscFree(received));
}

const struct rival petsc = {
    .variants = {"PETSc allreduce", "PETSc ibarrier", "PETSc redscatter"},
    .open = start,
    .execute = execute,
    .release = release,
};
