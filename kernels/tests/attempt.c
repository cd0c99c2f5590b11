#include "attempt.h"

#include "testing.h"

#include <mpi.h>

void attempt_make(struct attempt *attempt) {
  int rank, procs;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  int alone = procs == 1;
  *attempt = (struct attempt){
      .send_ranks = {(rank + 1) % procs, rank},
      .recv_ranks = {(rank + procs - 1) % procs, rank},
      .send_offsets = {0, 3, 4},
      .send_items = {2, 0, 1, 0},
      .recv_offsets = {0, 3, 4},
      .problem = {.item_bytes = 8,
                  .nitems = 3,
                  .nsends = alone ? 1 : 2,
                  .send_ranks = attempt->send_ranks,
                  .send_offsets = attempt->send_offsets,
                  .send_items = attempt->send_items,
                  .nrecvs = alone ? 1 : 2,
                  .recv_ranks = attempt->recv_ranks,
                  .recv_offsets = attempt->recv_offsets},
      .method = "direct",
      .hints = SWP_HINTS_DEFAULT,
  };
}

int attempt_plan(const struct attempt *attempt, swp_plan **plan) {
  return test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &attempt->problem, attempt->method,
                                                       &attempt->hints, plan));
}

void attempt_mistakes(size_t count, const struct mistake *mistakes, int culprit,
                      int plan(const struct attempt *attempt, swp_plan **plan)) {
  int rank, procs;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  for (size_t i = 0; i < count; i++) {
    if (mistakes[i].ranks > procs)
      continue;
    test_case("%s on rank %d", mistakes[i].name, culprit);
    struct attempt attempt;
    attempt_make(&attempt);
    if (rank == culprit)
      mistakes[i].spoil(&attempt);
    swp_plan *made = (swp_plan *)&attempt;
    EXPECT_ERROR(plan(&attempt, &made), mistakes[i].error);
    EXPECT(made == NULL, "the plan is not NULL");
  }
}
