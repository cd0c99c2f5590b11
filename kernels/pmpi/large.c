/*
 * Collectives with large counts (MPI-4), which some callers, as mpi4py, use for all: those that need none are
 * what the others are. Which these are, the bytes of a block tell, equally on all ranks, and not its count,
 * as types may differ. Allgatherv is left to the MPI library: displacements that are too large, a rank alone
 * knows.
 */
#include "dispatch.h"
#include "startup.h"

#ifdef SWP_HAVE_LARGE_COUNTS

#include <limits.h>

/* Whether the block fits an int, of a call that may be dispatched. */
static bool is_small(enum swp_operation operation, MPI_Comm comm, MPI_Count count, MPI_Datatype type) {
  struct place *place = place_for(operation, comm);
  if (place == NULL || count < 0 || count > INT_MAX || type == MPI_DATATYPE_NULL)
    return false;
  MPI_Count size = dispatch_size(place, type);
  return size >= 0 && count * size <= INT_MAX;
}

static bool is_root(MPI_Comm comm, int root) {
  int rank = MPI_PROC_NULL;
  PMPI_Comm_rank(comm, &rank);
  return rank == root;
}

EXPORTED int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (is_small(SWP_BCAST, comm, count, type))
    return MPI_Bcast(buffer, (int)count, type, root, comm);
  return PMPI_Bcast_c(buffer, count, type, root, comm);
}

EXPORTED int MPI_Gather_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                          MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  bool gathers = is_root(comm, root);
  if (is_small(SWP_GATHER, comm, gathers ? recv_count : send_count, gathers ? recv_type : send_type))
    return MPI_Gather(send, (int)send_count, send_type, recv, (int)recv_count, recv_type, root, comm);
  return PMPI_Gather_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

EXPORTED int MPI_Scatter_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                           MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  bool scatters = is_root(comm, root);
  if (is_small(SWP_SCATTER, comm, scatters ? send_count : recv_count, scatters ? send_type : recv_type))
    return MPI_Scatter(send, (int)send_count, send_type, recv, (int)recv_count, recv_type, root, comm);
  return PMPI_Scatter_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

EXPORTED int MPI_Reduce_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                          int root, MPI_Comm comm) {
  if (is_small(SWP_REDUCE, comm, count, type))
    return MPI_Reduce(send, recv, (int)count, type, op, root, comm);
  return PMPI_Reduce_c(send, recv, count, type, op, root, comm);
}

EXPORTED int MPI_Allreduce_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  if (is_small(SWP_ALLREDUCE, comm, count, type))
    return MPI_Allreduce(send, recv, (int)count, type, op, comm);
  return PMPI_Allreduce_c(send, recv, count, type, op, comm);
}

EXPORTED int MPI_Allgather_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                             MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  if (is_small(SWP_ALLGATHER, comm, recv_count, recv_type))
    return MPI_Allgather(send, (int)send_count, send_type, recv, (int)recv_count, recv_type, comm);
  return PMPI_Allgather_c(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

EXPORTED int MPI_Alltoall_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                            MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  if (is_small(SWP_ALLTOALL, comm, recv_count, recv_type))
    return MPI_Alltoall(send, (int)send_count, send_type, recv, (int)recv_count, recv_type, comm);
  return PMPI_Alltoall_c(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

EXPORTED int MPI_Reduce_scatter_block_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                                        MPI_Op op, MPI_Comm comm) {
  if (is_small(SWP_REDUCE_SCATTER_BLOCK, comm, count, type))
    return MPI_Reduce_scatter_block(send, recv, (int)count, type, op, comm);
  return PMPI_Reduce_scatter_block_c(send, recv, count, type, op, comm);
}

#endif
