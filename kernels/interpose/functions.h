/*
 * The collectives of MPI with a size: what libraries that stand before MPI define for each. A function comes
 * plain, nonblocking and persistent, and each of them with counts of int, or large ones.
 */
#ifndef SWP_FUNCTIONS_H
#define SWP_FUNCTIONS_H

#define LIST(...) __VA_ARGS__

/* As MPI_Request_get_status_all and its like take them. */
#ifdef SWP_CONST_REQUESTS
#define REQUESTS const MPI_Request
#else
#define REQUESTS MPI_Request /* Intel's */
#endif

#define SIDES(count_t)                                                                                       \
  const void *send, count_t send_count, MPI_Datatype send_type, void *recv, count_t recv_count,              \
      MPI_Datatype recv_type
#define SIDES_GIVEN send, send_count, send_type, recv, recv_count, recv_type
#define GATHERED(count_t, displ_t)                                                                           \
  const void *send, count_t send_count, MPI_Datatype send_type, void *recv, const count_t recv_counts[],     \
      const displ_t recv_displs[], MPI_Datatype recv_type
#define GATHERED_GIVEN send, send_count, send_type, recv, recv_counts, recv_displs, recv_type
#define SCATTERED(count_t, displ_t)                                                                          \
  const void *send, const count_t send_counts[], const displ_t send_displs[], MPI_Datatype send_type,        \
      void *recv, count_t recv_count, MPI_Datatype recv_type
#define SCATTERED_GIVEN send, send_counts, send_displs, send_type, recv, recv_count, recv_type
#define EXCHANGED(count_t, displ_t)                                                                          \
  const void *send, const count_t send_counts[], const displ_t send_displs[], MPI_Datatype send_type,        \
      void *recv, const count_t recv_counts[], const displ_t recv_displs[], MPI_Datatype recv_type
#define EXCHANGED_GIVEN send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type
#define OF_TYPES(count_t, displ_t)                                                                           \
  const void *send, const count_t send_counts[], const displ_t send_displs[],                                \
      const MPI_Datatype send_types[], void *recv, const count_t recv_counts[], const displ_t recv_displs[], \
      const MPI_Datatype recv_types[]
#define OF_TYPES_GIVEN send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs, recv_types
#define VECTOR(count_t) const void *send, void *recv, count_t count, MPI_Datatype type, MPI_Op op
#define VECTOR_GIVEN send, recv, count, type, op

/*
 * X(group, name, nonblocking, suffix, parameters, arguments, items, type): the group is TABLED if tables have
 * rules for it; PLANNED, or NEIGHBOR, if it is done by those for exchanges; otherwise UNTABLED. Parameters
 * and arguments are in parentheses, without the communicator and what comes behind it. Items and type are
 * those of the largest block, as tables count them; `mean` and AT_ROOT(there, elsewhere) are the user's.
 */
#define FUNCTIONS(X, suffix, count_t, displ_t, mean)                                                         \
  X(TABLED, Bcast, Ibcast, suffix, (void *buffer, count_t count, MPI_Datatype type, int root),               \
    (buffer, count, type, root), count, type)                                                                \
  X(TABLED, Gather, Igather, suffix, (SIDES(count_t), int root), (SIDES_GIVEN, root),                        \
    AT_ROOT(recv_count, send_count), AT_ROOT(recv_type, send_type))                                          \
  X(TABLED, Scatter, Iscatter, suffix, (SIDES(count_t), int root), (SIDES_GIVEN, root),                      \
    AT_ROOT(send_count, recv_count), AT_ROOT(send_type, recv_type))                                          \
  X(TABLED, Reduce, Ireduce, suffix, (VECTOR(count_t), int root), (VECTOR_GIVEN, root), count, type)         \
  X(TABLED, Allreduce, Iallreduce, suffix, (VECTOR(count_t)), (VECTOR_GIVEN), count, type)                   \
  X(TABLED, Allgather, Iallgather, suffix, (SIDES(count_t)), (SIDES_GIVEN), recv_count, recv_type)           \
  X(TABLED, Allgatherv, Iallgatherv, suffix, (GATHERED(count_t, displ_t)), (GATHERED_GIVEN),                 \
    mean(recv_counts, comm), recv_type)                                                                      \
  X(TABLED, Alltoall, Ialltoall, suffix, (SIDES(count_t)), (SIDES_GIVEN), recv_count, recv_type)             \
  X(TABLED, Reduce_scatter_block, Ireduce_scatter_block, suffix, (VECTOR(count_t)), (VECTOR_GIVEN), count,   \
    type)                                                                                                    \
  X(TABLED, Alltoallv, Ialltoallv, suffix, (EXCHANGED(count_t, displ_t)), (EXCHANGED_GIVEN),                 \
    mean(recv_counts, comm), recv_type)                                                                      \
  X(PLANNED, Gatherv, Igatherv, suffix, (GATHERED(count_t, displ_t), int root), (GATHERED_GIVEN, root),      \
    AT_ROOT(mean(recv_counts, comm), send_count), AT_ROOT(recv_type, send_type))                             \
  X(PLANNED, Scatterv, Iscatterv, suffix, (SCATTERED(count_t, displ_t), int root), (SCATTERED_GIVEN, root),  \
    AT_ROOT(mean(send_counts, comm), recv_count), AT_ROOT(send_type, recv_type))                             \
  X(UNTABLED, Reduce_scatter, Ireduce_scatter, suffix,                                                       \
    (const void *send, void *recv, const count_t counts[], MPI_Datatype type, MPI_Op op),                    \
    (send, recv, counts, type, op), mean(counts, comm), type)                                                \
  X(UNTABLED, Scan, Iscan, suffix, (VECTOR(count_t)), (VECTOR_GIVEN), count, type)                           \
  X(UNTABLED, Exscan, Iexscan, suffix, (VECTOR(count_t)), (VECTOR_GIVEN), count, type)                       \
  X(PLANNED, Alltoallw, Ialltoallw, suffix, (OF_TYPES(count_t, displ_t)), (OF_TYPES_GIVEN), 0,               \
    MPI_DATATYPE_NULL)                                                                                       \
  X(NEIGHBOR, Neighbor_allgather, Ineighbor_allgather, suffix, (SIDES(count_t)), (SIDES_GIVEN), recv_count,  \
    recv_type)                                                                                               \
  X(NEIGHBOR, Neighbor_allgatherv, Ineighbor_allgatherv, suffix, (GATHERED(count_t, displ_t)),               \
    (GATHERED_GIVEN), send_count, send_type)                                                                 \
  X(NEIGHBOR, Neighbor_alltoall, Ineighbor_alltoall, suffix, (SIDES(count_t)), (SIDES_GIVEN), recv_count,    \
    recv_type)                                                                                               \
  X(NEIGHBOR, Neighbor_alltoallv, Ineighbor_alltoallv, suffix, (EXCHANGED(count_t, displ_t)),                \
    (EXCHANGED_GIVEN), 0, MPI_DATATYPE_NULL)                                                                 \
  X(NEIGHBOR, Neighbor_alltoallw, Ineighbor_alltoallw, suffix, (OF_TYPES(count_t, MPI_Aint)),                \
    (OF_TYPES_GIVEN), 0, MPI_DATATYPE_NULL)

#endif
