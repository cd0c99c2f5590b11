/*
 * Messages apart by sockets. Usage: swp_sockets none|free|CPU CPU
 *   none     the library knows no sockets
 *   free     the machine has two, but rank 0 may use the cores of both
 *   CPU CPU  it has two, and these are cores of the first and the second; ranks are bound to them in turn
 */
#define _GNU_SOURCE
#include "testing.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 24 };

static int rank, procs;

/* Before MPI_Init, so that what threads there are have this binding too. */
static void bind_to(int cpu) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(cpu, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0)
    abort();
}

static int number_in_job(void) {
  const char *mpich = getenv("PMI_RANK"), *openmpi = getenv("OMPI_COMM_WORLD_RANK");
  return atoi(mpich != NULL ? mpich : openmpi != NULL ? openmpi : "0");
}

/* Everyone sends a message to all others. */
static swp_plan *plan_all_to_all(const char *method, int ppn) {
  int *others = test_allocate((size_t)procs * sizeof *others);
  int64_t *offsets = test_allocate(((size_t)procs + 1) * sizeof *offsets);
  for (int i = 0; i < procs; i++) {
    others[i] = (rank + 1 + i) % procs; /* the last, itself, is left out */
    offsets[i] = i;
  }
  struct swp_exchange problem = {BYTES, procs - 1, procs - 1, others, offsets,
                                 NULL,  procs - 1, others,    offsets};
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = ppn;
  swp_plan *plan = NULL;
  test_case("exchange %s, %d ranks to a virtual node", method, ppn);
  EXPECT_ERROR(
      test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &problem, method, &hints, &plan)),
      SWP_SUCCESS);
  free(others);
  free(offsets);
  return plan;
}

static void expect_sockets(const char *method, int ppn, int sockets, int64_t messages, int64_t bytes) {
  swp_plan *plan = plan_all_to_all(method, ppn);
  struct swp_statistics problem, statistics;
  EXPECT_ERROR(swp_plan_statistics(plan, &problem, &statistics), SWP_SUCCESS);
  EXPECT_EQUAL(problem.sockets, sockets);
  EXPECT_EQUAL(statistics.sockets, sockets);
  EXPECT_EQUAL(statistics.on_socket_messages, messages);
  EXPECT_EQUAL(statistics.on_socket_bytes, bytes);
  if (strcmp(method, "direct") == 0)
    EXPECT_EQUAL(problem.on_socket_messages, messages);
  EXPECT(statistics.on_socket_messages <= statistics.on_node_messages, "%lld messages on a node",
         (long long)statistics.on_node_messages);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "none";
  bool bound = argc > 2;
  if (bound)
    bind_to(atoi(argv[1 + number_in_job() % 2]));
  test_begin(&argc, &argv, "swp_sockets");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  EXPECT(rank == number_in_job(), "the launcher calls it %d", number_in_job());
  if (bound) {
    int first = (procs + 1) / 2, second = procs / 2;
    int64_t pairs = first * (first - 1) + second * (second - 1);
    expect_sockets("direct", 0, 2, pairs, BYTES * pairs);
    if (procs == 4) /* the first stage is between sockets; the second passes on what it brought */
      expect_sockets("stfw:grid=2x2", 0, 2, 4, (int64_t)4 * 2 * BYTES);
  } else {
    expect_sockets("direct", 0, strcmp(what, "free") == 0 ? 2 : -1, -1, -1);
  }
  expect_sockets("direct", 2, -1, -1, -1);
  return test_end();
}
