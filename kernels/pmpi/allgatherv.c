/* MPI_Allgatherv, with counts of int, and with large ones, which some ranks' displacements alone may need. */
#include "dispatch.h"
#include "startup.h"

#include <limits.h>
#include <stdlib.h>

/* The items of all blocks; -1: a count is negative. */
static inline int64_t sum(const int *counts, int procs) {
  int64_t total = 0;
  const int *end = counts + procs;
  do {
    if (*counts < 0)
      return -1;
    total += *counts;
  } while (++counts != end);
  return total;
}

static int greatest(const int *counts, int procs) {
  int most = counts[0];
  for (int i = 1; i < procs; i++)
    most = counts[i] > most ? counts[i] : most;
  return most;
}

static __attribute__((noinline)) int allgatherv_by_method(const void *send, int send_count,
                                                          MPI_Datatype send_type, void *recv,
                                                          const int recv_counts[], const int displs[],
                                                          MPI_Datatype recv_type, MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLGATHERV, comm, "Allgatherv");
  const struct swp_collective problem = {.operation = SWP_ALLGATHERV,
                                         .send_count = send_count,
                                         .send_type = dispatch_type(send, send_type),
                                         .recv_counts = recv_counts,
                                         .displs = displs,
                                         .recv_type = recv_type,
                                         .op = MPI_OP_NULL};
  int result;
  if (place != NULL && ((recv_counts != NULL && displs != NULL) || dispatch_invalid(SWP_ALLGATHERV)) &&
      dispatch_wanted(place, SWP_ALLGATHERV, greatest(recv_counts, place->procs),
                      sum(recv_counts, place->procs), recv_type, 0, MPI_OP_NULL) &&
      dispatch(place, &problem, send, recv, &result))
    return result;
  return PMPI_Allgatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type, comm);
}

EXPORTED int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                            const int recv_counts[], const int displs[], MPI_Datatype recv_type,
                            MPI_Comm comm) {
  const struct place *place = place_known(comm);
  if (place != NULL && !report_on &&
      (!place_has(place, SWP_ALLGATHERV) ||
       (recv_counts != NULL &&
        place_leaves(place, SWP_ALLGATHERV, sum(recv_counts, place->procs), recv_type))))
    return PMPI_Allgatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type, comm);
  return allgatherv_by_method(send, send_count, send_type, recv, recv_counts, displs, recv_type, comm);
}

#ifdef SWP_HAVE_LARGE_COUNTS

/* The places of an allgatherv's blocks. */
struct blocks {
  const MPI_Count *counts;
  const MPI_Aint *displs;
  MPI_Datatype type;
  int64_t most, total; /* items of one block, and of all */
};

/* Counts the items. Returns whether all blocks are INT_MAX bytes at most, and have any; the others are the
   MPI library's. */
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

/* Copies counts and displacements to twice as many ints as there are ranks. False where a displacement is too
   large, which only this rank knows: the blocks are then received one after the other. */
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

/* Room for all items one after the other; the caller frees *memory. Returns the first item's address. */
static char *make_row(const struct blocks *blocks, MPI_Aint *extent, void **memory) {
  MPI_Aint lower, low, span, behind = 0;
  PMPI_Type_get_extent(blocks->type, &lower, extent);
  PMPI_Type_get_true_extent(blocks->type, &low, &span);
  behind = blocks->total > 0 ? (MPI_Aint)(blocks->total - 1) * *extent : 0;
  *memory = malloc((size_t)(span + (behind < 0 ? -behind : behind)) + 1);
  return *memory == NULL ? NULL : (char *)*memory - low - (behind < 0 ? behind : 0);
}

/* Copies the blocks to their places. */
static void move_blocks(struct place *place, const struct blocks *blocks, char *row, MPI_Aint extent,
                        char *recv) {
  for (int i = 0; i < place->procs; row += blocks->counts[i++] * extent)
    PMPI_Sendrecv(row, (int)blocks->counts[i], blocks->type, place->rank, 0,
                  recv + blocks->displs[i] * extent, (int)blocks->counts[i], blocks->type, place->rank, 0,
                  place->own, MPI_STATUS_IGNORE);
}

/* Calls the method for the blocks, as dispatch does for blocks of one size. */
static bool dispatch_blocks(struct place *place, const void *send, MPI_Count send_count,
                            MPI_Datatype send_type, char *recv, const struct blocks *blocks, int *result) {
  MPI_Aint extent;
  void *memory = NULL;
  int *lists = malloc(2 * (size_t)place->procs * sizeof *lists);
  struct swp_collective problem = {.operation = SWP_ALLGATHERV,
                                   .send_count = (int)send_count,
                                   .send_type = dispatch_type(send, send_type),
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
  const bool failed = done && *result != MPI_SUCCESS;
  if (done && !failed && !fits)
    move_blocks(place, blocks, to, extent, recv);
  if (!failed || place->refused_at_once) /* else MPI may still receive there */
    free(memory);
  free(lists);
  return done;
}

EXPORTED int MPI_Allgatherv_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                              const MPI_Count recv_counts[], const MPI_Aint displs[], MPI_Datatype recv_type,
                              MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLGATHERV, comm, "Allgatherv_c");
  struct blocks blocks = {.counts = recv_counts, .displs = displs, .type = recv_type};
  int result;
  if (place != NULL &&
      ((recv_counts != NULL && displs != NULL && count_blocks(place, &blocks)) ||
       dispatch_invalid(SWP_ALLGATHERV)) &&
      dispatch_wanted(place, SWP_ALLGATHERV, blocks.most, blocks.total, recv_type, 0, MPI_OP_NULL) &&
      dispatch_blocks(place, send, send_count, send_type, recv, &blocks, &result))
    return result;
  return PMPI_Allgatherv_c(send, send_count, send_type, recv, recv_counts, displs, recv_type, comm);
}

#endif
