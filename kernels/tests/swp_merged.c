/*
 * A program that knows nothing of Switchpoint starts one process more, which has no preload, and makes one
 * communicator with it. A preload that asked all of its ranks for promises, or dispatched its calls, would
 * hang. Usage: swp_merged [--started]
 */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

static void check(MPI_Comm comm) {
  int rank, procs, one[] = {1}, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  int *all = test_allocate(4 * (size_t)procs * sizeof(int)), *send = all + procs, *counts = send + procs,
      *displs = counts + procs;
  for (int i = 0; i < procs; i++) {
    send[i] = rank;
    counts[i] = 1;
    displs[i] = i;
  }
  EXPECT_EQUAL(MPI_Allreduce(one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  EXPECT_EQUAL(sum, procs);
  EXPECT_EQUAL(MPI_Alltoallv(send, counts, displs, MPI_INT, all, counts, displs, MPI_INT, comm), MPI_SUCCESS);
  for (int i = 0; i < procs; i++)
    EXPECT_EQUAL(all[i], i);
  MPI_Barrier(comm);
  free(all);
}

static MPI_Comm start_another(char *program) {
  MPI_Comm children = MPI_COMM_NULL;
  char *arguments[] = {"-u", "LD_PRELOAD", program, "--started", NULL};
  MPI_Comm_spawn("env", arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  return children;
}

int main(int argc, char **argv) {
  bool started = argc > 1 && strcmp(argv[1], "--started") == 0;
  MPI_Comm other, merged, twin;
  MPI_Init(&argc, &argv);
  test_begin(&argc, &argv, "swp_merged");
  test_case("with a process of another job");
  if (started)
    MPI_Comm_get_parent(&other);
  else
    other = start_another(argv[0]);
  MPI_Intercomm_merge(other, started, &merged);
  check(merged);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_fixed_counts", "true");
  MPI_Comm_dup_with_info(merged, info, &twin);
  MPI_Info_free(&info);
  check(twin);
  MPI_Comm_free(&twin);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&other);
  return test_end();
}
