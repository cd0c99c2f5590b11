/* Pairs of ranks plan at the same time: swp_pairs BYTES, of a message to the other. The first prints how many
   pairs have a plan by the node's memory, and why another pair has none. */
#include "switchpoint.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int plan_lent(MPI_Comm pair, int64_t bytes, swp_plan **plan) {
  int rank;
  MPI_Comm_rank(pair, &rank);
  const int other = 1 - rank;
  const int64_t offsets[] = {0, 1}, item = 0;
  const struct swp_exchange exchange = {.item_bytes = bytes,
                                        .nitems = 1,
                                        .nsends = 1,
                                        .send_ranks = &other,
                                        .send_offsets = offsets,
                                        .send_items = &item,
                                        .nrecvs = 1,
                                        .recv_ranks = &other,
                                        .recv_offsets = offsets};
  return swp_exchange_plan(pair, &exchange, "lent", NULL, plan);
}

int main(int argc, char **argv) {
  int rank, error, made;
  swp_plan *plan = NULL;
  MPI_Comm pair;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  MPI_Barrier(MPI_COMM_WORLD);
  error = plan_lent(pair, argc > 1 ? atoll(argv[1]) : 1, &plan);
  if (error != SWP_SUCCESS && rank % 2 == 0)
    printf("%s\n", swp_error_message());
  made = error == SWP_SUCCESS && rank % 2 == 0;
  MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* all hold what they have */
  if (rank == 0)
    printf("%d pairs\n", made);
  swp_plan_free(&plan);
  MPI_Comm_free(&pair);
  MPI_Finalize();
  return error == SWP_SUCCESS || error == SWP_ERR_NOT_APPLICABLE ? EXIT_SUCCESS : EXIT_FAILURE;
}
