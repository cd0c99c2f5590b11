/*
 * Collectives with large counts (MPI-4), which some callers, as mpi4py, use for all: those that need none are
 * what the others are. Which these are, the bytes of a block tell, equally on all ranks, and not its count,
 * as types may differ.
 */
#include "dispatch.h"
#include "startup.h"

#ifdef SWP_HAVE_LARGE_COUNTS

#include <limits.h>
#include <stdlib.h>

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

/* ---- Allgatherv ---- */

/* Where blocks of an allgatherv go. */
struct blocks {
  const MPI_Count *counts;
  const MPI_Aint *displs;
  MPI_Datatype type;
  int64_t most, total; /* items of one block, and of all */
};

/* Counts the items. Whether all blocks are INT_MAX bytes at most, which all ranks answer alike; of a type
   without bytes there may be any number of items. */
static bool count_blocks(struct place *place, struct blocks *blocks) {
  MPI_Count size = blocks->type == MPI_DATATYPE_NULL ? -1 : dispatch_size(place, blocks->type);
  if (size <= 0)
    return false;
  for (int i = 0; i < place->procs; i++) {
    MPI_Count count = blocks->counts[i];
    if (count < 0 || count > INT_MAX / size - blocks->total)
      return false;
    blocks->total += count;
    blocks->most = count > blocks->most ? count : blocks->most;
  }
  return true;
}

/* Copies counts and displacements to twice as many ints as there are ranks. False where a displacement is
   too large, which this rank alone knows: the blocks are then to come one after the other. */
static bool narrow(const struct blocks *blocks, int procs, int *counts, int *displs) {
  bool fits = true;
  for (int i = 0; i < procs; i++) {
    counts[i] = (int)blocks->counts[i];
    displs[i] = counts[i] > 0 ? (int)blocks->displs[i] : 0;
    fits = fits && (counts[i] == 0 || displs[i] == blocks->displs[i]);
  }
  for (int i = 0, next = 0; i < procs && !fits; next += counts[i++])
    displs[i] = next;
  return fits;
}

/* Room for all items one after the other; *memory is to be freed. Gives the first item's address. */
static char *make_row(const struct blocks *blocks, MPI_Aint *extent, void **memory) {
  MPI_Aint lower, low, span, behind = 0;
  PMPI_Type_get_extent(blocks->type, &lower, extent);
  PMPI_Type_get_true_extent(blocks->type, &low, &span);
  behind = blocks->total > 0 ? (MPI_Aint)(blocks->total - 1) * *extent : 0;
  *memory = malloc((size_t)(span + (behind < 0 ? -behind : behind)) + 1);
  return *memory == NULL ? NULL : (char *)*memory - low - (behind < 0 ? behind : 0);
}

/* To where the caller wants them. */
static void move_blocks(struct place *place, const struct blocks *blocks, char *row, MPI_Aint extent,
                        char *recv) {
  for (int i = 0; i < place->procs; row += blocks->counts[i++] * extent)
    PMPI_Sendrecv(row, (int)blocks->counts[i], blocks->type, place->rank, 0,
                  recv + blocks->displs[i] * extent, (int)blocks->counts[i], blocks->type, place->rank, 0,
                  place->own, MPI_STATUS_IGNORE);
}

/* As dispatch. */
static bool dispatch_blocks(struct place *place, const void *send, MPI_Count send_count,
                            MPI_Datatype send_type, char *recv, const struct blocks *blocks, int *result) {
  MPI_Aint extent;
  void *memory = NULL;
  int *lists = malloc(2 * (size_t)place->procs * sizeof *lists);
  struct swp_collective problem = {.operation = SWP_ALLGATHERV,
                                   .send_count = (int)send_count,
                                   .send_type = send == MPI_IN_PLACE ? MPI_DATATYPE_NULL : send_type,
                                   .recv_counts = lists,
                                   .displs = lists == NULL ? NULL : lists + place->procs,
                                   .recv_type = blocks->type,
                                   .op = MPI_OP_NULL};
  bool fits = lists != NULL && narrow(blocks, place->procs, lists, lists + place->procs);
  char *to = fits ? recv : make_row(blocks, &extent, &memory);
  if (lists == NULL || (!fits && memory == NULL)) /* the other ranks are in the call already */
    startup_abort("no memory for the counts or blocks of an MPI_Allgatherv_c");
  if (!fits && send == MPI_IN_PLACE) {
    send = recv + blocks->displs[place->rank] * extent;
    problem.send_count = (int)blocks->counts[place->rank];
    problem.send_type = blocks->type;
  }
  bool done = dispatch(place, &problem, send, to, result);
  if (done && !fits)
    move_blocks(place, blocks, to, extent, recv);
  free(memory);
  free(lists);
  return done;
}

EXPORTED int MPI_Allgatherv_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                              const MPI_Count recv_counts[], const MPI_Aint displs[], MPI_Datatype recv_type,
                              MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLGATHERV, comm);
  struct blocks blocks = {.counts = recv_counts, .displs = displs, .type = recv_type};
  int result;
  if (place != NULL && recv_counts != NULL && displs != NULL && count_blocks(place, &blocks) &&
      dispatch_wanted(place, SWP_ALLGATHERV, blocks.most, blocks.total, recv_type, 0, MPI_OP_NULL) &&
      dispatch_blocks(place, send, send_count, send_type, recv, &blocks, &result))
    return result;
  return PMPI_Allgatherv_c(send, send_count, send_type, recv, recv_counts, displs, recv_type, comm);
}

#endif
