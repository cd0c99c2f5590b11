/* The functions of fortran.h that the preload dispatches. */
#include "startup.h"

/* Where Fortran's integers differ from C's, its programs are not supported. */
#ifdef SWP_FORTRAN_INT

#include "fortran.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

FORTRAN_BEGIN_AND_END("libswitchpoint_pmpi.so")

FORTRAN(comm_dup_with_info, MPI_Fint *handle, MPI_Fint *info, MPI_Fint *copy, MPI_Fint *ierror) {
  MPI_Comm made;
  int error = MPI_Comm_dup_with_info(COMM(handle), PMPI_Info_f2c(*info), &made);
  if (error == MPI_SUCCESS)
    *copy = PMPI_Comm_c2f(made);
  give(ierror, error);
}

FORTRAN(comm_set_info, MPI_Fint *handle, MPI_Fint *info, MPI_Fint *ierror) {
  give(ierror, MPI_Comm_set_info(COMM(handle), PMPI_Info_f2c(*info)));
}

FORTRAN(barrier, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Barrier(COMM(handle)));
}

#ifdef OPEN_MPI
extern int mpi_fortran_in_place_ __attribute__((weak)), mpi_fortran_bottom_ __attribute__((weak));

/* Fortran's constants are variables. */
static void *buffer(void *address) {
  if (address == (void *)&mpi_fortran_in_place_)
    return MPI_IN_PLACE;
  return address == (void *)&mpi_fortran_bottom_ ? MPI_BOTTOM : address;
}

FORTRAN(bcast, void *data, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *root, MPI_Fint *handle,
        MPI_Fint *ierror) {
  give(ierror, MPI_Bcast(buffer(data), *count, TYPE(datatype), *root, COMM(handle)));
}

FORTRAN(gather, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Gather(buffer(send), *send_count, TYPE(send_type), buffer(recv), *recv_count,
                          TYPE(recv_type), *root, COMM(handle)));
}

FORTRAN(scatter, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Scatter(buffer(send), *send_count, TYPE(send_type), buffer(recv), *recv_count,
                           TYPE(recv_type), *root, COMM(handle)));
}

FORTRAN(reduce, void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *root,
        MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror,
       MPI_Reduce(buffer(send), buffer(recv), *count, TYPE(datatype), PMPI_Op_f2c(*op), *root, COMM(handle)));
}

FORTRAN(allreduce, void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op,
        MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror,
       MPI_Allreduce(buffer(send), buffer(recv), *count, TYPE(datatype), PMPI_Op_f2c(*op), COMM(handle)));
}

FORTRAN(allgather, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Allgather(buffer(send), *send_count, TYPE(send_type), buffer(recv), *recv_count,
                             TYPE(recv_type), COMM(handle)));
}

FORTRAN(allgatherv, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_counts,
        MPI_Fint *displs, MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Allgatherv(buffer(send), *send_count, TYPE(send_type), buffer(recv), recv_counts, displs,
                              TYPE(recv_type), COMM(handle)));
}

FORTRAN(alltoall, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_count,
        MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Alltoall(buffer(send), *send_count, TYPE(send_type), buffer(recv), *recv_count,
                            TYPE(recv_type), COMM(handle)));
}

FORTRAN(alltoallv, void *send, MPI_Fint *send_counts, MPI_Fint *send_displs, MPI_Fint *send_type, void *recv,
        MPI_Fint *recv_counts, MPI_Fint *displs, MPI_Fint *recv_type, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Alltoallv(buffer(send), send_counts, send_displs, TYPE(send_type), buffer(recv),
                             recv_counts, displs, TYPE(recv_type), COMM(handle)));
}

FORTRAN(gatherv, void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv, MPI_Fint *recv_counts,
        MPI_Fint *displs, MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Gatherv(buffer(send), *send_count, TYPE(send_type), buffer(recv), recv_counts, displs,
                           TYPE(recv_type), *root, COMM(handle)));
}

FORTRAN(scatterv, void *send, MPI_Fint *send_counts, MPI_Fint *displs, MPI_Fint *send_type, void *recv,
        MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root, MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Scatterv(buffer(send), send_counts, displs, TYPE(send_type), buffer(recv), *recv_count,
                            TYPE(recv_type), *root, COMM(handle)));
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
  const int count = partners(COMM(handle));
  const bool in_place = buffer(send) == MPI_IN_PLACE; /* its types may be anything */
  MPI_Datatype *types = malloc(2 * ((size_t)count + 1) * sizeof *types), *received = types + count;
  if (types == NULL) /* the other ranks wait in the call */
    startup_abort("no memory for the types of an MPI_Alltoallw");
  for (int i = 0; i < count; i++) {
    types[i] = in_place ? MPI_DATATYPE_NULL : TYPE(&send_types[i]);
    received[i] = TYPE(&recv_types[i]);
  }
  give(ierror, MPI_Alltoallw(buffer(send), send_counts, send_displs, types, buffer(recv), recv_counts, displs,
                             received, COMM(handle)));
  free(types);
}

FORTRAN(reduce_scatter_block, void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op,
        MPI_Fint *handle, MPI_Fint *ierror) {
  give(ierror, MPI_Reduce_scatter_block(buffer(send), buffer(recv), *count, TYPE(datatype), PMPI_Op_f2c(*op),
                                        COMM(handle)));
}

#endif
#endif
