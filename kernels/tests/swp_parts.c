/* Plans of collectives that share a communicator share what they divide it into: communicators are few. */
#include "machine.h"
#include "objects.h"
#include "testing.h"

#include <stdio.h>

static const enum swp_operation operations[] = {SWP_BCAST, SWP_REDUCE, SWP_ALLREDUCE, SWP_GATHER,
                                                SWP_ALLGATHER};

enum { OPERATIONS_HERE = sizeof operations / sizeof *operations };

static swp_plan *make_plan(MPI_Comm comm, enum swp_operation operation, const char *method, int ppn) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  struct swp_collective problem = {.operation = operation,
                                   .send_count = 1,
                                   .send_type = MPI_INT,
                                   .recv_count = 1,
                                   .recv_type = MPI_INT,
                                   .op = MPI_SUM};
  swp_plan *plan = NULL;
  hints.flags = SWP_SAME_COMM;
  hints.ppn = ppn;
  EXPECT_ERROR(swp_collective_plan(comm, &problem, method, &hints, &plan), SWP_SUCCESS);
  return plan;
}

/* However many operations, two communicators more. */
static void check_shared(const char *method, int ppn) {
  MPI_Comm comm;
  swp_plan *plans[OPERATIONS_HERE];
  long before = mpi_objects();
  test_case("%s with %d ranks on a node", method, ppn);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < OPERATIONS_HERE; i++)
    plans[i] = make_plan(comm, operations[i], method, ppn);
  EXPECT_EQUAL(mpi_objects() - before, 1 + 2);
  for (int i = 0; i < OPERATIONS_HERE; i++) {
    int value = 3, sums[64] = {0};
    if (operations[i] != SWP_ALLREDUCE)
      continue;
    EXPECT_ERROR(swp_collective_execute(plans[i], &value, sums), SWP_SUCCESS);
    int procs;
    MPI_Comm_size(comm, &procs);
    EXPECT_EQUAL(sums[0], 3 * procs);
  }
  for (int i = 0; i < OPERATIONS_HERE; i++)
    swp_plan_free(&plans[i]);
  MPI_Comm_free(&comm);
  EXPECT_EQUAL(mpi_objects(), before);
}

/* A dimension that two grids have in the same place is one, too. */
static void check_grids(void) {
  MPI_Comm comm;
  long before = mpi_objects();
  test_case("grids with a dimension in common");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  swp_plan *flat = make_plan(comm, SWP_BCAST, "orthogonal:grid=2x4", 0);
  swp_plan *cube = make_plan(comm, SWP_REDUCE, "orthogonal:grid=2x2x2", 0);
  EXPECT_EQUAL(mpi_objects() - before, 1 + 4);
  swp_plan_free(&flat);
  swp_plan_free(&cube);
  MPI_Comm_free(&comm);
  EXPECT_EQUAL(mpi_objects(), before);
}

/* Their hashes differ only in bits for which a colour has no room. */
static void machines_of_one_colour_are_told_apart(void) {
  MPI_Comm machine;
  int rank, procs, size;
  test_case("two machines");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  swp_machine_split(MPI_COMM_WORLD, (uint64_t)(rank % 2) << 63, rank, &machine);
  MPI_Comm_size(machine, &size);
  EXPECT_EQUAL(size, (procs + 1 - rank % 2) / 2);
  MPI_Comm_free(&machine);
}

int main(int argc, char **argv) {
  int procs;
  test_begin(&argc, &argv, "swp_parts");
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  char grid[64];
  if (procs % 2 == 0 && procs > 2) {
    snprintf(grid, sizeof grid, "orthogonal:grid=2x%d", procs / 2);
    check_shared(grid, 0);
    check_shared("twolevel", 2);
    check_shared("twolevel:node=shared", 2);
  }
  if (procs == 8)
    check_grids();
  machines_of_one_colour_are_told_apart();
  return test_end();
}
