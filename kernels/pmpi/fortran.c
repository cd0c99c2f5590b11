/*
 * Fortran interfaces that bypass the C functions. Open MPI's always do: its Fortran functions are defined
 * here too, under the names that mpif.h and the module mpi call, and those that mpi_f08 calls. In MPICH and
 * its derivatives, only the few functions of mpi_f08 without buffers do.
 */
#include "family.h"
#include "startup.h"

/* Where Fortran's integers differ from C's, its programs are not supported. */
#ifdef SWP_FORTRAN_INT

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef OPEN_MPI
#define FORTRAN(name, ...)                                                                                   \
  EXPORTED void mpi_##name##_(__VA_ARGS__);                                                                  \
  EXPORTED void ompi_##name##_f(__VA_ARGS__) __attribute__((alias("mpi_" #name "_")));                       \
  void mpi_##name##_(__VA_ARGS__)
#else
#define FORTRAN(name, ...)                                                                                   \
  EXPORTED void mpi_##name##_f08_(__VA_ARGS__);                                                              \
  void mpi_##name##_f08_(__VA_ARGS__)
#endif

static MPI_Comm comm(const MPI_Fint *handle) {
  return PMPI_Comm_f2c(*handle);
}

static void give(MPI_Fint *ierror, int error) {
  if (ierror != NULL) /* it is optional in mpi_f08 */
    *ierror = error;
}

FORTRAN(init, MPI_Fint *ierror) {
  family_check_fortran("libswitchpoint_pmpi.so", __builtin_return_address(0));
  give(ierror, MPI_Init(NULL, NULL));
}

FORTRAN(init_thread, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror) {
  family_check_fortran("libswitchpoint_pmpi.so", __builtin_return_address(0));
  give(ierror, MPI_Init_thread(NULL, NULL, *required, provided));
}

FORTRAN(finalize, MPI_Fint *ierror) {
  give(ierror, MPI_Finalize());
}

FORTRAN(abort, MPI_Fint *handle, MPI_Fint *code, MPI_Fint *ierror) {
  give(ierror, MPI_Abort(comm(handle), *code));
}

static void free_by(int (*leave)(MPI_Comm *comm), MPI_Fint *handle, MPI_Fint *ierror) {
  MPI_Comm freed = comm(handle);
  const int error = leave(&freed);
  if (error == MPI_SUCCESS)
    *handle = PMPI_Comm_c2f(freed);
  give(ierror, error);
}

FORTRAN(comm_free, MPI_Fint *handle, MPI_Fint *ierror) {
  free_by(MPI_Comm_free, handle, ierror);
}

FORTRAN(comm_disconnect, MPI_Fint *handle, MPI_Fint *ierror) {
  free_by(MPI_Comm_disconnect, handle, ierror);
}

FORTRAN(comm_dup_with_info, MPI_Fint *handle, MPI_Fint *info, MPI_Fint *copy, MPI_Fint *ierror) {
  MPI_Comm made;
  int error = MPI_Comm_dup_with_info(comm(handle), PMPI_Info_f2c(*info), &made);
  if (error == MPI_SUCCESS)
    *copy = PMPI_Comm_c2f(made);
  give(ierror, error);
}

FORTRAN(comm_set_info, MPI_Fint *handle, MPI_Fint *info, MPI_Fint *ierror) {
  give(ierror, MPI_Comm_set_info(comm(handle), PMPI_Info_f2c(*info)));
}

FORTRAN(barrier, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Barrier(comm(handle)));
}

#ifdef OPEN_MPI
extern int mpi_fortran_in_place_ __attribute__((weak)), mpi_fortran_bottom_ __attribute__((weak));

/* Fortran's constants are variables. */
static void *buffer(void *address) {
  if (address == (void *)&mpi_fortran_in_place_)
    return MPI_IN_PLACE;
  return address == (void *)&mpi_fortran_bottom_ ? MPI_BOTTOM : address;
}

static MPI_Datatype type(const MPI_Fint *handle) {
  return PMPI_Type_f2c(*handle);
}

FORTRAN(bcast, void *data, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *root, MPI_Fint *handle,
        MPI_Fint *ierror) {
  give(ierror, MPI_Bcast(buffer(data), *count, type(datatype), *root, comm(handle)));
}

FORTRAN(gather, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Gather(buffer(send), *send_count, type(send_type), buffer(recv), *recv_count,
                          type(recv_type), *root, comm(handle)));
}

FORTRAN(scatter, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Scatter(buffer(send), *send_count, type(send_type), buffer(recv), *recv_count,
                           type(recv_type), *root, comm(handle)));
}

FORTRAN(reduce, void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *root,
        MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror,
       MPI_Reduce(buffer(send), buffer(recv), *count, type(datatype), PMPI_Op_f2c(*op), *root, comm(handle)));
}

FORTRAN(allreduce, void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op,
        MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror,
       MPI_Allreduce(buffer(send), buffer(recv), *count, type(datatype), PMPI_Op_f2c(*op), comm(handle)));
}

FORTRAN(allgather, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Allgather(buffer(send), *send_count, type(send_type), buffer(recv), *recv_count,
                             type(recv_type), comm(handle)));
}

FORTRAN(allgatherv, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_counts,
        MPI_Fint *displs, MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Allgatherv(buffer(send), *send_count, type(send_type), buffer(recv), recv_counts, displs,
                              type(recv_type), comm(handle)));
}

FORTRAN(alltoall, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Alltoall(buffer(send), *send_count, type(send_type), buffer(recv), *recv_count,
                            type(recv_type), comm(handle)));
}

FORTRAN(alltoallv, void *send, MPI_Fint *send_counts, MPI_Fint *send_displs, MPI_Fint *send_type, void *recv,
        MPI_Fint *recv_counts, MPI_Fint *displs, MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Alltoallv(buffer(send), send_counts, send_displs, type(send_type), buffer(recv),
                             recv_counts, displs, type(recv_type), comm(handle)));
}

FORTRAN(gatherv, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_counts,
        MPI_Fint *displs, MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Gatherv(buffer(send), *send_count, type(send_type), buffer(recv), recv_counts, displs,
                           type(recv_type), *root, comm(handle)));
}

FORTRAN(scatterv, void *send, MPI_Fint *send_counts, MPI_Fint *displs, MPI_Fint *send_type, void *recv,
        MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Scatterv(buffer(send), send_counts, displs, type(send_type), buffer(recv), *recv_count,
                            type(recv_type), *root, comm(handle)));
}

/* The ranks that a call has blocks for. */
static int partners(MPI_Comm its) {
  int count = 0, inter = 0;
  PMPI_Comm_test_inter(its, &inter);
  (inter ? PMPI_Comm_remote_size : PMPI_Comm_size)(its, &count);
  return count;
}

FORTRAN(alltoallw, void *send, MPI_Fint *send_counts, MPI_Fint *send_displs, MPI_Fint *send_types, void *recv,
        MPI_Fint *recv_counts, MPI_Fint *displs, MPI_Fint *recv_types, MPI_Fint *handle, MPI_Fint *ierror) {
  const int count = partners(comm(handle));
  const bool in_place = buffer(send) == MPI_IN_PLACE; /* its types may be anything */
  MPI_Datatype *types = malloc(2 * ((size_t)count + 1) * sizeof *types), *received = types + count;
  if (types == NULL) /* the other ranks wait in the call */
    startup_abort("no memory for the types of an MPI_Alltoallw");
  for (int i = 0; i < count; i++) {
    types[i] = in_place ? MPI_DATATYPE_NULL : type(&send_types[i]);
    received[i] = type(&recv_types[i]);
  }
  give(ierror, MPI_Alltoallw(buffer(send), send_counts, send_displs, types, buffer(recv), recv_counts, displs,
                             received, comm(handle)));
  free(types);
}

FORTRAN(reduce_scatter_block, void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op,
        MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Reduce_scatter_block(buffer(send), buffer(recv), *count, type(datatype), PMPI_Op_f2c(*op),
                                        comm(handle)));
}

#endif
#endif
