/*
 * finalize.c: a workaround for MPICH before 4.2 over UCX and TCP, where MPI_Finalize can hang: closing a
 * connection needs an answer from the other rank, which may already have finished and wait outside MPI's
 * progress (github.com/pmodels/mpich/pull/6596). With this library no rank closes its connections before all
 * have ended; UCX does when it is torn down. The barrier makes sure that nothing is under way by then.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *ucp_disconnect_nb(void *endpoint);
EXPORTED int swp_finalize_await(void);

/* Replaces UCX's function, without effect: NULL means that the connection is closed. */
void *ucp_disconnect_nb(void *endpoint) {
  (void)endpoint;
  return NULL;
}

/* Waits for all ranks: for the other libraries of this project, which end MPI themselves. */
int swp_finalize_await(void) {
  return PMPI_Barrier(MPI_COMM_WORLD);
}

typedef int finalize_function(void);

/* Calls the next definition, which may be another library's. */
EXPORTED int MPI_Finalize(void) {
  finalize_function *next = NULL;
  int error = swp_finalize_await();
  *(void **)&next = dlsym(RTLD_NEXT, "MPI_Finalize");
  return error ? error : next ? next() : PMPI_Finalize();
}
