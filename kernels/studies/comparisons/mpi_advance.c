/* MPI Advance's MPIL_Alltoallv_crs, with each of its methods. */
#include "rival.h"

#include <locality_aware.h>
#include <stdlib.h>

/* In the order of .variants. */
static const enum AlltoallvCRSMethod methods[] = {ALLTOALLV_CRS_PERSONALIZED, ALLTOALLV_CRS_NONBLOCKING,
                                                  ALLTOALLV_CRS_PERSONALIZED_LOC,
                                                  ALLTOALLV_CRS_NONBLOCKING_LOC};

static MPIL_Comm *comm;
static MPIL_Info *info;
static int *counts, *displacements;
static int *sources, *received_counts, *received_displacements;
static void *received;

static void start(const struct workload *workload) {
  const int n = workload->pattern->sends.n;
  MPIL_Comm_init(&comm, workload->team->comm);
  MPIL_Comm_topo_init(comm);
  MPIL_Info_init(&info);
  counts = allocate((size_t)n * sizeof *counts);
  displacements = allocate((size_t)(n + 1) * sizeof *displacements);
}

static void stop(void) {
  MPIL_Info_free(&info);
  MPIL_Comm_free(&comm);
  free(counts);
  free(displacements);
}

static struct delivery execute(const struct workload *workload, int message_bytes, int variant) {
  const struct lists *sends = &workload->pattern->sends;
  int nsources, nbytes;
  for (int i = 0; i < sends->n; i++) {
    counts[i] = message_bytes;
    displacements[i] = i * message_bytes;
  }
  displacements[sends->n] = sends->n * message_bytes;
  MPIL_Set_alltoallv_crs(methods[variant]);
  MPIL_Alltoallv_crs(sends->n, sends->n * message_bytes, sends->ranks, counts, displacements, MPI_BYTE,
                     workload->send, &nsources, &nbytes, &sources, &received_counts, &received_displacements,
                     MPI_BYTE, &received, info, comm);
  return (struct delivery){nsources, sources, received};
}

static void release(void) {
  MPIL_Free(sources);
  MPIL_Free(received_counts);
  MPIL_Free(received_displacements);
  MPIL_Free(received);
}

const struct rival mpi_advance = {
    .variants = {"MPI Advance personalized", "MPI Advance nonblocking", "MPI Advance personalized local",
                 "MPI Advance nonblocking local"},
    .open = start,
    .close = stop,
    .execute = execute,
    .release = release,
};
