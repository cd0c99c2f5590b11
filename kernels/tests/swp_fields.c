/*
 * Plans of several fields: what one rank gets wrong is an error of all, states, what need not be given, and
 * that messages, bytes, rules and races are those of whole items. The oracle has what they deliver.
 */
#include "attempt.h"
#include "nodes.h"
#include "oracle.h"
#include "table.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

static int rank, procs;

/* ---- Mistakes ---- */

/* The fields of the rank's next plan. */
struct list {
  int nfields;
  int64_t bytes[3];
  bool none;  /* NULL instead of bytes */
  bool plain; /* an exchange without fields, of items as large */
};

static const struct list good = {3, {8, 24, 4}, false, false};
static struct list next;
enum { GOOD_BYTES = 36 };

#define MISTAKES(X)                                                                                          \
  X(no_field, (next.nfields = 0), SWP_ERR_ARGUMENT, 1)                                                       \
  X(fields_negative, (next.nfields = -1), SWP_ERR_ARGUMENT, 1)                                               \
  X(no_sizes, (next.none = true), SWP_ERR_ARGUMENT, 1)                                                       \
  X(empty_field, (next.bytes[1] = 0), SWP_ERR_ARGUMENT, 1)                                                   \
  X(negative_field, (next.bytes[2] = -4), SWP_ERR_ARGUMENT, 1)                                               \
  X(sum_over_64_bits, (next.bytes[0] = next.bytes[1] = INT64_MAX / 2), SWP_ERR_ARGUMENT, 1)                  \
  X(buffer_over_64_bits, (next.bytes[0] = INT64_MAX / 4), SWP_ERR_ARGUMENT, 1)                               \
  X(fewer_fields, (next.nfields = 2), SWP_ERR_MISMATCH, 2)                                                   \
  X(fewer_but_as_many_bytes, (next.nfields = 2, next.bytes[0] = 12), SWP_ERR_MISMATCH, 2)                    \
  X(larger_field, (next.bytes[1] = 25), SWP_ERR_MISMATCH, 2)                                                 \
  X(other_order, (next.bytes[0] = 24, next.bytes[1] = 8), SWP_ERR_MISMATCH, 2)                               \
  X(without_fields, (next.plain = true, a->problem.item_bytes = GOOD_BYTES), SWP_ERR_MISMATCH, 2)

MISTAKES(MISTAKE_FUNCTION)

static const struct mistake mistakes[] = {MISTAKES(MISTAKE_ROW)};

/* Uses up what a mistake made of the fields. */
static int plan_fields(const struct attempt *attempt, swp_plan **plan) {
  const struct list list = next;
  struct swp_exchange problem = attempt->problem;
  next = good;
  if (list.plain)
    return attempt_plan(attempt, plan);
  problem.item_bytes = -1; /* which fields do without */
  return test_agreed(MPI_COMM_WORLD,
                     swp_fields_plan(MPI_COMM_WORLD, &problem, list.nfields, list.none ? NULL : list.bytes,
                                     attempt->method, &attempt->hints, plan));
}

/* ---- States ---- */

static void states(void) {
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL, *plain = NULL;
  char data[2][3][24 * 4] = {0};
  const void *const send[] = {data[0][0], data[0][1], data[0][2]};
  void *const recv[] = {data[1][0], data[1][1], data[1][2]};
  int done = 5;
  test_case("states of an exchange of fields");
  EXPECT_ERROR(plan_fields(&attempt, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_test(plan, &done), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_execute(plan, data[0], data[1]), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_start(plan, data[0], data[1]), SWP_ERR_STATE);
  EXPECT_ERROR(swp_exchange_buffer(plan, &(void *){NULL}), SWP_ERR_STATE);
  EXPECT_ERROR(swp_fields_execute(plan, NULL, recv), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_fields_start(plan, send, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_fields_start(plan, send, recv), SWP_SUCCESS);
  EXPECT_ERROR(swp_fields_start(plan, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_fields_execute(plan, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_wait(plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_fields_execute(plan, send, recv), SWP_SUCCESS); /* such errors leave the plan good */
  attempt.problem.item_bytes = GOOD_BYTES;
  EXPECT_ERROR(attempt_plan(&attempt, &plain), SWP_SUCCESS);
  EXPECT_ERROR(swp_fields_execute(plain, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_fields_start(plain, send, recv), SWP_ERR_STATE);
  EXPECT_ERROR(swp_fields_execute(NULL, send, recv), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_free(&plain), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* Rank 0 sends to rank 1, and no other rank takes part: no arrays, buffers, or fields. */
static void idle_ranks_give_nothing(const char *method) {
  static const int64_t offsets[2] = {0, 1}, bytes[2] = {sizeof(double), sizeof(int)};
  const int peer = 1 - rank;
  double pressure = 5, its_pressure = 0;
  int flag = 7, its_flag = 0;
  const void *const send[] = {&pressure, &flag};
  void *const recv[] = {&its_pressure, &its_flag};
  swp_plan *plan = NULL;
  test_case("%s, most ranks without messages", method);
  struct swp_exchange problem = {.item_bytes = 1 << 30, .nitems = 1 << 20}; /* both unused */
  if (rank == 0)
    problem = (struct swp_exchange){.nitems = 1, .nsends = 1, .send_ranks = &peer, .send_offsets = offsets};
  else if (rank == 1)
    problem = (struct swp_exchange){.nrecvs = 1, .recv_ranks = &peer, .recv_offsets = offsets};
  EXPECT_ERROR(swp_fields_plan(MPI_COMM_WORLD, &problem, rank < 2 ? 2 : -rank, rank < 2 ? bytes : NULL,
                               method, NULL, &plan),
               SWP_SUCCESS);
  EXPECT_ERROR(swp_fields_execute(plan, rank == 0 ? send : NULL, rank == 1 ? recv : NULL), SWP_SUCCESS);
  EXPECT(rank != 1 || (its_pressure == 5 && its_flag == 7), "%g and %d came", its_pressure, its_flag);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* ---- Whole items ---- */

static void expect_stages(const swp_plan *plan, const swp_plan *plain, int stages, bool same_bytes) {
  for (int stage = 0; stage < stages; stage++) {
    int64_t of_fields[4], of_plain[4];
    EXPECT_ERROR(swp_plan_stage(plan, stage, &of_fields[0], &of_fields[1], &of_fields[2], &of_fields[3]),
                 SWP_SUCCESS);
    EXPECT_ERROR(swp_plan_stage(plain, stage, &of_plain[0], &of_plain[1], &of_plain[2], &of_plain[3]),
                 SWP_SUCCESS);
    EXPECT(memcmp(of_fields, of_plain, same_bytes ? sizeof of_plain : sizeof of_plain / 2) == 0,
           "stage %d: %d messages of %d bytes, not %d of %d", stage, (int)of_fields[0], (int)of_fields[2],
           (int)of_plain[0], (int)of_plain[2]);
  }
}

/* The statistics are those of one exchange of items as large. Only `nap` divides items among the ranks of a
   node by their address, which differs, so that there may be other bytes on the node. */
static void it_sends_what_one_exchange_sends(const char *method, const struct family *family) {
  struct traffic *traffic = traffic_new(family, procs, 3);
  struct swp_exchange problem = exchange_of(traffic, rank, GOOD_BYTES, 2);
  swp_plan *plan = NULL, *plain = NULL;
  test_case("statistics of fields by %s, %s, %d ranks a node", method, family->name, oracle_hints.ppn);
  int error =
      test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &problem, method, &oracle_hints, &plain));
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_fields_plan(MPI_COMM_WORLD, &problem, good.nfields, good.bytes,
                                                           method, &oracle_hints, &plan)),
               error);
  if (error == SWP_SUCCESS) {
    struct swp_statistics fields[2], one[2];
    const bool same_bytes = strncmp(method, "nap", 3) != 0;
    EXPECT_ERROR(swp_plan_statistics(plan, &fields[0], &fields[1]), SWP_SUCCESS);
    EXPECT_ERROR(swp_plan_statistics(plain, &one[0], &one[1]), SWP_SUCCESS);
    for (int i = 0; i < 2; i++) {
      EXPECT_EQUAL(fields[i].stages, one[i].stages);
      EXPECT_EQUAL(fields[i].mmax, one[i].mmax);
      EXPECT(!same_bytes || fields[i].hop_bytes == one[i].hop_bytes, "other bytes are sent");
      EXPECT(!same_bytes || fields[i].buffer_bytes == one[i].buffer_bytes, "other bytes are forwarded");
      EXPECT_EQUAL(fields[i].off_node_messages, one[i].off_node_messages);
      EXPECT_EQUAL(fields[i].off_node_bytes, one[i].off_node_bytes);
    }
    expect_stages(plan, plain, one[1].stages, same_bytes);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plain), SWP_SUCCESS);
  exchange_free(&problem);
  traffic_free(traffic);
}

static void every_method_sees_whole_items(void) {
  for (oracle_hints.ppn = 0; oracle_hints.ppn <= (procs > 2 ? 2 : 0); oracle_hints.ppn += 2) {
    char *specs = all_specs(SWP_EXCHANGE, procs);
    for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
      for (int family = 0; family < nfamilies; family += 4)
        it_sends_what_one_exchange_sends(spec, &families[family]);
    free(specs);
  }
  oracle_hints.ppn = 0;
}

/* No field of a neighbour's three items has 100 bytes, but all together have. */
static void rules_see_whole_items(void) {
  static const char text[] = "switchpoint-table 1\n"
                             "rule op=exchange bytes=100:* method=alltoallv\n"
                             "rule op=exchange method=neighbor\n";
  struct attempt attempt;
  struct swp_table *table;
  swp_plan *plan = NULL;
  attempt_make(&attempt);
  test_case("a rule for the bytes of whole items");
  EXPECT_ERROR(swp_table_parse("memory", text, sizeof text - 1, &table), SWP_SUCCESS);
  attempt.hints.table = table;
  attempt.method = "auto";
  EXPECT_ERROR(plan_fields(&attempt, &plan), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), "alltoallv") == 0, "the method is %s", swp_plan_method(plan));
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  swp_table_free(&table);
}

static void a_race_is_of_whole_items(void) {
  const struct swp_hints before = oracle_hints;
  oracle_hints.flags = SWP_MEASURE;
  oracle_hints.budget_s = 0.02;
  check_exchange(MPI_COMM_WORLD, "auto", &families[0], FUSED);
  oracle_hints = before;
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_fields");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  next = good;
  attempt_mistakes(sizeof mistakes / sizeof mistakes[0], mistakes, 0, plan_fields);
  attempt_mistakes(sizeof mistakes / sizeof mistakes[0], mistakes, procs - 1, plan_fields);
  states();
  if (procs > 1) {
    char *specs = all_specs(SWP_EXCHANGE, procs);
    for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
      if (!needs_nodes(spec))
        idle_ranks_give_nothing(spec);
    free(specs);
    rules_see_whole_items();
  }
  every_method_sees_whole_items();
  a_race_is_of_whole_items();
  return test_end();
}
