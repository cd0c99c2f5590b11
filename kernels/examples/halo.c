/*
 * An application in miniature: every rank exchanges a halo with its nearest neighbours on a ring, and lets
 * Switchpoint choose the method for each message size.
 *
 *   SWITCHPOINT_TABLE=switchpoint.table mpiexec -n 8 swp_example_halo 8 1024 65536
 *   SWITCHPOINT_USER_TABLE=halo.table mpiexec -n 8 swp_example_halo measure 8 1024 65536
 */
#include <switchpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = 3, NEIGHBORS = 2 * REACH, STEPS = 10 };

/* Up to three neighbours on either side, each once however few ranks there are. */
static int find_neighbors(int rank, int procs, int *neighbors) {
  int count = 0;
  for (int distance = 1; distance <= REACH && 2 * distance <= procs; distance++) {
    neighbors[count++] = (rank + distance) % procs;
    if (2 * distance < procs)
      neighbors[count++] = (rank - distance + procs) % procs;
  }
  return count;
}

static void check(int error) {
  if (error == SWP_SUCCESS)
    return;
  fprintf(stderr, "halo: %s: %s\n", swp_strerror(error), swp_error_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void exchange_halo(int rank, int count, const int *neighbors, long bytes,
                          const struct swp_hints *hints) {
  int64_t offsets[NEIGHBORS + 1];
  for (int i = 0; i <= count; i++)
    offsets[i] = i * bytes;
  struct swp_exchange halo = {
      .item_bytes = 1,
      .nitems = offsets[count],
      .nsends = count,
      .send_ranks = neighbors,
      .send_offsets = offsets,
      .nrecvs = count,
      .recv_ranks = neighbors,
      .recv_offsets = offsets,
  };
  swp_plan *plan;
  check(swp_exchange_plan(MPI_COMM_WORLD, &halo, "auto", hints, &plan));
  if (rank == 0) {
    char text[1024];
    check(swp_plan_describe(plan, text, sizeof text));
    printf("%ld bytes to each of %d neighbours: %s\n", bytes, count, text);
  }

  unsigned char *send = malloc((size_t)offsets[count] + 1), *recv = malloc((size_t)offsets[count] + 1);
  if (send == NULL || recv == NULL)
    MPI_Abort(MPI_COMM_WORLD, 1);
  for (int step = 0; step < STEPS; step++) {
    for (int64_t i = 0; i < offsets[count]; i++)
      send[i] = (unsigned char)(rank + step);
    check(swp_exchange_execute(plan, send, recv));
    for (int64_t i = 0; i < offsets[count]; i++)
      if (recv[i] != (unsigned char)(neighbors[i / bytes] + step)) {
        fprintf(stderr, "halo: rank %d got a wrong byte from rank %d\n", rank, neighbors[i / bytes]);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
  }
  free(send);
  free(recv);
  check(swp_plan_free(&plan));
}

int main(int argc, char **argv) {
  int rank, procs, neighbors[NEIGHBORS];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  int count = find_neighbors(rank, procs, neighbors);
  int measures = argc > 1 && strcmp(argv[1], "measure") == 0;
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  if (measures) {
    hints.flags = SWP_MEASURE;
    hints.budget_s = 2;
  }
  if (argc < 2 + measures && rank == 0)
    printf("usage: swp_example_halo [measure] BYTES...: the sizes of a message to each neighbour\n");
  for (int i = 1 + measures; i < argc; i++) {
    long bytes = strtol(argv[i], NULL, 10);
    if (bytes < 1 || bytes > 1L << 30) {
      if (rank == 0)
        fprintf(stderr, "halo: '%s' is not a number of bytes from 1 to 2^30\n", argv[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    exchange_halo(rank, count, neighbors, bytes, &hints);
  }
  MPI_Finalize();
  return 0;
}
