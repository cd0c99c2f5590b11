/* What planning a collective, and setting a plan, refuse; the plan stays as it was. */
#include "allocate.h"
#include "testing.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int rank, procs;

static void expect_refused(struct swp_collective problem, const char *method, int expected) {
  swp_plan *plan = NULL;
  int error = test_agreed(MPI_COMM_WORLD, swp_collective_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan));
  EXPECT_ERROR(error, expected);
  EXPECT(plan == NULL, "the plan is not NULL");
}

static void wrong_problems_are_refused(void) {
  struct swp_collective good = {
      .operation = SWP_REDUCE, .recv_count = 4, .recv_type = MPI_INT, .op = MPI_SUM};
  struct swp_collective bad = good;
  test_case("wrong problems");
  bad.operation = SWP_EXCHANGE;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.root = procs;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.recv_count = rank == 0 ? -1 : 4;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.recv_type = MPI_DATATYPE_NULL;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.op = MPI_OP_NULL;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.operation = SWP_ALLGATHERV, bad.send_type = MPI_INT;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  expect_refused(good, "direct", SWP_ERR_METHOD);
  bad = good, bad.operation = SWP_ALLTOALL, bad.send_count = 4, bad.send_type = MPI_INT;
  expect_refused(bad, "binomial", SWP_ERR_METHOD);
  if (procs == 1)
    return;
  bad = good, bad.root = rank == 0;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.recv_count = rank == 0 ? 3 : 4;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.operation = rank == 0 ? SWP_REDUCE : SWP_ALLREDUCE;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
}

/* The lists of an alltoallv are needed, and each rank must receive what is sent to it. */
static void wrong_lists_are_refused(void) {
  int *ones = test_allocate(2 * (size_t)procs * sizeof *ones), *more = ones + procs;
  struct swp_collective good = test_alltoallv(MPI_INT, ones, ones);
  struct swp_collective bad = good;
  test_case("wrong lists");
  for (int i = 0; i < procs; i++)
    ones[i] = more[i] = 1;
  bad.recv_counts = NULL;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  bad = good, bad.send_displs = NULL;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  if (rank == procs - 1)
    more[0]++;
  bad = good, bad.send_counts = more;
  expect_refused(bad, "vendor", SWP_ERR_MISMATCH);
  if (rank == procs - 1)
    more[0] = -1;
  expect_refused(bad, "vendor", SWP_ERR_ARGUMENT);
  more[0] = 1;
  if (rank == 0)
    more[procs - 1]++; /* to the last rank and from it, which knows of neither: the sums agree */
  bad.recv_counts = more;
  if (procs > 1)
    expect_refused(bad, "vendor", SWP_ERR_MISMATCH);
  free(ones);
}

/* bruck keeps them three times over: they fit an int once, and together do not. */
static void uneven_blocks_over_two_gib_are_not_forwarded(void) {
  int *counts = test_allocate((size_t)procs * sizeof *counts);
  struct swp_collective problem = test_alltoallv(MPI_BYTE, counts, counts);
  test_case("uneven blocks over 2 GiB three times over");
  for (int i = 0; i < procs; i++)
    counts[i] = INT_MAX / 2 / procs;
  expect_refused(problem, "bruck", SWP_ERR_NOT_APPLICABLE);
  free(counts);
}

/* A set that is refused leaves the plan as it was. */
static void a_refused_set_changes_nothing(void) {
  struct swp_collective good = {
      .operation = SWP_ALLREDUCE, .recv_count = 1, .recv_type = MPI_INT, .op = MPI_SUM};
  struct swp_collective bad = good;
  swp_plan *plan = NULL;
  int one = 1, sum = 0;
  test_case("refused sets");
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &good, "binomial", NULL, &plan), SWP_SUCCESS);
  bad.operation = SWP_REDUCE;
  EXPECT_ERROR(swp_collective_set(plan, &bad), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_collective_set(plan, NULL), SWP_ERR_ARGUMENT);
  bad = good, bad.recv_count = -1;
  EXPECT_ERROR(swp_collective_set(plan, &bad), SWP_ERR_ARGUMENT);
  bad = good, bad.recv_count = 1000;
  swp_allocate_fail_after(1);
  EXPECT_ERROR(swp_collective_set(plan, &bad), SWP_ERR_MEMORY);
  swp_allocate_fail_after(0);
  EXPECT_ERROR(swp_collective_execute(plan, &one, &sum), SWP_SUCCESS);
  EXPECT_EQUAL(sum, procs);
  EXPECT_ERROR(swp_exchange_start(plan, &one, &sum), SWP_ERR_STATE);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_collective_set(NULL, &good), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_collective_execute(NULL, &one, &sum), SWP_ERR_ARGUMENT);
}

/* Items of a type that MPI defines need a buffer; nothing is done, and the plan stays usable. */
static void missing_buffers_are_refused(void) {
  int *counts = test_allocate(2 * (size_t)procs * sizeof *counts), *places = counts + procs;
  for (int i = 0; i < procs; places[i] = i, i++)
    counts[i] = 1;
  const struct swp_collective problems[] = {
      {SWP_ALLGATHER, 1, MPI_INT, 1, MPI_INT, .op = MPI_OP_NULL},
      {SWP_ALLGATHERV, 1, MPI_INT, .recv_type = MPI_INT, .op = MPI_OP_NULL, .recv_counts = counts,
       .displs = places},
      {.operation = SWP_ALLREDUCE, .recv_count = 1, .recv_type = MPI_INT, .op = MPI_SUM}};
  int one = 1, *all = test_allocate((size_t)procs * sizeof *all);
  test_case("missing buffers");
  for (int i = 0; i < 3; i++) {
    swp_plan *plan = NULL;
    EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problems[i], NULL, NULL, &plan), SWP_SUCCESS);
    EXPECT_ERROR(swp_collective_execute(plan, NULL, all), SWP_ERR_ARGUMENT);
    if (problems[i].displs == NULL)
      EXPECT_ERROR(swp_collective_execute(plan, &one, NULL), SWP_ERR_ARGUMENT);
    EXPECT_ERROR(swp_collective_execute(plan, &one, all), SWP_SUCCESS);
    EXPECT_EQUAL(all[0], problems[i].operation == SWP_ALLREDUCE ? procs : 1);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
  free(all);
  free(counts);
}

/* A word of 63 characters at most; one that the library does not know is no error of the spec. */
static void names_of_algorithms_are_words(void) {
  struct swp_collective problem = {.operation = SWP_BCAST, .recv_count = 1, .recv_type = MPI_INT};
  char method[96] = "vendor:algorithm=", *end = method + strlen(method);
  test_case("names of algorithms");
  expect_refused(problem, "vendor:algorithm=", SWP_ERR_METHOD);
  expect_refused(problem, "vendor:algorithm=ring.", SWP_ERR_METHOD);
  expect_refused(problem, "vendor:algorithm=ring,algorithm=ring", SWP_ERR_METHOD);
  expect_refused(problem, "vendor:algorithm=in-order_no2", SWP_ERR_NOT_APPLICABLE);
  memset(end, 'x', 63);
  expect_refused(problem, method, SWP_ERR_NOT_APPLICABLE);
  end[63] = 'x';
  expect_refused(problem, method, SWP_ERR_METHOD);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_refusals");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  wrong_problems_are_refused();
  wrong_lists_are_refused();
  uneven_blocks_over_two_gib_are_not_forwarded();
  a_refused_set_changes_nothing();
  missing_buffers_are_refused();
  names_of_algorithms_are_words();
  return test_end();
}
