/*
 * Fortran functions that bypass the C functions. Open MPI's always do: under the names that mpif.h and the
 * module mpi call, and those that mpi_f08 calls. In MPICH and its derivatives, only the few functions of
 * mpi_f08 without buffers do.
 */
#ifndef SWP_FORTRAN_H
#define SWP_FORTRAN_H

#include "family.h"
#include "interpose.h"

#include <mpi.h>
#include <stddef.h>

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

/* Arguments, which all are addresses. */
#define INTEGER(argument) (*(const MPI_Fint *)(argument))
#define COMM(argument) PMPI_Comm_f2c(INTEGER(argument))
#define TYPE(argument) PMPI_Type_f2c(INTEGER(argument))

static inline void give(MPI_Fint *ierror, int error) {
  if (ierror != NULL) /* it is optional in mpi_f08 */
    *ierror = error;
}

static inline void free_by(int (*leave)(MPI_Comm *comm), MPI_Fint *handle, MPI_Fint *ierror) {
  MPI_Comm freed = COMM(handle);
  const int error = leave(&freed);
  if (error == MPI_SUCCESS)
    *handle = PMPI_Comm_c2f(freed);
  give(ierror, error);
}

/* The functions by which MPI and communicators begin and end, of a preload of this name. */
#define FORTRAN_BEGIN_AND_END(preload)                                                                       \
  FORTRAN(init, MPI_Fint *ierror) {                                                                          \
    family_check_fortran(preload, __builtin_return_address(0));                                              \
    give(ierror, MPI_Init(NULL, NULL));                                                                      \
  }                                                                                                          \
  FORTRAN(init_thread, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror) {                           \
    family_check_fortran(preload, __builtin_return_address(0));                                              \
    give(ierror, MPI_Init_thread(NULL, NULL, *required, provided));                                          \
  }                                                                                                          \
  FORTRAN(finalize, MPI_Fint *ierror) {                                                                      \
    give(ierror, MPI_Finalize());                                                                            \
  }                                                                                                          \
  FORTRAN(abort, MPI_Fint *handle, MPI_Fint *code, MPI_Fint *ierror) {                                       \
    give(ierror, MPI_Abort(COMM(handle), *code));                                                            \
  }                                                                                                          \
  FORTRAN(comm_free, MPI_Fint *handle, MPI_Fint *ierror) {                                                   \
    free_by(MPI_Comm_free, handle, ierror);                                                                  \
  }                                                                                                          \
  FORTRAN(comm_disconnect, MPI_Fint *handle, MPI_Fint *ierror) {                                             \
    free_by(MPI_Comm_disconnect, handle, ierror);                                                            \
  }

#endif
