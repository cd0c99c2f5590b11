/*
 * What collective calls take by the state of their buffers: before each call, every rank writes what it
 * sends, clears where it receives, both, or neither. A rank's time is that from a barrier to the end of its
 * call; of each call the longest counts. Prints the medians in microseconds.
 *
 * Usage: mpiexec -n 2 swp_compare_buffers [BYTES]
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 2000, PAGE_BYTES = 4096, STATES = 4 };

struct buffers {
  char *send, *recv;
  int block, total; /* bytes: of a block, and of one of each rank */
};

static void allgather(const struct buffers *b) {
  MPI_Allgather(b->send, b->block, MPI_BYTE, b->recv, b->block, MPI_BYTE, MPI_COMM_WORLD);
}

static void allreduce(const struct buffers *b) {
  MPI_Allreduce(b->send, b->recv, b->block / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(const struct buffers *b) {
  MPI_Alltoall(b->send, b->block, MPI_BYTE, b->recv, b->block, MPI_BYTE, MPI_COMM_WORLD);
}

static void bcast(const struct buffers *b) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Bcast(rank == 0 ? b->send : b->recv, b->block, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static const struct operation {
  const char *name;
  void (*call)(const struct buffers *);
} operations[] = {
    {"allgather", allgather}, {"allreduce", allreduce}, {"alltoall", alltoall}, {"bcast", bcast}};

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The result counts on rank 0 alone. */
static double median_s(const struct operation *operation, const struct buffers *b, bool writes, bool clears) {
  static double longest_s[CALLS];
  for (int i = 0; i < CALLS; i++) {
    if (writes)
      memset(b->send, i % 16, (size_t)b->total);
    if (clears)
      memset(b->recv, 0, (size_t)b->total);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = MPI_Wtime();
    operation->call(b);
    const double own_s = MPI_Wtime() - start_s;
    MPI_Reduce(&own_s, &longest_s[i], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  }
  qsort(longest_s, CALLS, sizeof *longest_s, compare);
  return longest_s[CALLS / 2];
}

int main(int argc, char **argv) {
  int rank, procs;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  struct buffers b = {.block = argc > 1 ? atoi(argv[1]) : 65536};
  b.total = b.block * procs;
  const size_t room = ((size_t)b.total / PAGE_BYTES + 1) * PAGE_BYTES;
  b.send = aligned_alloc(PAGE_BYTES, room);
  b.recv = aligned_alloc(PAGE_BYTES, room);
  if (b.block <= 0 || b.send == NULL || b.recv == NULL)
    return MPI_Abort(MPI_COMM_WORLD, 1);
  memset(b.send, 0, room);
  memset(b.recv, 0, room);
  if (rank == 0)
    printf("%-10s %8s %8s %8s %8s\n", "us", "neither", "writes", "clears", "both");
  for (int i = 0; i < (int)(sizeof operations / sizeof operations[0]); i++) {
    double medians_s[STATES];
    for (int state = 0; state < STATES; state++)
      medians_s[state] = median_s(&operations[i], &b, state & 1, state & 2);
    if (rank == 0)
      printf("%-10s %8.2f %8.2f %8.2f %8.2f\n", operations[i].name, 1e6 * medians_s[0], 1e6 * medians_s[1],
             1e6 * medians_s[2], 1e6 * medians_s[3]);
  }
  free(b.send);
  free(b.recv);
  MPI_Finalize();
  return 0;
}
