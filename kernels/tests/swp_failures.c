/*
 * Failures of one rank end in the same error on every rank, with a message, and leave the communicator
 * usable. Run it under valgrind to see that they leak nothing.
 */
#include "allocate.h"
#include "attempt.h"
#include "nodes.h"
#include "oracle.h"
#include "testing.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int rank, procs;

/* ---- What can be wrong: X(name, what one rank does, the error of all ranks, ranks that it takes) ---- */

#define MISTAKES(X)                                                                                          \
  X(send_rank_too_high, (a->send_ranks[0] = procs), SWP_ERR_ARGUMENT, 1)                                     \
  X(send_rank_negative, (a->send_ranks[0] = -1), SWP_ERR_ARGUMENT, 1)                                        \
  X(recv_rank_too_high, (a->recv_ranks[0] = procs), SWP_ERR_ARGUMENT, 1)                                     \
  X(recv_rank_negative, (a->recv_ranks[0] = MPI_PROC_NULL), SWP_ERR_ARGUMENT, 1)                             \
  X(send_rank_twice, (a->problem.nsends = 2, a->send_ranks[1] = a->send_ranks[0]), SWP_ERR_ARGUMENT, 1)      \
  X(recv_rank_twice, (a->problem.nrecvs = 2, a->recv_ranks[1] = a->recv_ranks[0]), SWP_ERR_ARGUMENT, 1)      \
  X(send_offsets_decrease, (a->send_offsets[0] = 4), SWP_ERR_ARGUMENT, 1)                                    \
  X(recv_offsets_decrease, (a->recv_offsets[0] = 4), SWP_ERR_ARGUMENT, 1)                                    \
  X(send_offset_negative, (a->send_offsets[0] = -1), SWP_ERR_ARGUMENT, 1)                                    \
  X(recv_offset_negative, (a->recv_offsets[0] = -1), SWP_ERR_ARGUMENT, 1)                                    \
  X(item_too_high, (a->send_items[1] = 3), SWP_ERR_ARGUMENT, 1)                                              \
  X(item_negative, (a->send_items[1] = -1), SWP_ERR_ARGUMENT, 1)                                             \
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
     memset(a->send_items, 0, sizeof a->send_items)),                                                        \
    SWP_ERR_ARGUMENT, 1)                                                                                     \
  X(receives_over_64_bits, (a->recv_offsets[1] = a->recv_offsets[2] = INT64_MAX / 8), SWP_ERR_ARGUMENT, 1)   \
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
  X(send_too_few, (a->send_offsets[0] = 1), SWP_ERR_MISMATCH, 1)                                             \
  X(receive_too_few, (a->recv_offsets[0] = 1), SWP_ERR_MISMATCH, 1)                                          \
  X(send_not, (a->problem.nsends = 0), SWP_ERR_MISMATCH, 1)                                                  \
  X(receive_not, (a->problem.nrecvs = 0), SWP_ERR_MISMATCH, 1)

MISTAKES(MISTAKE_FUNCTION)

static const struct mistake mistakes[] = {MISTAKES(MISTAKE_ROW)};

static void expect_usable(void) {
  swp_plan *plan = NULL;
  double send[3] = {1 + rank, 2 + rank, 3 + rank}, recv[4] = {0};
  struct attempt attempt;
  attempt_make(&attempt);
  if (procs == 1)
    attempt.send_offsets[1] = attempt.recv_offsets[1] = 3;
  EXPECT_ERROR(attempt_plan(&attempt, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_SUCCESS);
  EXPECT(recv[0] == 3 + (rank + procs - 1) % procs, "the next exchange is wrong");
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void mistakes_of_one_rank_reach_all(int culprit) {
  attempt_mistakes(sizeof mistakes / sizeof mistakes[0], mistakes, culprit, attempt_plan);
  test_case("a good plan after mistakes of rank %d", culprit);
  expect_usable();
}

/* Longer lists may not be read: they need not have as many elements. */
static void more_partners_than_ranks_are_refused_by_their_count(void) {
  swp_plan *plan = NULL;
  swp_inbox *inbox = NULL;
  struct attempt attempt;
  test_case("more partners than ranks");
  attempt_make(&attempt);
  attempt.problem.nsends = procs + 1;
  EXPECT_ERROR(attempt_plan(&attempt, &plan), SWP_ERR_ARGUMENT);
  EXPECT(strstr(swp_error_message(), "nsends is") != NULL, "'%s'", swp_error_message());
  attempt_make(&attempt);
  attempt.problem.nrecvs = INT_MAX;
  EXPECT_ERROR(attempt_plan(&attempt, &plan), SWP_ERR_ARGUMENT);
  EXPECT(strstr(swp_error_message(), "nrecvs is") != NULL, "'%s'", swp_error_message());
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, "pex", NULL, &plan), SWP_SUCCESS);
  const int partner = 0;
  const int64_t bytes = 0;
  const void *data = &partner;
  EXPECT_ERROR(swp_discovery_execute(plan, procs + 1, &partner, &bytes, &data, &inbox), SWP_ERR_ARGUMENT);
  EXPECT(strstr(swp_error_message(), "nsends is") != NULL, "'%s'", swp_error_message());
  swp_inbox_free(&inbox);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void one_rank_without_problem_or_place(int culprit) {
  struct attempt attempt;
  attempt_make(&attempt);
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

/* Rank 0 sends to rank 1 and no other rank takes part: no arrays, buffers, or size of items. The plan's
   buffer is of items as the others have them, more than `lent` could lend, and of none where they exceed any
   memory. */
static void idle_ranks_give_nothing(const char *method) {
  enum { ITEMS = 1 << 24 };
  static const int64_t offsets[2] = {0, 1};
  void *buffer = NULL;
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
    problem = (struct swp_exchange){.item_bytes = rank == 2 ? 1000000000 : -rank,
                                    .nitems = rank == 3 ? INT64_MAX / 8 : ITEMS};
  EXPECT_ERROR(swp_exchange_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan), SWP_SUCCESS);
  if (rank > 1) {
    EXPECT_ERROR(swp_exchange_buffer(plan, &buffer), SWP_SUCCESS);
    if (rank != 3 && buffer != NULL)
      ((double *)buffer)[ITEMS - 1] = 0;
  }
  EXPECT_ERROR(swp_exchange_execute(plan, rank == 0 ? &send : NULL, rank == 1 ? &recv : NULL), SWP_SUCCESS);
  EXPECT(rank != 1 || recv == 5, "%g came", recv);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void nobody_gives_anything(const char *method) {
  const struct swp_exchange problem = {0};
  swp_plan *plan = NULL;
  test_case("%s, no rank with messages", method);
  const int error = swp_exchange_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan);
  if (strcmp(method, "shared") == 0 || needs_nodes(method)) { /* nothing goes by memory */
    EXPECT_ERROR(error, SWP_ERR_NOT_APPLICABLE);
    return;
  }
  EXPECT_ERROR(error, SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_execute(plan, NULL, NULL), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void what_is_not_needed_is_not_asked_for(void) {
  char *specs = all_specs(SWP_EXCHANGE, procs);
  for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " ")) {
    nobody_gives_anything(spec);
    if (procs > 1 && !needs_nodes(spec))
      idle_ranks_give_nothing(spec);
  }
  free(specs);
}

/* ---- Specs ---- */

static void expect_spec_error(enum swp_operation operation, const char *method, int expected) {
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL;
  test_case("%s '%s'", operation == SWP_EXCHANGE ? "exchange" : "discovery", method);
  int error = operation == SWP_EXCHANGE
                  ? swp_exchange_plan(MPI_COMM_WORLD, &attempt.problem, method, NULL, &plan)
                  : swp_discovery_plan(MPI_COMM_WORLD, method, NULL, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), expected);
  EXPECT(plan == NULL, "the plan is not NULL");
}

static void malformed_specs_are_refused(void) {
  char specs[] = "unknown/Direct/direct:/direct:x=1/direct / direct/stfw:/stfw:dims/stfw:dims=/stfw:dims=two/"
                 "stfw:dims=2,/stfw:dims=2,dims=2/stfw:dims=-2/stfw:dims=2x2/stfw:grid=/stfw:grid=2x/"
                 "stfw:grid=x2/stfw:grid=2xx2/stfw:grid=2X2/stfw:dims=99999999999999999999/stfw:depth=2/"
                 "stfw,dims=2/direct,stfw/nbx/auto:table=x/stfw:dims=2;grid=2";
  expect_spec_error(SWP_EXCHANGE, "", SWP_ERR_METHOD);
  for (char *spec = strtok(specs, "/"); spec != NULL; spec = strtok(NULL, "/"))
    expect_spec_error(SWP_EXCHANGE, spec, SWP_ERR_METHOD);
  expect_spec_error(SWP_DISCOVERY, "direct", SWP_ERR_METHOD);
  expect_spec_error(SWP_DISCOVERY, "nbx:barrier=none", SWP_ERR_METHOD);
  char longest[2000];
  memset(longest, 'a', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  expect_spec_error(SWP_EXCHANGE, longest, SWP_ERR_METHOD);
}

static void impossible_methods_are_not_applicable(void) {
  expect_spec_error(SWP_EXCHANGE, "stfw:radix=30", SWP_ERR_NOT_APPLICABLE);
  expect_spec_error(SWP_EXCHANGE, "stfw:dims=2,radix=2", SWP_ERR_NOT_APPLICABLE);
  expect_spec_error(SWP_EXCHANGE, "stfw:dims=30", SWP_ERR_NOT_APPLICABLE);
  expect_spec_error(SWP_EXCHANGE, "stfw:grid=100x100", SWP_ERR_NOT_APPLICABLE);
  if (procs < 4)
    expect_spec_error(SWP_EXCHANGE, "stfw:dims=2", SWP_ERR_NOT_APPLICABLE);
}

/* By MPI such a call is wrong; here it is refused, where the method would fold items that fit no board. */
static void sums_of_derived_types_are_not_for_boards(void) {
  struct swp_collective sum = {.operation = SWP_ALLREDUCE, .recv_count = 1, .op = MPI_SUM};
  swp_plan *plan = NULL;
  test_case("MPI_SUM of a derived type by boards");
  MPI_Type_contiguous(5000, MPI_DOUBLE, &sum.recv_type);
  MPI_Type_commit(&sum.recv_type);
  int error = swp_collective_plan(MPI_COMM_WORLD, &sum, "shared", NULL, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_NOT_APPLICABLE);
  EXPECT(SWP_SIMULATED || strstr(swp_error_message(), "predefined") != NULL, "'%s'", swp_error_message());
  EXPECT(plan == NULL, "a plan was made");
  MPI_Type_free(&sum.recv_type);
}

/* ---- Wrong use of a good plan ---- */

static int64_t plan_bytes(const swp_plan *plan) {
  struct swp_statistics statistics = {0};
  EXPECT_ERROR(swp_plan_statistics(plan, NULL, &statistics), SWP_SUCCESS);
  return statistics.plan_bytes;
}

static void memory_since_planning_is_counted(void) {
  enum { COUNT = 1000000 };
  const int64_t bytes = COUNT * (int64_t)sizeof(int);
  struct swp_collective sums = {
      .operation = SWP_ALLREDUCE, .recv_count = 1, .recv_type = MPI_INT, .op = MPI_SUM};
  struct attempt attempt;
  swp_plan *plan = NULL;
  void *buffer;
  test_case("memory since planning");
  attempt_make(&attempt);
  attempt_plan(&attempt, &plan);
  int64_t before = plan_bytes(plan);
  EXPECT_ERROR(swp_exchange_buffer(plan, &buffer), SWP_SUCCESS);
  EXPECT(plan_bytes(plan) > before, "%lld bytes with a buffer", (long long)plan_bytes(plan));
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &sums, "binomial", NULL, &plan), SWP_SUCCESS);
  before = plan_bytes(plan);
  sums.recv_count = COUNT;
  EXPECT_ERROR(swp_collective_set(plan, &sums), SWP_SUCCESS);
  EXPECT(procs == 1 || plan_bytes(plan) >= before + bytes, "%lld bytes with a vector",
         (long long)plan_bytes(plan));
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void exchange_states(void) {
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL;
  double send[3] = {1, 2, 3}, recv[4];
  int done = 5;
  void *buffer = send;
  test_case("states of an exchange");
  attempt_plan(&attempt, &plan);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_test(plan, &done), SWP_ERR_STATE);
  EXPECT_EQUAL(done, 0);
  swp_inbox *inbox = NULL;
  EXPECT_ERROR(swp_discovery_execute(plan, 0, NULL, NULL, NULL, &inbox), SWP_ERR_STATE);
  EXPECT(inbox == NULL, "an inbox was made");
  EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_buffer(plan, &buffer), SWP_ERR_STATE);
  EXPECT(buffer == send, "a buffer was given");
  EXPECT_ERROR(swp_test(plan, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_wait(plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_buffer(plan, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_exchange_buffer(NULL, &buffer), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_SUCCESS); /* such errors leave the plan good */
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* Receivers may read what was written to a buffer that is not of the present execution. */
static void kept_buffers_are_refused(void) {
  struct attempt attempt;
  swp_plan *plan = NULL;
  double own[3] = {1, 2, 3}, recv[4];
  void *kept[2], *buffer;
  if (SWP_SIMULATED || procs == 1)
    return;
  test_case("buffers of lent that are kept");
  attempt_make(&attempt);
  attempt.method = "lent";
  EXPECT_ERROR(attempt_plan(&attempt, &plan), SWP_SUCCESS);
  for (int i = 0; i < 2; i++) {
    EXPECT_ERROR(swp_exchange_buffer(plan, &kept[i]), SWP_SUCCESS);
    memcpy(kept[i], own, sizeof own);
    EXPECT_ERROR(swp_exchange_execute(plan, kept[i], recv), SWP_SUCCESS);
  }
  EXPECT(kept[0] != kept[1], "buffers do not take turns");
  for (int i = 0; i < 2; i++) {
    EXPECT_ERROR(swp_exchange_execute(plan, kept[i], recv), SWP_ERR_STATE);
    EXPECT(strstr(swp_error_message(), "swp_exchange_buffer") != NULL, "'%s'", swp_error_message());
  }
  EXPECT_ERROR(swp_exchange_buffer(plan, &buffer), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_execute(plan, buffer == kept[0] ? kept[1] : kept[0], recv), SWP_ERR_STATE);
  recv[0] = 0;
  EXPECT_ERROR(swp_exchange_execute(plan, own, recv), SWP_SUCCESS); /* the plan is still good */
  EXPECT(recv[0] == 3, "%g was received", recv[0]);
  EXPECT_ERROR(swp_exchange_buffer(plan, &buffer), SWP_SUCCESS);
  memcpy(buffer, own, sizeof own);
  EXPECT_ERROR(swp_exchange_start(plan, buffer, recv), SWP_SUCCESS);
  EXPECT_ERROR(swp_wait(plan), SWP_SUCCESS);
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

/* The arguments of a rank, which sends a number to the next one. */
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
    if (!needs_nodes(spec))
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
  sums_of_derived_types_are_not_for_boards();
  mistakes_of_one_rank_reach_all(0);
  mistakes_of_one_rank_reach_all(procs - 1);
  more_partners_than_ranks_are_refused_by_their_count();
  one_rank_without_problem_or_place(procs - 1);
  what_is_not_needed_is_not_asked_for();
  memory_since_planning_is_counted();
  exchange_states();
  kept_buffers_are_refused();
  discovery_states();
  every_discovery_goes_on_without(0);
  every_discovery_goes_on_without(procs - 1);
  test_case("a good plan after everything");
  expect_usable();
  return test_end();
}
