#include "application.h"

#include "testing.h"

#include <stdlib.h>

MPI_Comm application_promise(MPI_Comm comm) {
  MPI_Comm copy;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_fixed_counts", "true");
  MPI_Comm_dup_with_info(comm, info, &copy);
  MPI_Info_free(&info);
  return copy;
}

/* Calls the functions with counts of int, or those with large ones but for lists, which are others then. */
#define CALL_APPLICATION(name, suffix)                                                                       \
  static int name(const struct test_call *call, MPI_Comm comm) {                                             \
    const struct swp_collective *p = &call->problem;                                                         \
    switch (p->operation) {                                                                                  \
    case SWP_BCAST:                                                                                          \
      return MPI_Bcast##suffix(call->recv, p->recv_count, p->recv_type, p->root, comm);                      \
    case SWP_GATHER:                                                                                         \
      return MPI_Gather##suffix(call->send, p->send_count, p->send_type, call->recv, p->recv_count,          \
                                p->recv_type, p->root, comm);                                                \
    case SWP_SCATTER:                                                                                        \
      return MPI_Scatter##suffix(call->send, p->send_count, p->send_type, call->recv, p->recv_count,         \
                                 p->recv_type, p->root, comm);                                               \
    case SWP_REDUCE:                                                                                         \
      return MPI_Reduce##suffix(call->send, call->recv, p->recv_count, p->recv_type, p->op, p->root, comm);  \
    case SWP_ALLREDUCE:                                                                                      \
      return MPI_Allreduce##suffix(call->send, call->recv, p->recv_count, p->recv_type, p->op, comm);        \
    case SWP_ALLGATHER:                                                                                      \
      return MPI_Allgather##suffix(call->send, p->send_count, p->send_type, call->recv, p->recv_count,       \
                                   p->recv_type, comm);                                                      \
    case SWP_ALLGATHERV:                                                                                     \
      return MPI_Allgatherv(call->send, p->send_count, p->send_type, call->recv, p->recv_counts, p->displs,  \
                            p->recv_type, comm);                                                             \
    case SWP_ALLTOALL:                                                                                       \
      return MPI_Alltoall##suffix(call->send, p->send_count, p->send_type, call->recv, p->recv_count,        \
                                  p->recv_type, comm);                                                       \
    case SWP_ALLTOALLV:                                                                                      \
      return MPI_Alltoallv(call->send, p->send_counts, p->send_displs, p->send_type, call->recv,             \
                           p->recv_counts, p->displs, p->recv_type, comm);                                   \
    case SWP_REDUCE_SCATTER_BLOCK:                                                                           \
      return MPI_Reduce_scatter_block##suffix(call->send, call->recv, p->recv_count, p->recv_type, p->op,    \
                                              comm);                                                         \
    case SWP_BARRIER:                                                                                        \
      return MPI_Barrier(comm);                                                                              \
    default:                                                                                                 \
      return MPI_ERR_OTHER;                                                                                  \
    }                                                                                                        \
  }

CALL_APPLICATION(call_small, )
#ifdef SWP_HAVE_LARGE_COUNTS
CALL_APPLICATION(call_large_counts, _c)

struct lists application_widen(const int *counts, const int *displs, MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  struct lists lists = {test_allocate((size_t)size * sizeof(MPI_Count)),
                        test_allocate((size_t)size * sizeof(MPI_Aint))};
  for (int i = 0; counts != NULL && i < size; i++) {
    lists.counts[i] = counts[i];
    lists.displs[i] = displs[i];
  }
  return lists;
}

static int call_large(const struct test_call *call, MPI_Comm comm) {
  const struct swp_collective *p = &call->problem;
  if (p->operation != SWP_ALLGATHERV && p->operation != SWP_ALLTOALLV)
    return call_large_counts(call, comm);
  struct lists to = application_widen(p->recv_counts, p->displs, comm),
               from = application_widen(p->send_counts, p->send_displs, comm);
  int error = p->operation == SWP_ALLGATHERV
                  ? MPI_Allgatherv_c(call->send, p->send_count, p->send_type, call->recv, to.counts,
                                     to.displs, p->recv_type, comm)
                  : MPI_Alltoallv_c(call->send, from.counts, from.displs, p->send_type, call->recv, to.counts,
                                    to.displs, p->recv_type, comm);
  free(to.counts), free(to.displs), free(from.counts), free(from.displs);
  return error;
}
#else
#define call_large call_small
#endif

/* An alltoallv is called twice, the second time by the plan of the first. */
int application_call(const struct test_call *call, MPI_Comm comm, bool large) {
  int (*function)(const struct test_call *, MPI_Comm) = large ? call_large : call_small;
  if (call->problem.operation != SWP_ALLTOALLV)
    return function(call, comm);
  MPI_Comm copy = application_promise(comm);
  int error = function(call, copy);
  if (error == MPI_SUCCESS && call->send != MPI_IN_PLACE)
    error = function(call, copy);
  MPI_Comm_free(&copy);
  return error;
}
