/*
 * finalize.c: a preload for MPICH before 4.2 over UCX and TCP, where MPI_Finalize can hang: to close a
 * connection takes an answer of the other rank, which may be done already and wait outside of MPI's progress
 * (github.com/pmodels/mpich/pull/6596). With this library no rank closes its connections before all have
 * ended; UCX does when it is torn down. The barrier makes sure that nothing is under way by then.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *ucp_disconnect_nb(void *endpoint);

/* UCX's function, without effect: NULL tells that the connection is closed. */
void *ucp_disconnect_nb(void *endpoint) {
  (void)endpoint;
  return NULL;
}

typedef int finalize_function(void);

/* Goes on to what stands behind, which may be another preload. */
EXPORTED int MPI_Finalize(void) {
  finalize_function *next = NULL;
  int error = PMPI_Barrier(MPI_COMM_WORLD);
  *(void **)&next = dlsym(RTLD_NEXT, "MPI_Finalize");
  return error ? error : next ? next() : PMPI_Finalize();
}
