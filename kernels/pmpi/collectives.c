/* The collectives of MPI, as the application calls them: the table's method where there is one, and else the
   MPI library's own, with the arguments as they came. */
#include "dispatch.h"
#include "startup.h"

/* Of a buffer in whose place MPI_IN_PLACE stands, count and type have no meaning and may be anything. */
static MPI_Datatype type_beside(const void *buffer, MPI_Datatype type) {
  return buffer == MPI_IN_PLACE ? MPI_DATATYPE_NULL : type;
}

static struct swp_collective two_sided(enum swp_operation operation, int send_count, MPI_Datatype send_type,
                                       int recv_count, MPI_Datatype recv_type, int root) {
  return (struct swp_collective){.operation = operation,
                                 .send_count = send_count,
                                 .send_type = send_type,
                                 .recv_count = recv_count,
                                 .recv_type = recv_type,
                                 .op = MPI_OP_NULL,
                                 .root = root};
}

EXPORTED int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  struct place *place = place_for(SWP_BCAST, comm);
  int result;
  if (place != NULL && dispatch_wanted(place, SWP_BCAST, count, count, type, root, MPI_OP_NULL)) {
    struct swp_collective problem = {
        .operation = SWP_BCAST, .recv_count = count, .recv_type = type, .root = root, .op = MPI_OP_NULL};
    if (dispatch(place, &problem, NULL, buffer, &result))
      return result;
  }
  return PMPI_Bcast(buffer, count, type, root, comm);
}

EXPORTED int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                        MPI_Datatype recv_type, int root, MPI_Comm comm) {
  struct place *place = place_for(SWP_GATHER, comm);
  int result;
  if (place != NULL) {
    int64_t count = place->rank == root ? recv_count : send_count;
    MPI_Datatype type = place->rank == root ? recv_type : send_type;
    struct swp_collective problem =
        two_sided(SWP_GATHER, send_count, type_beside(send, send_type), recv_count, recv_type, root);
    if (dispatch_wanted(place, SWP_GATHER, count, count * place->procs, type, root, MPI_OP_NULL) &&
        dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

EXPORTED int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                         MPI_Datatype recv_type, int root, MPI_Comm comm) {
  struct place *place = place_for(SWP_SCATTER, comm);
  int result;
  if (place != NULL) {
    int64_t count = place->rank == root ? send_count : recv_count;
    MPI_Datatype type = place->rank == root ? send_type : recv_type;
    struct swp_collective problem =
        two_sided(SWP_SCATTER, send_count, send_type, recv_count, type_beside(recv, recv_type), root);
    if (dispatch_wanted(place, SWP_SCATTER, count, count * place->procs, type, root, MPI_OP_NULL) &&
        dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

EXPORTED int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
                        MPI_Comm comm) {
  struct place *place = place_for(SWP_REDUCE, comm);
  int result;
  if (place != NULL && op != MPI_OP_NULL &&
      dispatch_wanted(place, SWP_REDUCE, count, count, type, root, op)) {
    struct swp_collective problem = {
        .operation = SWP_REDUCE, .recv_count = count, .recv_type = type, .op = op, .root = root};
    if (dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Reduce(send, recv, count, type, op, root, comm);
}

EXPORTED int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLREDUCE, comm);
  int result;
  if (place != NULL && op != MPI_OP_NULL &&
      dispatch_wanted(place, SWP_ALLREDUCE, count, count, type, 0, op)) {
    struct swp_collective problem = {
        .operation = SWP_ALLREDUCE, .recv_count = count, .recv_type = type, .op = op};
    if (dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Allreduce(send, recv, count, type, op, comm);
}

EXPORTED int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                           int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLGATHER, comm);
  int result;
  if (place != NULL && dispatch_wanted(place, SWP_ALLGATHER, recv_count, (int64_t)recv_count * place->procs,
                                       recv_type, 0, MPI_OP_NULL)) {
    struct swp_collective problem =
        two_sided(SWP_ALLGATHER, send_count, type_beside(send, send_type), recv_count, recv_type, 0);
    if (dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

EXPORTED int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                            const int recv_counts[], const int displs[], MPI_Datatype recv_type,
                            MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLGATHERV, comm);
  int64_t most = 0, least = 0, total = 0;
  int result;
  for (int i = 0; place != NULL && recv_counts != NULL && i < place->procs; i++) {
    most = recv_counts[i] > most ? recv_counts[i] : most;
    least = recv_counts[i] < least ? recv_counts[i] : least;
    total += recv_counts[i];
  }
  if (place != NULL && least == 0 && displs != NULL &&
      dispatch_wanted(place, SWP_ALLGATHERV, most, total, recv_type, 0, MPI_OP_NULL)) {
    struct swp_collective problem = {.operation = SWP_ALLGATHERV,
                                     .send_count = send_count,
                                     .send_type = type_beside(send, send_type),
                                     .recv_counts = recv_counts,
                                     .displs = displs,
                                     .recv_type = recv_type,
                                     .op = MPI_OP_NULL};
    if (dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Allgatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type, comm);
}

EXPORTED int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                          int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLTOALL, comm);
  int result;
  if (place != NULL && dispatch_wanted(place, SWP_ALLTOALL, recv_count, (int64_t)recv_count * place->procs,
                                       recv_type, 0, MPI_OP_NULL)) {
    struct swp_collective problem =
        two_sided(SWP_ALLTOALL, send_count, type_beside(send, send_type), recv_count, recv_type, 0);
    if (dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

EXPORTED int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                                      MPI_Comm comm) {
  struct place *place = place_for(SWP_REDUCE_SCATTER_BLOCK, comm);
  int result;
  if (place != NULL && op != MPI_OP_NULL &&
      dispatch_wanted(place, SWP_REDUCE_SCATTER_BLOCK, count, (int64_t)count * place->procs, type, 0, op)) {
    struct swp_collective problem = {
        .operation = SWP_REDUCE_SCATTER_BLOCK, .recv_count = count, .recv_type = type, .op = op};
    if (dispatch(place, &problem, send, recv, &result))
      return result;
  }
  return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
}
