/*
 * Fortran functions that bypass the C functions. Open MPI's always do: under the names that mpif.h and the
 * module mpi call, and those that mpi_f08 calls. In MPICH and its derivatives, those of mpi_f08 without
 * buffers do. All arguments are addresses.
 */
#define _GNU_SOURCE
#include "family.h"
#include "record.h"

#ifdef SWP_FORTRAN_INT

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

#define P3 void *a, void *b, void *c
#define A3 a, b, c
#define ERROR3 c
#define P4 P3, void *d
#define A4 A3, d
#define ERROR4 d
#define P5 P4, void *e
#define A5 A4, e
#define ERROR5 e
#define P6 P5, void *f
#define A6 A5, f
#define ERROR6 f
#define P7 P6, void *g
#define A7 A6, g
#define ERROR7 g
#define P8 P7, void *h
#define A8 A7, h
#define ERROR8 h
#define P9 P8, void *i
#define A9 A8, i
#define ERROR9 i
#define P10 P9, void *j
#define A10 A9, j
#define ERROR10 j
#define P11 P10, void *k
#define A11 A10, k
#define ERROR11 k
#define P13 P11, void *l, void *m
#define A13 A11, l, m
#define ERROR13 m
#define INTEGER(argument) (*(const MPI_Fint *)(argument))
#define COMM(argument) PMPI_Comm_f2c(INTEGER(argument))
#define TYPE(argument) PMPI_Type_f2c(INTEGER(argument))

typedef void function(void);

#ifdef OPEN_MPI
#define LIBRARIES "libmpi_mpifh", "libmpi_mpifh"
#define OWN(name) mpi_##name##_
#define NEXT(name) pmpi_##name##_
#define DECLARE(name, ...)                                                                                   \
  EXPORTED void mpi_##name##_(__VA_ARGS__);                                                                  \
  EXPORTED void ompi_##name##_f(__VA_ARGS__) __attribute__((alias("mpi_" #name "_")));
#else
#define LIBRARIES "libmpichfort", "libmpifort"
#define OWN(name) mpi_##name##_f08_
#define NEXT(name) pmpir_##name##_f08_
#define DECLARE(name, ...) EXPORTED void mpi_##name##_f08_(__VA_ARGS__);
#endif
#define TEXT(name) #name
#define NAME_OF(name) TEXT(name)

static int copy_name(struct dl_phdr_info *info, size_t size, void *path) {
  static const char *const names[] = {LIBRARIES};
  (void)size;
  if ((strstr(info->dlpi_name, names[0]) == NULL && strstr(info->dlpi_name, names[1]) == NULL) ||
      strlen(info->dlpi_name) >= PATH_BYTES)
    return 0;
  strcpy(path, info->dlpi_name);
  return 1;
}

/* A function of the MPI library for Fortran, which the program has loaded for itself alone. */
static function *find(const char *name) {
  char path[PATH_BYTES];
  function *found = NULL;
  void *library = dl_iterate_phdr(copy_name, path) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (library != NULL)
    *(void **)&found = dlsym(library, name);
  if (found != NULL)
    return found;
  fprintf(stderr, "switchpoint: profile: %s of the MPI library is not found\n", name);
  abort();
}

/* A function of Fortran with so many arguments, the last of which may be missing. C programs need no library
   of it: the reference is weak. */
#define FORTRAN(name, shown, kind, count, comm, items, type)                                                 \
  extern void NEXT(name)(P##count) __attribute__((weak));                                                    \
  DECLARE(name, P##count)                                                                                    \
  void OWN(name)(P##count) {                                                                                 \
    static void (*_Atomic next)(P##count) = NEXT(name);                                                      \
    MPI_Fint error;                                                                                          \
    if (next == NULL)                                                                                        \
      next = (void (*)(P##count))find(NAME_OF(NEXT(name)));                                                  \
    if (!record_on) {                                                                                        \
      next(A##count);                                                                                        \
      return;                                                                                                \
    }                                                                                                        \
    if (ERROR##count == NULL)                                                                                \
      ERROR##count = &error;                                                                                 \
    struct call call = record_begin(shown, comm, record_knows(comm) ? (int64_t)(items) : -1, type);          \
    next(A##count);                                                                                          \
    if (INTEGER(ERROR##count) == MPI_SUCCESS)                                                                \
      record_end(&call, shown, kind, comm, call.tally == NULL ? (int64_t)(items) : 0, type);                 \
  }

static void give(MPI_Fint *error, int result) {
  if (error != NULL)
    *error = result;
}

DECLARE(init, MPI_Fint *error)
void OWN(init)(MPI_Fint *error) {
  family_check_fortran("libswitchpoint_profile.so", __builtin_return_address(0));
  give(error, MPI_Init(NULL, NULL));
}

DECLARE(init_thread, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
void OWN(init_thread)(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error) {
  family_check_fortran("libswitchpoint_profile.so", __builtin_return_address(0));
  give(error, MPI_Init_thread(NULL, NULL, *required, provided));
}

DECLARE(finalize, MPI_Fint *error)
void OWN(finalize)(MPI_Fint *error) {
  give(error, MPI_Finalize());
}

DECLARE(abort, MPI_Fint *comm, MPI_Fint *code, MPI_Fint *error)
void OWN(abort)(MPI_Fint *comm, MPI_Fint *code, MPI_Fint *error) {
  give(error, MPI_Abort(PMPI_Comm_f2c(*comm), *code));
}

static void free_by(int (*leave)(MPI_Comm *comm), MPI_Fint *comm, MPI_Fint *error) {
  MPI_Comm freed = PMPI_Comm_f2c(*comm);
  const int result = leave(&freed);
  if (result == MPI_SUCCESS)
    *comm = PMPI_Comm_c2f(freed);
  give(error, result);
}

DECLARE(comm_free, MPI_Fint *comm, MPI_Fint *error)
void OWN(comm_free)(MPI_Fint *comm, MPI_Fint *error) {
  free_by(MPI_Comm_free, comm, error);
}

DECLARE(comm_disconnect, MPI_Fint *comm, MPI_Fint *error)
void OWN(comm_disconnect)(MPI_Fint *comm, MPI_Fint *error) {
  free_by(MPI_Comm_disconnect, comm, error);
}

#ifdef OPEN_MPI
#define AT_ROOT(root, comm, there, elsewhere) (is_root(comm, INTEGER(root)) ? (there) : (elsewhere))

FORTRAN(bcast, "Bcast", COLLECTIVE, 6, COMM(e), INTEGER(b), TYPE(c))
FORTRAN(gather, "Gather", COLLECTIVE, 9, COMM(h), AT_ROOT(g, COMM(h), INTEGER(e), INTEGER(b)),
        AT_ROOT(g, COMM(h), TYPE(f), TYPE(c)))
FORTRAN(scatter, "Scatter", COLLECTIVE, 9, COMM(h), AT_ROOT(g, COMM(h), INTEGER(b), INTEGER(e)),
        AT_ROOT(g, COMM(h), TYPE(c), TYPE(f)))
FORTRAN(reduce, "Reduce", COLLECTIVE, 8, COMM(g), INTEGER(c), TYPE(d))
FORTRAN(allreduce, "Allreduce", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
FORTRAN(allgather, "Allgather", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
FORTRAN(allgatherv, "Allgatherv", COLLECTIVE, 9, COMM(h), mean_of(e, COMM(h)), TYPE(g))
FORTRAN(alltoall, "Alltoall", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
FORTRAN(reduce_scatter_block, "Reduce_scatter_block", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
FORTRAN(gatherv, "Gatherv", COLLECTIVE, 10, COMM(i), AT_ROOT(h, COMM(i), mean_of(e, COMM(i)), INTEGER(b)),
        AT_ROOT(h, COMM(i), TYPE(g), TYPE(c)))
FORTRAN(scatterv, "Scatterv", COLLECTIVE, 10, COMM(i), AT_ROOT(h, COMM(i), mean_of(b, COMM(i)), INTEGER(f)),
        AT_ROOT(h, COMM(i), TYPE(d), TYPE(g)))
FORTRAN(alltoallv, "Alltoallv", COLLECTIVE, 10, COMM(i), mean_of(f, COMM(i)), TYPE(h))
FORTRAN(alltoallw, "Alltoallw", COLLECTIVE, 10, COMM(i), 0, MPI_DATATYPE_NULL)
FORTRAN(reduce_scatter, "Reduce_scatter", COLLECTIVE, 7, COMM(f), mean_of(c, COMM(f)), TYPE(d))
FORTRAN(scan, "Scan", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
FORTRAN(exscan, "Exscan", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
FORTRAN(neighbor_allgather, "Neighbor_allgather", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
FORTRAN(neighbor_allgatherv, "Neighbor_allgatherv", COLLECTIVE, 9, COMM(h), INTEGER(b), TYPE(c))
FORTRAN(neighbor_alltoall, "Neighbor_alltoall", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
FORTRAN(neighbor_alltoallv, "Neighbor_alltoallv", COLLECTIVE, 10, COMM(i), 0, MPI_DATATYPE_NULL)
FORTRAN(neighbor_alltoallw, "Neighbor_alltoallw", COLLECTIVE, 10, COMM(i), 0, MPI_DATATYPE_NULL)
FORTRAN(iallreduce, "Iallreduce", OTHER, 8, COMM(f), INTEGER(c), TYPE(d))
FORTRAN(ialltoall, "Ialltoall", OTHER, 9, COMM(g), INTEGER(e), TYPE(f))
FORTRAN(ibcast, "Ibcast", OTHER, 7, COMM(e), INTEGER(b), TYPE(c))
FORTRAN(send, "Send", OTHER, 7, COMM(f), INTEGER(b), TYPE(c))
FORTRAN(ssend, "Ssend", OTHER, 7, COMM(f), INTEGER(b), TYPE(c))
FORTRAN(recv, "Recv", OTHER, 8, COMM(f), INTEGER(b), TYPE(c))
FORTRAN(isend, "Isend", OTHER, 8, COMM(f), INTEGER(b), TYPE(c))
FORTRAN(irecv, "Irecv", OTHER, 8, COMM(f), INTEGER(b), TYPE(c))
FORTRAN(sendrecv, "Sendrecv", OTHER, 13, COMM(k), INTEGER(b), TYPE(c))
#endif

/* Calls that have no size. */
#define UNSIZED(name, shown, kind, count, comm) FORTRAN(name, shown, kind, count, comm, 0, MPI_DATATYPE_NULL)
#define P2 void *a, void *b
#define A2 a, b
#define ERROR2 b

UNSIZED(barrier, "Barrier", COLLECTIVE, 2, COMM(a))
UNSIZED(ibarrier, "Ibarrier", OTHER, 3, COMM(a))
UNSIZED(probe, "Probe", OTHER, 5, COMM(c))
UNSIZED(iprobe, "Iprobe", OTHER, 6, COMM(c))
UNSIZED(mprobe, "Mprobe", OTHER, 6, COMM(c))
UNSIZED(improbe, "Improbe", OTHER, 7, COMM(c))
UNSIZED(start, "Start", OTHER, 2, MPI_COMM_NULL)
UNSIZED(startall, "Startall", OTHER, 3, MPI_COMM_NULL)
UNSIZED(wait, "Wait", OTHER, 3, MPI_COMM_NULL)
UNSIZED(waitany, "Waitany", OTHER, 5, MPI_COMM_NULL)
UNSIZED(waitall, "Waitall", OTHER, 4, MPI_COMM_NULL)
UNSIZED(waitsome, "Waitsome", OTHER, 6, MPI_COMM_NULL)
UNSIZED(test, "Test", OTHER, 4, MPI_COMM_NULL)
UNSIZED(testany, "Testany", OTHER, 6, MPI_COMM_NULL)
UNSIZED(testall, "Testall", OTHER, 5, MPI_COMM_NULL)
UNSIZED(testsome, "Testsome", OTHER, 6, MPI_COMM_NULL)
UNSIZED(request_get_status, "Request_get_status", OTHER, 4, MPI_COMM_NULL)
UNSIZED(win_fence, "Win_fence", OTHER, 3, MPI_COMM_NULL)

#ifdef OPEN_MPI /* in mpi_f08, these call the functions of the profiling names */
EXPORTED void mpi_iprobe_f08_(P6) __attribute__((alias("mpi_iprobe_")));
EXPORTED void mpi_improbe_f08_(P7) __attribute__((alias("mpi_improbe_")));
EXPORTED void mpi_test_f08_(P4) __attribute__((alias("mpi_test_")));
EXPORTED void mpi_testany_f08_(P6) __attribute__((alias("mpi_testany_")));
EXPORTED void mpi_testall_f08_(P5) __attribute__((alias("mpi_testall_")));
EXPORTED void mpi_testsome_f08_(P6) __attribute__((alias("mpi_testsome_")));
EXPORTED void mpi_request_get_status_f08_(P4) __attribute__((alias("mpi_request_get_status_")));
#endif

#endif
