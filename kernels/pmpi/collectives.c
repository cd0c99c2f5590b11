/*
 * The collectives of MPI, as the application calls them: by the table's method if there is one, otherwise by
 * the MPI library's own, with unchanged arguments. Calls with large counts (MPI-4), which some callers such
 * as mpi4py always use, are treated like the others, which they may meet in one call.
 */
#include "dispatch.h"
#include "functions.h"
#include "startup.h"

#include <limits.h>

/*
 * A function. Calls that the table leaves to the MPI library must cost little: the search calls nothing, so
 * no register has to be saved. Parameters and arguments are in parentheses, without the communicator. Then
 * come the items of a block (or of the vector), their type, and the items of all blocks; root and op; the
 * buffers; and the rest of the problem.
 */
#define COLLECTIVE(name, OPERATION, parameters, arguments, block, item, all, ROOT, OP, from, to, ...)        \
  static __attribute__((noinline)) int name##_by_method(LIST parameters, MPI_Comm comm) {                    \
    struct place *place = place_for(OPERATION, comm, #name);                                                 \
    int result;                                                                                              \
    if (place != NULL && dispatch_wanted(place, OPERATION, block, all, item, ROOT, OP)) {                    \
      struct swp_collective problem = {.operation = OPERATION, .root = ROOT, .op = OP, __VA_ARGS__};         \
      if (dispatch(place, &problem, from, to, &result))                                                      \
        return result;                                                                                       \
    }                                                                                                        \
    return PMPI_##name(LIST arguments, comm);                                                                \
  }                                                                                                          \
  EXPORTED int MPI_##name(LIST parameters, MPI_Comm comm) {                                                  \
    const struct place *place = place_known(comm);                                                           \
    if (place != NULL && place_leaves(place, OPERATION, block, item))                                        \
      return PMPI_##name(LIST arguments, comm);                                                              \
    return name##_by_method(LIST arguments, comm);                                                           \
  }

/* The problem of the functions with two sides, and of reductions. */
#define SIDES_MEANT                                                                                          \
  .send_count = (int)send_count, .send_type = dispatch_type(send, send_type), .recv_count = (int)recv_count, \
  .recv_type = dispatch_type(recv, recv_type)
#define VECTOR_MEANT .recv_count = (int)count, .recv_type = type

/* For the side that has blocks at the root. */
#define AT_ROOT(there, elsewhere) (place->rank == root ? there : elsewhere)

/* The items of all blocks; of blocks that are too large anyway, more than there can be. */
static inline int64_t all_blocks(int64_t count, int procs) {
  return count > INT_MAX ? INT64_MAX : count * procs;
}

#define BLOCKS(count) all_blocks(count, place->procs)

/* The functions with counts of int, or with large ones. */
#define ALL(suffix, count_t)                                                                                 \
  COLLECTIVE(Bcast##suffix, SWP_BCAST, (void *buffer, count_t count, MPI_Datatype type, int root),           \
             (buffer, count, type, root), count, type, count, root, MPI_OP_NULL, NULL, buffer, VECTOR_MEANT) \
  COLLECTIVE(Gather##suffix, SWP_GATHER, (SIDES(count_t), int root), (SIDES_GIVEN, root),                    \
             AT_ROOT(recv_count, send_count), AT_ROOT(recv_type, send_type),                                 \
             BLOCKS(AT_ROOT(recv_count, send_count)), root, MPI_OP_NULL, send, recv, SIDES_MEANT)            \
  COLLECTIVE(Scatter##suffix, SWP_SCATTER, (SIDES(count_t), int root), (SIDES_GIVEN, root),                  \
             AT_ROOT(send_count, recv_count), AT_ROOT(send_type, recv_type),                                 \
             BLOCKS(AT_ROOT(send_count, recv_count)), root, MPI_OP_NULL, send, recv, SIDES_MEANT)            \
  COLLECTIVE(Reduce##suffix, SWP_REDUCE, (VECTOR(count_t), int root), (VECTOR_GIVEN, root), count, type,     \
             count, root, op, send, recv, VECTOR_MEANT)                                                      \
  COLLECTIVE(Allreduce##suffix, SWP_ALLREDUCE, (VECTOR(count_t)), (VECTOR_GIVEN), count, type, count, 0, op, \
             send, recv, VECTOR_MEANT)                                                                       \
  COLLECTIVE(Allgather##suffix, SWP_ALLGATHER, (SIDES(count_t)), (SIDES_GIVEN), recv_count, recv_type,       \
             BLOCKS(recv_count), 0, MPI_OP_NULL, send, recv, SIDES_MEANT)                                    \
  COLLECTIVE(Alltoall##suffix, SWP_ALLTOALL, (SIDES(count_t)), (SIDES_GIVEN), recv_count, recv_type,         \
             BLOCKS(recv_count), 0, MPI_OP_NULL, send, recv, SIDES_MEANT)                                    \
  COLLECTIVE(Reduce_scatter_block##suffix, SWP_REDUCE_SCATTER_BLOCK, (VECTOR(count_t)), (VECTOR_GIVEN),      \
             count, type, BLOCKS(count), 0, op, send, recv, VECTOR_MEANT)

ALL(, int)
#ifdef SWP_HAVE_LARGE_COUNTS
ALL(_c, MPI_Count)
#endif

/* ---- Without data: rules take it for a call of one byte ---- */

static __attribute__((noinline)) int Barrier_by_method(MPI_Comm comm) {
  struct place *place = place_for(SWP_BARRIER, comm, "Barrier");
  const struct swp_collective problem = {.operation = SWP_BARRIER, .op = MPI_OP_NULL};
  const struct swp_facts facts = {1, 1, 1, 0, MPI_OP_NULL};
  int result;
  if (place != NULL && dispatch_chosen(place, SWP_BARRIER, &facts) &&
      dispatch(place, &problem, NULL, NULL, &result))
    return result;
  return PMPI_Barrier(comm);
}

EXPORTED int MPI_Barrier(MPI_Comm comm) {
  const struct place *place = place_known(comm);
  if (place != NULL && !report_on &&
      !(place_has(place, SWP_BARRIER) &&
        place_asks(&place->selectors->list[SWP_BARRIER - FIRST_OPERATION], 1)))
    return PMPI_Barrier(comm);
  return Barrier_by_method(comm);
}
