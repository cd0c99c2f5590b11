/*
 * Messages on a node by its memory, of `nap:node=shared` and `shared`: which fit a slot and which are sent,
 * where the methods are refused, and that no slot is written again before it is read, however far apart the
 * ranks are. What it delivers is checked by swp_oracle as for any method.
 */
#include "nodes.h"
#include "oracle.h"
#include "sharing.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char METHOD[] = "nap:node=shared";
enum { STAGE_GATHER, STAGE_NODES, STAGE_DISTRIBUTE, STAGES };

static int rank, procs;

/* ---- Traffic; items are bytes, nodes have two ranks ---- */

static int64_t far_items, near_items[2];

/* The first rank of the first node sends to the last rank of the second one, so that half of it, the share of
   the node's other rank, is handed to that one, and there half of it is passed on. On their own node, a rank
   sends to its neighbour. */
static void fill_pairs(struct row *row, int size, int source, uint64_t seed) {
  (void)seed;
  const int neighbour = source ^ 1;
  if (source == 0 && far_items > 0 && size > 3)
    row_once(row, 3, far_items);
  if (neighbour < size && near_items[source % 2] > 0)
    row_once(row, neighbour, near_items[source % 2]);
}

static const struct family pairs = {"pairs", false, fill_pairs};

static void set_traffic(int64_t far, int64_t near, int64_t back) {
  far_items = far;
  near_items[0] = near;
  near_items[1] = back;
}

/* ---- Which go by memory ---- */

static void expect_messages(const swp_plan *plan, int stage, int64_t expected) {
  int64_t messages = -1;
  EXPECT_ERROR(swp_plan_stage(plan, stage, &messages, NULL, NULL, NULL), SWP_SUCCESS);
  EXPECT(messages == expected, "stage %d sends %d messages, expected %d", stage, (int)messages,
         (int)expected);
}

static void execute(struct exchange_run *run, uint64_t calls) {
  for (uint64_t call = 0; call < calls; call++) {
    run_fill(run, call);
    EXPECT_ERROR(run_execute(run), SWP_SUCCESS);
    run_check(run, call);
  }
}

/* What the plan sends by MPI: on the nodes in each stage, and between them. */
static void check_sent(int64_t gathered, int64_t near, int64_t distributed, int64_t far) {
  struct exchange_run run;
  struct swp_statistics statistics;
  if (!run_open(&run, MPI_COMM_WORLD, METHOD, &pairs, 1, 1, 0))
    return;
  EXPECT_ERROR(swp_plan_statistics(run.plan, NULL, &statistics), SWP_SUCCESS);
  EXPECT_EQUAL(statistics.stages, STAGES);
  EXPECT_EQUAL(statistics.off_node_messages, far);
  expect_messages(run.plan, STAGE_GATHER, gathered);
  expect_messages(run.plan, STAGE_NODES, near + far);
  expect_messages(run.plan, STAGE_DISTRIBUTE, distributed);
  execute(&run, 5);
  run_close(&run);
}

static void messages_up_to_the_size_of_a_slot_are_not_sent(void) {
  test_case("messages that fit a slot");
  set_traffic(2 * SHARING_BYTES, SHARING_BYTES, 1);
  check_sent(0, 0, 0, 2);
}

/* One message of each kind does not fit, beside others that do. */
static void larger_ones_are_sent(void) {
  test_case("a message that does not fit a slot");
  set_traffic(2 * SHARING_BYTES, SHARING_BYTES + 1, 1);
  check_sent(0, procs / 2, 0, 2);
  test_case("shares of a node that do not fit a slot");
  set_traffic(2 * (SHARING_BYTES + 1), 1, SHARING_BYTES);
  check_sent(1, 0, 1, 2);
}

static void check_sent_by_shared(int64_t near, int64_t far) {
  struct exchange_run run;
  struct swp_statistics statistics;
  if (!run_open(&run, MPI_COMM_WORLD, "shared", &pairs, 1, 1, 0))
    return;
  EXPECT_ERROR(swp_plan_statistics(run.plan, NULL, &statistics), SWP_SUCCESS);
  EXPECT_EQUAL(statistics.stages, 1);
  EXPECT_EQUAL(statistics.on_node_messages, near);
  EXPECT_EQUAL(statistics.off_node_messages, far);
  execute(&run, 5);
  run_close(&run);
}

static void shared_sends_those_between_nodes(void) {
  test_case("shared: messages between nodes");
  set_traffic(SHARING_BYTES, SHARING_BYTES, 1);
  check_sent_by_shared(0, 1);
  test_case("shared: messages between nodes, and one that does not fit a slot");
  set_traffic(1, SHARING_BYTES + 1, 1);
  check_sent_by_shared(procs / 2, 1);
}

/* ---- Where they are refused ---- */

static void expect_refused(const char *method, const char *why) {
  struct traffic *traffic = traffic_new(&pairs, procs, 1);
  struct swp_exchange problem = exchange_of(traffic, rank, 1, 0);
  swp_plan *plan = NULL;
  test_case("%s, %d ranks a node, refused: %s", method, oracle_hints.ppn, why);
  EXPECT_ERROR(
      test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &problem, method, &oracle_hints, &plan)),
      SWP_ERR_NOT_APPLICABLE);
  EXPECT(strstr(swp_error_message(), why) != NULL, "'%s'", swp_error_message());
  EXPECT(plan == NULL, "the plan is not NULL");
  exchange_free(&problem);
  traffic_free(traffic);
}

static void where_they_are_other_methods_they_are_refused(const char *method) {
  const int ppn = oracle_hints.ppn;
  static const char too_large[] = "no message on a node is of 8192 bytes or less";
  set_traffic(8, 8, 8);
  oracle_hints.ppn = procs;
  if (needs_nodes(method))
    expect_refused(method, "all ranks are on one node");
  oracle_hints.ppn = 1;
  if (procs > 1)
    expect_refused(method, "each rank is on a node of its own");
  oracle_hints.ppn = ppn;
  if (procs <= ppn)
    return;
  set_traffic(2 * (SHARING_BYTES + 1), SHARING_BYTES + 1, 0);
  expect_refused(method, too_large);
  set_traffic(0, 0, 0);
  expect_refused(method, too_large);
}

/* ---- Ranks apart ---- */

/* A sender to which nothing comes back may be two calls ahead, as each has a slot. */
static void a_sender_may_be_two_calls_ahead(const char *method) {
  struct exchange_run run;
  const int neighbour = rank ^ 1;
  const bool sends = rank % 2 == 0;
  test_case("%s, %d ranks a node: a sender two calls ahead", method, oracle_hints.ppn);
  set_traffic(0, 100, 0);
  if (!run_open(&run, MPI_COMM_WORLD, method, &pairs, 2, 1, 0))
    return;
  if (neighbour < procs && !sends)
    MPI_Recv(NULL, 0, MPI_BYTE, neighbour, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  execute(&run, 2);
  if (neighbour < procs && sends)
    MPI_Send(NULL, 0, MPI_BYTE, neighbour, 0, MPI_COMM_WORLD);
  run_close(&run);
}

/* Receivers sleep now and then, at one end or at both. */
static void no_slot_is_written_before_it_is_read(const char *method) {
  enum { CALLS = 200, SLEEP_US = 300 };
  for (int back = 0; back < 2; back++) {
    struct exchange_run run;
    test_case("%s, %d ranks a node: ranks apart, %s", method, oracle_hints.ppn,
              back ? "both send" : "one sends");
    set_traffic(64, 100, back ? 50 : 0);
    if (!run_open(&run, MPI_COMM_WORLD, method, &pairs, 3, 1, 0))
      continue;
    for (uint64_t call = 0; call < CALLS; call++) {
      run_fill(&run, call);
      if (mix((uint64_t)rank, call, 5, 0) % 16 == 0)
        usleep(SLEEP_US);
      EXPECT_ERROR(run_execute(&run), SWP_SUCCESS);
      run_check(&run, call);
    }
    run_close(&run);
  }
}

static void ranks_may_be_apart(const char *method, int ppn) {
  const int before = oracle_hints.ppn;
  oracle_hints.ppn = ppn;
  a_sender_may_be_two_calls_ahead(method);
  no_slot_is_written_before_it_is_read(method);
  oracle_hints.ppn = before;
}

/* Rank 2, of another node or none, sends what does not fit a slot to rank 1, and rank 0 what does. */
static void fill_apart(struct row *row, int size, int source, uint64_t seed) {
  (void)seed;
  if ((source == 0 || source == 2) && size > 2)
    row_once(row, 1, source == 2 ? 8 * SHARING_BYTES : 8);
}

static const struct family apart = {"apart", false, fill_apart};

/* Rank 1 waits for rank 0, which waits for a long message of the application from it, while the next message
   of rank 2 has come already. */
static void a_rank_that_waits_lets_mpi_progress(int ppn) {
  enum { LATE_US = 100000, LONG_BYTES = 1 << 20 };
  char *data = test_allocate(LONG_BYTES);
  MPI_Request request = MPI_REQUEST_NULL;
  struct exchange_run run;
  const int before = oracle_hints.ppn;
  test_case("shared, %d ranks a node: rank 1 sends while it waits", ppn);
  oracle_hints.ppn = ppn;
  const bool opened = run_open(&run, MPI_COMM_WORLD, "shared", &apart, 5, 1, 0);
  oracle_hints.ppn = before;
  EXPECT(opened, "it is refused");
  if (!opened) {
    free(data);
    return;
  }
  if (rank == 0) {
    usleep(LATE_US);
    MPI_Recv(data, LONG_BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Isend(data, LONG_BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
  }
  execute(&run, 2);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  run_close(&run);
  free(data);
}

/* ---- Several plans ---- */

/* Plans come and go while another one, of the same nodes, is in use. */
static void plans_do_not_disturb_each_other(void) {
  struct exchange_run kept, other;
  test_case("a plan beside others");
  set_traffic(1000, 100, 1);
  if (!run_open(&kept, MPI_COMM_WORLD, METHOD, &pairs, 4, 1, 0))
    return;
  for (uint64_t i = 0; i < 5; i++) {
    run_fill(&kept, i);
    EXPECT_ERROR(run_start(&kept), SWP_SUCCESS);
    if (run_open(&other, MPI_COMM_WORLD, i % 2 == 0 ? METHOD : "nap:sharing=no,node=shared", &pairs, i, 1,
                 3)) {
      execute(&other, 3);
      run_close(&other);
    }
    EXPECT_ERROR(swp_wait(kept.plan), SWP_SUCCESS);
    run_check(&kept, i);
  }
  run_close(&kept);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_slots");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  swp_calls_begin = UINT64_MAX - 3;
  oracle_hints.ppn = 2;
  where_they_are_other_methods_they_are_refused(METHOD);
  where_they_are_other_methods_they_are_refused("shared");
  if (procs > 3) {
    messages_up_to_the_size_of_a_slot_are_not_sent();
    larger_ones_are_sent();
    shared_sends_those_between_nodes();
  }
  if (procs > 2) {
    ranks_may_be_apart(METHOD, oracle_hints.ppn);
    ranks_may_be_apart("shared", oracle_hints.ppn);
    ranks_may_be_apart("shared", procs);
    a_rank_that_waits_lets_mpi_progress(procs);
    a_rank_that_waits_lets_mpi_progress(oracle_hints.ppn);
    plans_do_not_disturb_each_other();
  }
  return test_end();
}
