/*
 * Calls one collective over and over, and then the next, for a tool that counts instructions: by the name
 * that a preload stands before, or by the other. Usage: swp_calls mpi|pmpi|threads OPERATION CALLS ...
 *   threads       as mpi, with MPI_THREAD_MULTIPLE
 *   host_buffers  instead of an operation: 1 promises that buffers are the host's, 0 withdraws that
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 16 };

static int send[COUNT], recv[COUNT];
static const int counts[] = {COUNT}, displs[] = {0};

#define CALLS(name, prefix)                                                                                  \
  static int name(const char *operation) {                                                                   \
    if (strcmp(operation, "bcast") == 0)                                                                     \
      return prefix##MPI_Bcast(recv, COUNT, MPI_INT, 0, MPI_COMM_WORLD);                                     \
    if (strcmp(operation, "gather") == 0)                                                                    \
      return prefix##MPI_Gather(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, 0, MPI_COMM_WORLD);              \
    if (strcmp(operation, "scatter") == 0)                                                                   \
      return prefix##MPI_Scatter(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, 0, MPI_COMM_WORLD);             \
    if (strcmp(operation, "reduce") == 0)                                                                    \
      return prefix##MPI_Reduce(send, recv, COUNT, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);                     \
    if (strcmp(operation, "allreduce") == 0)                                                                 \
      return prefix##MPI_Allreduce(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);                     \
    if (strcmp(operation, "allgather") == 0)                                                                 \
      return prefix##MPI_Allgather(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, MPI_COMM_WORLD);              \
    if (strcmp(operation, "allgatherv") == 0)                                                                \
      return prefix##MPI_Allgatherv(send, COUNT, MPI_INT, recv, counts, displs, MPI_INT, MPI_COMM_WORLD);    \
    if (strcmp(operation, "alltoall") == 0)                                                                  \
      return prefix##MPI_Alltoall(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, MPI_COMM_WORLD);               \
    if (strcmp(operation, "alltoallv") == 0)                                                                 \
      return prefix##MPI_Alltoallv(send, counts, displs, MPI_INT, recv, counts, displs, MPI_INT,             \
                                   MPI_COMM_WORLD);                                                          \
    if (strcmp(operation, "reduce_scatter_block") == 0)                                                      \
      return prefix##MPI_Reduce_scatter_block(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);          \
    if (strcmp(operation, "barrier") == 0)                                                                   \
      return prefix##MPI_Barrier(MPI_COMM_WORLD);                                                            \
    return MPI_ERR_OTHER;                                                                                    \
  }

CALLS(call_mpi, )
CALLS(call_pmpi, P)

static __attribute__((noinline)) int repeat(int (*call)(const char *), const char *operation, int calls) {
  int failures = 0;
  for (int i = 0; i < calls; i++)
    failures += call(operation) != MPI_SUCCESS;
  return failures;
}

static void promise(bool host_buffers) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_host_buffers", host_buffers ? "true" : "false");
  MPI_Comm_set_info(MPI_COMM_WORLD, info);
  MPI_Info_free(&info);
}

int main(int argc, char **argv) {
  int failures = argc < 4, provided;
  bool threads = argc > 1 && strcmp(argv[1], "threads") == 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  int (*call)(const char *) = argc > 1 && strcmp(argv[1], "pmpi") == 0 ? call_pmpi : call_mpi;
  for (int i = 2; i + 1 < argc; i += 2)
    if (strcmp(argv[i], "host_buffers") == 0)
      promise(atoi(argv[i + 1]) != 0);
    else
      failures += repeat(call, argv[i], atoi(argv[i + 1]));
  MPI_Finalize();
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
