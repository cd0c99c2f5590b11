/*
 * Failures of one rank end in the same error on every rank, with a message, and leave the communicator
 * usable. Run it under valgrind to see that they leak nothing.
 */
#define _GNU_SOURCE /* cpu_set_t */
#include "allocate.h"
#include "nodes.h"
#include "objects.h"
#include "oracle.h"
#include "outstanding.h"
#include "table.h"
#include "testing.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank, procs;

/* What one rank may do wrong. */
struct attempt {
  struct swp_exchange problem;
  const char *method;
  struct swp_hints hints;
};

/* A good problem that every wrong one begins with: items 0, 1, 2 to the next rank and 0 to oneself. */
static int send_ranks[2], recv_ranks[2];
static int64_t send_offsets[3], send_items[4], recv_offsets[3];

static struct attempt good_attempt(void) {
  static const int64_t items[4] = {2, 0, 1, 0};
  int alone = procs == 1;
  send_ranks[0] = (rank + 1) % procs;
  recv_ranks[0] = (rank + procs - 1) % procs;
  send_ranks[1] = recv_ranks[1] = rank;
  memcpy(send_items, items, sizeof items);
  send_offsets[0] = recv_offsets[0] = 0;
  send_offsets[1] = recv_offsets[1] = 3;
  send_offsets[2] = recv_offsets[2] = 4;
  return (struct attempt){
      .problem = {.item_bytes = 8,
                  .nitems = 3,
                  .nsends = alone ? 1 : 2,
                  .send_ranks = send_ranks,
                  .send_offsets = send_offsets,
                  .send_items = send_items,
                  .nrecvs = alone ? 1 : 2,
                  .recv_ranks = recv_ranks,
                  .recv_offsets = recv_offsets},
      .method = "direct",
      .hints = SWP_HINTS_DEFAULT,
  };
}

/* ---- What can be wrong: X(name, what one rank does, the error of all ranks, ranks that it takes) ---- */

#define MISTAKES(X)                                                                                          \
  X(send_rank_too_high, (send_ranks[0] = procs), SWP_ERR_ARGUMENT, 1)                                        \
  X(send_rank_negative, (send_ranks[0] = -1), SWP_ERR_ARGUMENT, 1)                                           \
  X(recv_rank_too_high, (recv_ranks[0] = procs), SWP_ERR_ARGUMENT, 1)                                        \
  X(recv_rank_negative, (recv_ranks[0] = MPI_PROC_NULL), SWP_ERR_ARGUMENT, 1)                                \
  X(send_rank_twice, (a->problem.nsends = 2, send_ranks[1] = send_ranks[0]), SWP_ERR_ARGUMENT, 1)            \
  X(recv_rank_twice, (a->problem.nrecvs = 2, recv_ranks[1] = recv_ranks[0]), SWP_ERR_ARGUMENT, 1)            \
  X(send_offsets_decrease, (send_offsets[0] = 4), SWP_ERR_ARGUMENT, 1)                                       \
  X(recv_offsets_decrease, (recv_offsets[0] = 4), SWP_ERR_ARGUMENT, 1)                                       \
  X(send_offset_negative, (send_offsets[0] = -1), SWP_ERR_ARGUMENT, 1)                                       \
  X(recv_offset_negative, (recv_offsets[0] = -1), SWP_ERR_ARGUMENT, 1)                                       \
  X(item_too_high, (send_items[1] = 3), SWP_ERR_ARGUMENT, 1)                                                 \
  X(item_negative, (send_items[1] = -1), SWP_ERR_ARGUMENT, 1)                                                \
  X(opaque_past_the_end, (a->problem.send_items = NULL, a->problem.nitems = 2), SWP_ERR_ARGUMENT, 1)         \
  X(no_send_ranks, (a->problem.send_ranks = NULL), SWP_ERR_ARGUMENT, 1)                                      \
  X(no_send_offsets, (a->problem.send_offsets = NULL), SWP_ERR_ARGUMENT, 1)                                  \
  X(no_recv_ranks, (a->problem.recv_ranks = NULL), SWP_ERR_ARGUMENT, 1)                                      \
  X(no_recv_offsets, (a->problem.recv_offsets = NULL), SWP_ERR_ARGUMENT, 1)                                  \
  X(nsends_negative, (a->problem.nsends = -1), SWP_ERR_ARGUMENT, 1)                                          \
  X(nrecvs_negative, (a->problem.nrecvs = -1), SWP_ERR_ARGUMENT, 1)                                          \
  X(nitems_negative, (a->problem.nitems = -1), SWP_ERR_ARGUMENT, 1)                                          \
  X(item_bytes_zero, (a->problem.item_bytes = 0), SWP_ERR_ARGUMENT, 1)                                       \
  X(item_bytes_negative, (a->problem.item_bytes = -8), SWP_ERR_ARGUMENT, 1)                                  \
  X(buffer_over_64_bits, (a->problem.nitems = INT64_MAX / 4), SWP_ERR_ARGUMENT, 1)                           \
  X(repeated_items_over_64_bits,                                                                             \
    (a->problem.nrecvs = 0, a->problem.nitems = 1, a->problem.item_bytes = INT64_MAX / 3,                    \
     memset(send_items, 0, sizeof send_items)),                                                              \
    SWP_ERR_ARGUMENT, 1)                                                                                     \
  X(receives_over_64_bits, (recv_offsets[1] = recv_offsets[2] = INT64_MAX / 8), SWP_ERR_ARGUMENT, 1)         \
  X(item_bytes_differ, (a->problem.item_bytes = 16), SWP_ERR_ARGUMENT, 2)                                    \
  X(method_differs, (a->method = "alltoallv"), SWP_ERR_ARGUMENT, 2)                                          \
  X(method_missing, (a->method = NULL), SWP_ERR_ARGUMENT, 2)                                                 \
  X(method_empty, (a->method = ""), SWP_ERR_ARGUMENT, 2)                                                     \
  X(executions_differ, (a->hints.executions = 7), SWP_ERR_ARGUMENT, 2)                                       \
  X(degree_differs, (a->hints.degree = 7), SWP_ERR_ARGUMENT, 2)                                              \
  X(bytes_differ, (a->hints.bytes = 7), SWP_ERR_ARGUMENT, 2)                                                 \
  X(ppn_differs, (a->hints.ppn = 7), SWP_ERR_ARGUMENT, 2)                                                    \
  X(placement_differs, (a->hints.placement = SWP_PLACEMENT_CYCLIC), SWP_ERR_ARGUMENT, 2)                     \
  X(ppn_negative, (a->hints.ppn = -1), SWP_ERR_ARGUMENT, 1)                                                  \
  X(placement_unknown, (a->hints.placement = 2), SWP_ERR_ARGUMENT, 1)                                        \
  X(executions_negative, (a->hints.executions = -1), SWP_ERR_ARGUMENT, 1)                                    \
  X(degree_below_unknown, (a->hints.degree = -2), SWP_ERR_ARGUMENT, 1)                                       \
  X(bytes_below_unknown, (a->hints.bytes = INT64_MIN), SWP_ERR_ARGUMENT, 1)                                  \
  X(flags_unknown, (a->hints.flags = 64), SWP_ERR_ARGUMENT, 1)                                               \
  X(send_too_few, (send_offsets[0] = 1), SWP_ERR_MISMATCH, 1)                                                \
  X(receive_too_few, (recv_offsets[0] = 1), SWP_ERR_MISMATCH, 1)                                             \
  X(send_not, (a->problem.nsends = 0), SWP_ERR_MISMATCH, 1)                                                  \
  X(receive_not, (a->problem.nrecvs = 0), SWP_ERR_MISMATCH, 1)

#define SPOIL(name, change, error, ranks)                                                                    \
  static void name(struct attempt *a) {                                                                      \
    (void)a;                                                                                                 \
    change;                                                                                                  \
  }
MISTAKES(SPOIL)

static const struct {
  const char *name;
  void (*spoil)(struct attempt *attempt);
  int error, ranks;
} mistakes[] = {
#define ROW(name, change, error, ranks) {#name, name, error, ranks},
    MISTAKES(ROW)
#undef ROW
};

static int plan_attempt(const struct attempt *attempt, swp_plan **plan) {
  return test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &attempt->problem, attempt->method,
                                                       &attempt->hints, plan));
}

static void expect_usable(void) {
  swp_plan *plan = NULL;
  double send[3] = {1 + rank, 2 + rank, 3 + rank}, recv[4] = {0};
  struct attempt attempt = good_attempt();
  if (procs == 1)
    send_offsets[1] = recv_offsets[1] = 3;
  EXPECT_ERROR(plan_attempt(&attempt, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_SUCCESS);
  EXPECT(recv[0] == 3 + (rank + procs - 1) % procs, "the next exchange is wrong");
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void mistakes_of_one_rank_reach_all(int culprit) {
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    if (mistakes[i].ranks > procs)
      continue;
    test_case("%s on rank %d", mistakes[i].name, culprit);
    struct attempt attempt = good_attempt();
    if (rank == culprit)
      mistakes[i].spoil(&attempt);
    swp_plan *plan = (swp_plan *)&attempt;
    EXPECT_ERROR(plan_attempt(&attempt, &plan), mistakes[i].error);
    EXPECT(plan == NULL, "the plan is not NULL");
  }
  test_case("a good plan after mistakes of rank %d", culprit);
  expect_usable();
}

static void one_rank_without_problem_or_place(int culprit) {
  struct attempt attempt = good_attempt();
  swp_plan *plan = NULL;
  test_case("no place for the plan on rank %d", culprit);
  int error =
      swp_exchange_plan(MPI_COMM_WORLD, &attempt.problem, "direct", NULL, rank == culprit ? NULL : &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_ARGUMENT);
  EXPECT(plan == NULL, "the plan is not NULL");
  test_case("problem NULL on rank %d", culprit);
  error = swp_exchange_plan(MPI_COMM_WORLD, rank == culprit ? NULL : &attempt.problem, "direct", NULL, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_ARGUMENT);
  if (procs > 1) {
    test_case("rank %d plans a discovery, the others an exchange", culprit);
    error = rank == culprit ? swp_discovery_plan(MPI_COMM_WORLD, "auto", NULL, &plan)
                            : swp_exchange_plan(MPI_COMM_WORLD, &attempt.problem, "auto", NULL, &plan);
    EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_ARGUMENT);
    test_case("method NULL, but empty on rank %d", culprit);
    error = swp_exchange_plan(MPI_COMM_WORLD, &attempt.problem, rank == culprit ? "" : NULL, NULL, &plan);
    EXPECT(test_agreed(MPI_COMM_WORLD, error) != SWP_SUCCESS, "no error");
  }
  EXPECT(plan == NULL, "the plan is not NULL");
}

/* ---- What need not be given ---- */

/* Rank 0 sends to rank 1 and nobody else has a part: no arrays, buffers, or size of items. */
static void idle_ranks_give_nothing(const char *method) {
  static const int64_t offsets[2] = {0, 1};
  const int peer = 1 - rank;
  double send = 5, recv = 0;
  swp_plan *plan = NULL;
  test_case("%s, most ranks without messages", method);
  struct swp_exchange problem = {0};
  if (rank == 0)
    problem = (struct swp_exchange){
        .item_bytes = sizeof send, .nitems = 1, .nsends = 1, .send_ranks = &peer, .send_offsets = offsets};
  else if (rank == 1)
    problem = (struct swp_exchange){
        .item_bytes = sizeof recv, .nrecvs = 1, .recv_ranks = &peer, .recv_offsets = offsets};
  else
    problem.item_bytes = -rank;
  EXPECT_ERROR(swp_exchange_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_execute(plan, rank == 0 ? &send : NULL, rank == 1 ? &recv : NULL), SWP_SUCCESS);
  EXPECT(rank != 1 || recv == 5, "%g came", recv);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void nobody_gives_anything(const char *method) {
  const struct swp_exchange problem = {0};
  swp_plan *plan = NULL;
  test_case("%s, no rank with messages", method);
  EXPECT_ERROR(swp_exchange_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_execute(plan, NULL, NULL), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void what_is_not_needed_is_not_asked_for(void) {
  char *specs = all_specs(SWP_EXCHANGE, procs);
  for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " ")) {
    nobody_gives_anything(spec);
    if (procs > 1)
      idle_ranks_give_nothing(spec);
  }
  free(specs);
}

/* ---- Specs ---- */

static void expect_spec_error(enum swp_operation operation, const char *method, int expected) {
  struct attempt attempt = good_attempt();
  swp_plan *plan = NULL;
  test_case("%s '%s'", operation == SWP_EXCHANGE ? "exchange" : "discovery", method);
  int error = operation == SWP_EXCHANGE
                  ? swp_exchange_plan(MPI_COMM_WORLD, &attempt.problem, method, NULL, &plan)
                  : swp_discovery_plan(MPI_COMM_WORLD, method, NULL, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), expected);
  EXPECT(plan == NULL, "the plan is not NULL");
}

static void malformed_specs_are_refused(void) {
  static const char *const specs[] = {"",
                                      "unknown",
                                      "Direct",
                                      "direct:",
                                      "direct:x=1",
                                      "direct ",
                                      " direct",
                                      "stfw:",
                                      "stfw:dims",
                                      "stfw:dims=",
                                      "stfw:dims=two",
                                      "stfw:dims=2,",
                                      "stfw:dims=2,dims=2",
                                      "stfw:dims=-2",
                                      "stfw:dims=2x2",
                                      "stfw:grid=",
                                      "stfw:grid=2x",
                                      "stfw:grid=x2",
                                      "stfw:grid=2xx2",
                                      "stfw:grid=2X2",
                                      "stfw:dims=99999999999999999999",
                                      "stfw:depth=2",
                                      "stfw,dims=2",
                                      "direct,stfw",
                                      "nbx",
                                      "auto:table=x",
                                      "stfw:dims=2;grid=2"};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
    expect_spec_error(SWP_EXCHANGE, specs[i], SWP_ERR_METHOD);
  expect_spec_error(SWP_DISCOVERY, "direct", SWP_ERR_METHOD);
  expect_spec_error(SWP_DISCOVERY, "nbx:barrier=none", SWP_ERR_METHOD);
  char longest[2000];
  memset(longest, 'a', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  expect_spec_error(SWP_EXCHANGE, longest, SWP_ERR_METHOD);
}

static void impossible_methods_are_not_applicable(void) {
  expect_spec_error(SWP_EXCHANGE, "stfw:dims=30", SWP_ERR_NOT_APPLICABLE);
  expect_spec_error(SWP_EXCHANGE, "stfw:grid=100x100", SWP_ERR_NOT_APPLICABLE);
  if (procs < 4)
    expect_spec_error(SWP_EXCHANGE, "stfw:dims=2", SWP_ERR_NOT_APPLICABLE);
}

/* ---- Memory that runs out on one rank at the k-th allocation ---- */

static int plan_operation(enum swp_operation operation, const char *method,
                          const struct swp_exchange *problem, swp_plan **plan) {
  return operation == SWP_EXCHANGE ? swp_exchange_plan(MPI_COMM_WORLD, problem, method, &oracle_hints, plan)
                                   : swp_discovery_plan(MPI_COMM_WORLD, method, &oracle_hints, plan);
}

/* Every allocation of the planning fails once; then it succeeds. */
static void planning_survives_no_memory(enum swp_operation operation, const char *method, int culprit) {
  enum { MOST = 1000 };
  struct traffic *traffic = traffic_new(&families[4], procs, 3);
  struct swp_exchange problem = exchange_of(traffic, rank, 8, 0);
  int k, error = SWP_ERR_MEMORY;
  long objects = mpi_objects();
  for (k = 1; error != SWP_SUCCESS && k < MOST; k++) {
    swp_plan *plan = NULL;
    test_case("%s, %d ranks a node, allocation %d fails on rank %d", method, oracle_hints.ppn, k, culprit);
    if (rank == culprit)
      swp_allocate_fail_after(k);
    error = plan_operation(operation, method, &problem, &plan);
    swp_allocate_fail_after(0);
    test_agreed(MPI_COMM_WORLD, error);
    EXPECT(error == SWP_SUCCESS || error == SWP_ERR_MEMORY, "error %d: %s", error, swp_error_message());
    EXPECT((error == SWP_SUCCESS) == (plan != NULL), "error %d, and the plan is %p", error, (void *)plan);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    EXPECT_EQUAL(mpi_objects(), objects);
  }
  EXPECT(k > 2 && k < MOST, "%d allocations", k);
  exchange_free(&problem);
  traffic_free(traffic);
}

/* Once more on two nodes where that makes a difference. */
static void every_method_survives_no_memory(int culprit) {
  for (int operation = SWP_EXCHANGE; operation <= SWP_DISCOVERY; operation++) {
    char *specs = all_specs(operation, procs);
    for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " ")) {
      planning_survives_no_memory(operation, spec, culprit);
      if (procs == 1 || strncmp(spec, "nap", 3) != 0)
        continue;
      oracle_hints.ppn = (procs + 1) / 2;
      planning_survives_no_memory(operation, spec, culprit);
      oracle_hints.ppn = 0;
    }
    free(specs);
  }
}

static void an_estimate_survives_no_memory(int culprit) {
  static const char text[] =
      "switchpoint-table 1\n"
      "model message pair=on_node up_to=* alpha_s=1e-6 step_s=1e-6 receive_s=0 per_byte_s=1e-9 beta_s=1e-9\n"
      "model message pair=off_node up_to=* alpha_s=9e-6 step_s=9e-6 receive_s=0 per_byte_s=1e-9 beta_s=1e-9\n"
      "model rate pair=off_node up_to=* b_max=1e9 b_inj=0 b_node=0 processes=1\n";
  struct swp_table *table;
  EXPECT_ERROR(swp_table_parse("memory", text, sizeof text - 1, &table), SWP_SUCCESS);
  oracle_hints.table = table;
  oracle_hints.ppn = (procs + 1) / 2;
  planning_survives_no_memory(SWP_EXCHANGE, "auto", culprit);
  oracle_hints.ppn = 0;
  oracle_hints.table = NULL;
  swp_table_free(&table);
}

/* Nothing else than oneself sends, so that no other rank waits. */
static void a_discovery_survives_no_memory(void) {
  enum { MOST = 100, BYTES = 100000 };
  static char data[BYTES];
  const void *pointers[1] = {data};
  const int64_t bytes[1] = {BYTES};
  int k, error = SWP_ERR_MEMORY;
  for (k = 1; procs == 1 && error != SWP_SUCCESS && k < MOST; k++) {
    swp_plan *plan = NULL;
    swp_inbox *inbox = NULL;
    test_case("allocation %d of a discovery fails", k);
    EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, "nbx", NULL, &plan), SWP_SUCCESS);
    swp_allocate_fail_after(k);
    error = swp_discovery_execute(plan, 1, &rank, bytes, pointers, &inbox);
    swp_allocate_fail_after(0);
    if (error != SWP_SUCCESS) { /* before the method begins the plan stays good */
      EXPECT_ERROR(error, SWP_ERR_MEMORY);
      int next = swp_discovery_execute(plan, 0, NULL, NULL, NULL, &inbox);
      EXPECT(next == SWP_SUCCESS || next == SWP_ERR_POISONED, "then error %d", next);
    }
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    swp_inbox_free(&inbox);
  }
  EXPECT(procs > 1 || (k > 2 && k < MOST), "%d allocations", k);
}

/* All ranks send to all, after a call without messages. Gives this rank's error. */
static int discover_without_memory(swp_plan *plan, bool culprit, int k) {
  enum { BYTES = 100000 };
  static char data[BYTES];
  int ranks[64], nsends = 0;
  int64_t bytes[64];
  const void *pointers[64];
  swp_inbox *inbox = NULL;
  EXPECT_ERROR(swp_discovery_execute(plan, 0, NULL, NULL, NULL, &inbox), SWP_SUCCESS);
  for (int to = 0; to < procs; to++)
    if (to != rank) {
      ranks[nsends] = to;
      bytes[nsends] = BYTES;
      pointers[nsends++] = data;
    }
  if (culprit)
    swp_allocate_fail_after(k);
  int error = swp_discovery_execute(plan, nsends, ranks, bytes, pointers, &inbox);
  swp_allocate_fail_after(0);
  if (error == SWP_SUCCESS)
    EXPECT_EQUAL(inbox->nsources, nsends);
  swp_inbox_free(&inbox);
  return error;
}

/* In a discovery that forwards, who misses a message by a rank without memory fails; others have theirs. */
static void nobody_waits_for_a_rank_without_memory(const char *method, int ppn, int culprit) {
  enum { MOST = 100 };
  int k, error = SWP_ERR_MEMORY;
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = ppn;
  for (k = 1; error != SWP_SUCCESS && k < MOST; k++) {
    swp_plan *plan = NULL;
    test_case("discovery %s, %d ranks a node, allocation %d fails on rank %d", method, ppn, k, culprit);
    EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, method, &hints, &plan), SWP_SUCCESS);
    error = discover_without_memory(plan, rank == culprit, k);
    EXPECT(error == SWP_SUCCESS || error == SWP_ERR_MEMORY, "error %d: %s", error, swp_error_message());
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    MPI_Bcast(&error, 1, MPI_INT, culprit, MPI_COMM_WORLD);
  }
  EXPECT(k > 2 && k < MOST, "%d allocations", k);
}

/* ---- MPI calls that fail ---- */

static bool receives_fail;

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request) {
  return receives_fail ? MPI_ERR_OTHER : PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

static bool sends_fail;

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request) {
  return sends_fail ? MPI_ERR_OTHER : PMPI_Isend(buffer, count, type, destination, tag, comm, request);
}

/* Rank 0 fails when it has begun to receive from rank 1, whose message comes later: into memory that is kept.
 */
static void a_message_after_a_failure_hurts_nobody(void) {
  enum { BYTES = 200000 };
  static char data[BYTES];
  const void *pointers[1] = {data};
  const int64_t bytes[1] = {BYTES};
  const int other = 1 - rank;
  swp_plan *plan = NULL;
  swp_inbox *inbox = NULL;
  test_case("a message after a failure");
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, "pex", NULL, &plan), SWP_SUCCESS);
  memset(data, 1 + rank, sizeof data);
  sends_fail = rank == 0;
  int error = swp_discovery_execute(plan, rank < 2 && procs > 1, &other, bytes, pointers, &inbox);
  sends_fail = false;
  if (rank == 0 && procs > 1) {
    EXPECT_ERROR(error, SWP_ERR_MPI);
    EXPECT(inbox == NULL, "the inbox of the failed call is left");
    MPI_Send(data, BYTES, MPI_BYTE, 1, 0, plan->comm); /* what rank 1 waits for */
  } else {
    EXPECT_ERROR(error, SWP_SUCCESS);
    EXPECT_EQUAL(inbox->nsources, rank == 1);
  }
  swp_inbox_free(&inbox);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* An exchange that forwards may fail while its rank waits for something else. */
static void a_failure_in_the_background_is_told_by_the_wait(void) {
  struct traffic *traffic = traffic_new(&families[5], procs, 0); /* dense */
  struct swp_exchange problem = exchange_of(traffic, rank, 8, 0);
  static double send[64], recv[64];
  swp_plan *plan = NULL;
  test_case("a failure in the background");
  EXPECT_ERROR(swp_exchange_plan(MPI_COMM_WORLD, &problem, "stfw:dims=2", NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_SUCCESS);
  sends_fail = true;
  while (plan->background.error == SWP_SUCCESS)
    swp_outstanding_progress();
  sends_fail = false;
  EXPECT_ERROR(swp_plan_free(&plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_MPI);
  EXPECT(strstr(swp_error_message(), "MPI_Isend") != NULL, "'%s' does not name it", swp_error_message());
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_POISONED);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  exchange_free(&problem);
  traffic_free(traffic);
}

static void a_failing_mpi_call_poisons_the_plan(void) {
  struct attempt attempt = good_attempt();
  swp_plan *plan = NULL;
  double send[3] = {1, 2, 3}, recv[4];
  test_case("MPI_Irecv fails");
  plan_attempt(&attempt, &plan);
  receives_fail = true;
  int error = swp_exchange_execute(plan, send, recv);
  receives_fail = false;
  if (procs > 1) {
    EXPECT_ERROR(error, SWP_ERR_MPI);
    EXPECT(strstr(swp_error_message(), "MPI_Irecv") != NULL, "'%s' does not name it", swp_error_message());
    EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_ERR_POISONED);
    EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_ERR_POISONED);
    EXPECT_ERROR(swp_wait(plan), SWP_ERR_POISONED);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* MPICH has 2048 communicators; with an MPI that has more this tells nothing. */
static void running_out_of_communicators_is_an_error(void) {
  enum { MOST = 2100 };
  static swp_plan *plans[MOST];
  int count = 0, error = SWP_SUCCESS;
  test_case("many plans");
  while (procs <= 2 && count < MOST && error == SWP_SUCCESS) {
    error = test_agreed(MPI_COMM_WORLD, swp_discovery_plan(MPI_COMM_WORLD, "pex", NULL, &plans[count]));
    count += error == SWP_SUCCESS;
  }
  EXPECT(error == SWP_SUCCESS || error == SWP_ERR_MPI, "error %d: %s", error, swp_error_message());
  while (count > 0)
    EXPECT_ERROR(swp_plan_free(&plans[--count]), SWP_SUCCESS);
}

static MPI_Comm watched = MPI_COMM_NULL;
static int calls_on_watched;

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  calls_on_watched += comm == watched;
  return PMPI_Allreduce(in, out, count, type, op, comm);
}

/* There, errors end the job. */
static void planning_sends_nothing_on_the_callers_communicator(void) {
  struct attempt attempt = good_attempt();
  swp_plan *plan = NULL;
  test_case("the first plan on a communicator");
  MPI_Comm_dup(MPI_COMM_WORLD, &watched);
  calls_on_watched = 0;
  EXPECT_ERROR(swp_exchange_plan(watched, &attempt.problem, "direct", NULL, &plan), SWP_SUCCESS);
  EXPECT_EQUAL(calls_on_watched, 0);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Comm_free(&watched);
}

static bool shared_memory_is_full;

int statvfs(const char *path, struct statvfs *place) {
  (void)path;
  *place = (struct statvfs){.f_frsize = 4096, .f_bavail = shared_memory_is_full ? 1 : 1 << 20};
  return 0;
}

static void full_shared_memory_is_an_error(void) {
  test_case("a full /dev/shm");
  swp_plan *plan = NULL;
  shared_memory_is_full = rank == 0;
  int error = swp_discovery_plan(MPI_COMM_WORLD, "shared", NULL, &plan);
  shared_memory_is_full = false;
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_NOT_APPLICABLE);
  EXPECT(plan == NULL, "a plan was made");
}

static bool machine_is_huge;

/* Of a machine with more CPUs than a cpu_set_t has room for. */
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set) {
  return machine_is_huge ? -1 : (int)syscall(SYS_sched_getaffinity, process, bytes, set) > 0 ? 0 : -1;
}

static void the_cores_of_a_huge_machine_are_counted(void) {
  struct attempt attempt = good_attempt();
  swp_plan *plan = NULL;
  MPI_Comm fresh;
  test_case("more than 1024 CPUs");
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  machine_is_huge = true;
  EXPECT_ERROR(swp_exchange_plan(fresh, &attempt.problem, "direct", NULL, &plan), SWP_SUCCESS);
  machine_is_huge = false;
  EXPECT_EQUAL(plan->yields, procs > sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Comm_free(&fresh);
}

static void the_callers_error_handler_stays(void) {
  struct attempt attempt = good_attempt();
  swp_plan *plan = NULL;
  MPI_Errhandler handler;
  test_case("an intercommunicator");
  if (procs > 1) {
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
    EXPECT_ERROR(swp_exchange_plan(inter, &attempt.problem, "direct", NULL, &plan), SWP_ERR_ARGUMENT);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  EXPECT(handler == MPI_ERRORS_ARE_FATAL, "the caller's error handler was changed");
  MPI_Errhandler_free(&handler);
}

/* Items of 2 GiB: planned without buffers. What goes through MPI's vector collectives cannot carry them. */
static void what_ints_cannot_carry_is_refused(void) {
  static const struct {
    const char *method;
    int error;
  } rows[] = {{"direct", SWP_SUCCESS},
              {"nap", SWP_SUCCESS},
              {"alltoallv", SWP_ERR_TOO_LARGE},
              {"neighbor", SWP_ERR_TOO_LARGE}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct attempt attempt = good_attempt();
    swp_plan *plan = NULL;
    attempt.problem.item_bytes = (int64_t)INT_MAX + 1;
    attempt.problem.send_items = NULL;
    attempt.problem.nitems = 4;
    attempt.method = rows[i].method;
    attempt.hints.ppn = 1; /* a node that sends from several ranks gathers in a buffer */
    test_case("%s with items of 2 GiB", attempt.method);
    EXPECT_ERROR(plan_attempt(&attempt, &plan), rows[i].error);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
}

/* ---- Wrong use of a good plan ---- */

static void exchange_states(void) {
  struct attempt attempt = good_attempt();
  swp_plan *plan = NULL;
  double send[3] = {1, 2, 3}, recv[4];
  int done = 5;
  test_case("states of an exchange");
  plan_attempt(&attempt, &plan);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_test(plan, &done), SWP_ERR_STATE);
  EXPECT_EQUAL(done, 0);
  swp_inbox *inbox = NULL;
  EXPECT_ERROR(swp_discovery_execute(plan, 0, NULL, NULL, NULL, &inbox), SWP_ERR_STATE);
  EXPECT(inbox == NULL, "an inbox was made");
  EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_test(plan, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_wait(plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_SUCCESS); /* such errors leave the plan good */
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void discovery_states(void) {
  swp_plan *plan = NULL;
  double data[1] = {1};
  test_case("states of a discovery");
  test_agreed(MPI_COMM_WORLD, swp_discovery_plan(MPI_COMM_WORLD, "pex", NULL, &plan));
  EXPECT_ERROR(swp_exchange_execute(plan, data, data), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_start(plan, data, data), SWP_ERR_STATE);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* ---- A discovery of which one rank gets the arguments wrong ---- */

/* What a rank sends: a number to the next rank. */
struct parcel {
  int nsends;
  int ranks[2];
  int64_t bytes[2];
  const void *data[2];
  bool no_inbox, no_memory;
};

#define PARCEL_MISTAKES(X)                                                                                   \
  X(destination_too_high, (p->ranks[0] = procs), SWP_ERR_ARGUMENT)                                           \
  X(bytes_negative, (p->bytes[0] = -1), SWP_ERR_ARGUMENT)                                                    \
  X(destinations_negative, (p->nsends = -1), SWP_ERR_ARGUMENT)                                               \
  X(destination_twice, (p->nsends = 2), SWP_ERR_ARGUMENT)                                                    \
  X(data_missing, (p->data[0] = NULL), SWP_ERR_ARGUMENT)                                                     \
  X(message_of_2_gib, (p->bytes[0] = (int64_t)INT_MAX + 1), SWP_ERR_TOO_LARGE)                               \
  X(inbox_missing, (p->no_inbox = true), SWP_ERR_ARGUMENT)                                                   \
  X(inbox_without_memory, (p->no_memory = true), SWP_ERR_MEMORY)

#define SPOIL_PARCEL(name, change, error)                                                                    \
  static void name(struct parcel *p) {                                                                       \
    change;                                                                                                  \
  }
PARCEL_MISTAKES(SPOIL_PARCEL)

static const struct {
  const char *name;
  void (*spoil)(struct parcel *parcel);
  int error;
} parcel_mistakes[] = {
#define ROW(name, change, error) {#name, name, error},
    PARCEL_MISTAKES(ROW)
#undef ROW
};

static int send_parcel(swp_plan *plan, const struct parcel *parcel, swp_inbox **inbox) {
  if (parcel->no_memory)
    swp_allocate_fail_after(1);
  int error = swp_discovery_execute(plan, parcel->nsends, parcel->ranks, parcel->bytes, parcel->data,
                                    parcel->no_inbox ? NULL : inbox);
  swp_allocate_fail_after(0);
  return error;
}

/* Expects the number of the rank before, unless `silent` is that rank. */
static void expect_parcel(const swp_inbox *inbox, int silent) {
  int before = (rank + procs - 1) % procs;
  if (before == silent) {
    EXPECT_EQUAL(inbox->nsources, 0);
  } else {
    EXPECT(inbox->nsources == 1 && inbox->sources[0] == before && *(const int *)inbox->data[0] == before,
           "%d messages", inbox->nsources);
  }
}

static void a_discovery_goes_on_without(const char *method, int culprit) {
  enum { NOBODY = -1 };
  swp_plan *plan = NULL;
  swp_inbox *inbox = NULL;
  test_case("%s", method);
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, method, NULL, &plan), SWP_SUCCESS);
  int next = (rank + 1) % procs;
  const struct parcel good = {1, {next, next}, {sizeof rank, sizeof rank}, {&rank, &rank}, false, false};
  for (size_t i = 0; i < sizeof parcel_mistakes / sizeof parcel_mistakes[0]; i++) {
    test_case("%s with %s on rank %d", method, parcel_mistakes[i].name, culprit);
    struct parcel parcel = good;
    swp_inbox *fresh = NULL;
    if (rank == culprit)
      parcel_mistakes[i].spoil(&parcel);
    int error = send_parcel(plan, &parcel, &fresh);
    EXPECT_ERROR(error, rank == culprit ? parcel_mistakes[i].error : SWP_SUCCESS);
    if (rank != culprit)
      expect_parcel(fresh, culprit);
    else
      EXPECT(fresh == NULL || fresh->nsources == 0, "the inbox of the failed call is not empty");
    swp_inbox_free(&fresh);
    EXPECT_ERROR(send_parcel(plan, &good, &inbox), SWP_SUCCESS);
    expect_parcel(inbox, NOBODY);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  swp_inbox_free(&inbox);
}

static void every_discovery_goes_on_without(int culprit) {
  char *specs = all_specs(SWP_DISCOVERY, procs);
  for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
    a_discovery_goes_on_without(spec, culprit);
  free(specs);
}

static void null_arguments(void) {
  test_case("NULL arguments");
  swp_plan *plan = NULL;
  int done;
  char text[8];
  struct swp_statistics statistics;
  EXPECT_ERROR(swp_exchange_plan(MPI_COMM_NULL, NULL, NULL, NULL, &plan), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, NULL, NULL, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_exchange_execute(NULL, NULL, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_wait(NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_test(NULL, &done), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_describe(NULL, text, sizeof text), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_statistics(NULL, &statistics, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_stage(NULL, 0, NULL, NULL, NULL, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_free(NULL), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  swp_inbox_free(NULL);
  swp_table_free(NULL);
  EXPECT_ERROR(swp_method_list(-1, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_method_specs(SWP_EXCHANGE, "unknown", 4, text, sizeof text), SWP_ERR_METHOD);
  EXPECT_ERROR(swp_method_specs(SWP_EXCHANGE, "direct", 4, text, 6), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_method_specs(SWP_EXCHANGE, "direct", 4, text, 7), SWP_SUCCESS);
  EXPECT(strcmp(text, "direct") == 0, "specs of direct are '%s'", text);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_failures");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  null_arguments();
  malformed_specs_are_refused();
  impossible_methods_are_not_applicable();
  mistakes_of_one_rank_reach_all(0);
  mistakes_of_one_rank_reach_all(procs - 1);
  one_rank_without_problem_or_place(procs - 1);
  what_is_not_needed_is_not_asked_for();
  every_method_survives_no_memory(procs / 2);
  an_estimate_survives_no_memory(procs / 2);
  a_discovery_survives_no_memory();
  for (int ppn = 1; procs > 1 && ppn <= procs; ppn++)
    nobody_waits_for_a_rank_without_memory("nap", ppn, ppn % procs);
  if (procs > 1 && procs <= 4)
    nobody_waits_for_a_rank_without_memory(procs == 2 ? "stfw:grid=2" : "stfw:grid=2x2", procs, procs - 1);
  a_failing_mpi_call_poisons_the_plan();
  a_message_after_a_failure_hurts_nobody();
  if (procs == 4)
    a_failure_in_the_background_is_told_by_the_wait();
  running_out_of_communicators_is_an_error();
  full_shared_memory_is_an_error();
  the_cores_of_a_huge_machine_are_counted();
  the_callers_error_handler_stays();
  planning_sends_nothing_on_the_callers_communicator();
  what_ints_cannot_carry_is_refused();
  exchange_states();
  discovery_states();
  every_discovery_goes_on_without(0);
  every_discovery_goes_on_without(procs - 1);
  test_case("a good plan after everything");
  expect_usable();
  return test_end();
}
