/* The functions of fortran.h that are recorded. */
#define _GNU_SOURCE
#include "record.h"

#ifdef SWP_FORTRAN_INT

#include "fortran.h"

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

typedef void function(void);

#ifdef OPEN_MPI
#define LIBRARIES "libmpi_mpifh", "libmpi_mpifh"
#define NEXT(name) pmpi_##name##_
#else
#define LIBRARIES "libmpichfort", "libmpifort"
#define NEXT(name) pmpir_##name##_f08_
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
#define RECORDED(name, shown, kind, count, comm, items, type)                                                \
  extern void NEXT(name)(P##count) __attribute__((weak));                                                    \
  FORTRAN(name, P##count) {                                                                                  \
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

FORTRAN_BEGIN_AND_END("libswitchpoint_profile.so")

#ifdef OPEN_MPI
#define AT_ROOT(root, comm, there, elsewhere) (is_root(comm, INTEGER(root)) ? (there) : (elsewhere))

RECORDED(bcast, "Bcast", COLLECTIVE, 6, COMM(e), INTEGER(b), TYPE(c))
RECORDED(gather, "Gather", COLLECTIVE, 9, COMM(h), AT_ROOT(g, COMM(h), INTEGER(e), INTEGER(b)),
         AT_ROOT(g, COMM(h), TYPE(f), TYPE(c)))
RECORDED(scatter, "Scatter", COLLECTIVE, 9, COMM(h), AT_ROOT(g, COMM(h), INTEGER(b), INTEGER(e)),
         AT_ROOT(g, COMM(h), TYPE(c), TYPE(f)))
RECORDED(reduce, "Reduce", COLLECTIVE, 8, COMM(g), INTEGER(c), TYPE(d))
RECORDED(allreduce, "Allreduce", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
RECORDED(allgather, "Allgather", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
RECORDED(allgatherv, "Allgatherv", COLLECTIVE, 9, COMM(h), mean_of(e, COMM(h)), TYPE(g))
RECORDED(alltoall, "Alltoall", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
RECORDED(reduce_scatter_block, "Reduce_scatter_block", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
RECORDED(gatherv, "Gatherv", COLLECTIVE, 10, COMM(i), AT_ROOT(h, COMM(i), mean_of(e, COMM(i)), INTEGER(b)),
         AT_ROOT(h, COMM(i), TYPE(g), TYPE(c)))
RECORDED(scatterv, "Scatterv", COLLECTIVE, 10, COMM(i), AT_ROOT(h, COMM(i), mean_of(b, COMM(i)), INTEGER(f)),
         AT_ROOT(h, COMM(i), TYPE(d), TYPE(g)))
RECORDED(alltoallv, "Alltoallv", COLLECTIVE, 10, COMM(i), mean_of(f, COMM(i)), TYPE(h))
RECORDED(alltoallw, "Alltoallw", COLLECTIVE, 10, COMM(i), 0, MPI_DATATYPE_NULL)
RECORDED(reduce_scatter, "Reduce_scatter", COLLECTIVE, 7, COMM(f), mean_of(c, COMM(f)), TYPE(d))
RECORDED(scan, "Scan", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
RECORDED(exscan, "Exscan", COLLECTIVE, 7, COMM(f), INTEGER(c), TYPE(d))
RECORDED(neighbor_allgather, "Neighbor_allgather", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
RECORDED(neighbor_allgatherv, "Neighbor_allgatherv", COLLECTIVE, 9, COMM(h), INTEGER(b), TYPE(c))
RECORDED(neighbor_alltoall, "Neighbor_alltoall", COLLECTIVE, 8, COMM(g), INTEGER(e), TYPE(f))
RECORDED(neighbor_alltoallv, "Neighbor_alltoallv", COLLECTIVE, 10, COMM(i), 0, MPI_DATATYPE_NULL)
RECORDED(neighbor_alltoallw, "Neighbor_alltoallw", COLLECTIVE, 10, COMM(i), 0, MPI_DATATYPE_NULL)
RECORDED(iallreduce, "Iallreduce", OTHER, 8, COMM(f), INTEGER(c), TYPE(d))
RECORDED(ialltoall, "Ialltoall", OTHER, 9, COMM(g), INTEGER(e), TYPE(f))
RECORDED(ibcast, "Ibcast", OTHER, 7, COMM(e), INTEGER(b), TYPE(c))
RECORDED(send, "Send", OTHER, 7, COMM(f), INTEGER(b), TYPE(c))
RECORDED(ssend, "Ssend", OTHER, 7, COMM(f), INTEGER(b), TYPE(c))
RECORDED(recv, "Recv", OTHER, 8, COMM(f), INTEGER(b), TYPE(c))
RECORDED(isend, "Isend", OTHER, 8, COMM(f), INTEGER(b), TYPE(c))
RECORDED(irecv, "Irecv", OTHER, 8, COMM(f), INTEGER(b), TYPE(c))
RECORDED(sendrecv, "Sendrecv", OTHER, 13, COMM(k), INTEGER(b), TYPE(c))
#endif

/* Calls that have no size. */
#define UNSIZED(name, shown, kind, count, comm) RECORDED(name, shown, kind, count, comm, 0, MPI_DATATYPE_NULL)
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
