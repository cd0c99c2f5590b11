/*
 * SWP_MEASURE: which method a race chooses, and what it remembers. By --wrap the library reads a clock of the
 * test's, which its executions and trials put forward by what the test says they take.
 */
#include "allocate.h"
#include "calls.h"
#include "oracle.h"
#include "race.h"
#include "testing.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int __real_swp_trial_execute(swp_plan *trial, const struct buffers *buffers);
int __wrap_swp_trial_execute(swp_plan *trial, const struct buffers *buffers);
int __real_swp_trial_plan(const struct swp_plan *plan, const struct spec *spec,
                          const struct estimate *estimate, struct swp_plan **trial);
int __wrap_swp_trial_plan(const struct swp_plan *plan, const struct spec *spec,
                          const struct estimate *estimate, struct swp_plan **trial);

bool __real_swp_method_variant(const struct method *method, enum swp_operation operation, int index,
                               int procs, char *text, size_t length);
bool __wrap_swp_method_variant(const struct method *method, enum swp_operation operation, int index,
                               int procs, char *text, size_t length);

double __wrap_MPI_Wtime(void);

static int rank, procs, races;
static long in_place;         /* executions */
static int64_t skipped_bytes; /* of an execution's receive buffer, before its memory */
static double clock_s;
static char path[] = "/tmp/switchpoint-measure-XXXXXX"; /* a directory; the table is in it */
static char table[sizeof path + 8];
static double fast_s, slow_s, plan_s; /* of executing the fast method and others, and of planning it */
static double noise;                  /* of executions, as a share */
static bool fills_table;              /* with NUL bytes behind its text, while methods race */
static bool lacks;                    /* this process has no algorithms of the MPI library */
static bool many;                     /* knomial has a variant for each radix, of which the last is fast */

/* The plan's problem. */
struct subject {
  const char *operation, *standard, *fast; /* methods: the default, and the one that the test makes fast */
  int (*plan)(const struct swp_hints *hints, int64_t bytes, swp_plan **plan);
};

double __wrap_MPI_Wtime(void) {
  return clock_s;
}

static bool is_fast(const struct spec *spec) {
  if (many)
    return strcmp(spec->text, "knomial:radix=64") == 0;
  return strcmp(spec->text, "alltoallv") == 0 || strcmp(spec->text, "binomial") == 0;
}

bool __wrap_swp_method_variant(const struct method *method, enum swp_operation operation, int index, int size,
                               char *text, size_t length) {
  if (lacks && strcmp(method->name, "vendor") == 0 && index > 0)
    return false;
  if (!many || strcmp(method->name, "knomial") != 0)
    return __real_swp_method_variant(method, operation, index, size, text, length);
  snprintf(text, length, "knomial:radix=%d", 3 + index);
  return 3 + index <= 64;
}

int __wrap_swp_trial_execute(swp_plan *trial, const struct buffers *buffers) {
  static uint64_t calls;
  in_place += buffers->send == MPI_IN_PLACE;
  skipped_bytes = (int64_t)((uintptr_t)buffers->recv_memory - (uintptr_t)buffers->recv);
  double share = (double)(mix(calls++, (uint64_t)rank, 0, 0) % 1000) / 1000;
  clock_s += (is_fast(&trial->spec) ? fast_s : slow_s) * (1 + noise * share);
  return __real_swp_trial_execute(trial, buffers);
}

int __wrap_swp_trial_plan(const struct swp_plan *plan, const struct spec *spec,
                          const struct estimate *estimate, struct swp_plan **trial) {
  races++;
  EXPECT_EQUAL(fills_table && rank == 0 ? truncate(table, 64) : 0, 0);
  clock_s += is_fast(spec) ? plan_s : 0;
  return __real_swp_trial_plan(plan, spec, estimate, trial);
}

static int plan_exchange(const struct swp_hints *hints, int64_t item_bytes, swp_plan **plan) {
  struct traffic *traffic = traffic_new(&families[1], procs, 0);
  struct swp_exchange problem = exchange_of(traffic, rank, item_bytes, 0);
  int error = test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &problem, NULL, hints, plan));
  exchange_free(&problem);
  traffic_free(traffic);
  return error;
}

static struct swp_collective bcast_of(int64_t bytes) {
  return (struct swp_collective){SWP_BCAST, .recv_count = (int)bytes, .recv_type = MPI_CHAR,
                                 .root = procs - 1};
}

static int plan_bcast(const struct swp_hints *hints, int64_t bytes, swp_plan **plan) {
  struct swp_collective problem = bcast_of(bytes);
  return test_agreed(MPI_COMM_WORLD, swp_collective_plan(MPI_COMM_WORLD, &problem, NULL, hints, plan));
}

static const struct subject exchange = {"exchange", "direct", "alltoallv", plan_exchange};
static const struct subject bcast = {"bcast", "vendor", "binomial", plan_bcast};

static struct swp_hints hints_of(unsigned flags, int64_t executions) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.flags = flags;
  hints.executions = executions;
  hints.budget_s = 2;
  return hints;
}

/* The plan of 8 bytes uses the method, and says so with the words; with or without a race. */
static void expect_plan(const struct subject *of, unsigned flags, int64_t executions, const char *method,
                        const char *words, bool raced) {
  struct swp_hints hints = hints_of(flags, executions);
  swp_plan *plan = NULL;
  char text[1024] = "";
  races = 0;
  EXPECT_ERROR(of->plan(&hints, 8, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), method) == 0, "%s is chosen, expected %s (%s)", swp_plan_method(plan),
         method, text);
  EXPECT(strstr(text, words) != NULL, "'%s' does not say '%s'", text, words);
  EXPECT((races > 0) == raced, "%d trials", races);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void expect_error(const struct subject *of, const struct swp_hints *hints, int expected,
                         const char *words) {
  swp_plan *plan;
  EXPECT_ERROR(of->plan(hints, 8, &plan), expected);
  EXPECT(plan == NULL && strstr(swp_error_message(), words) != NULL, "'%s' does not say '%s'",
         swp_error_message(), words);
}

static void name_table(const char *name) {
  if (name != NULL)
    setenv("SWITCHPOINT_USER_TABLE", name, 1);
  else
    unsetenv("SWITCHPOINT_USER_TABLE");
}

static void write_table(const char *text) {
  FILE *file = rank == 0 ? fopen(table, "wb") : NULL;
  if (rank == 0)
    EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s cannot be written", table);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void remove_table(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    remove(table);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void set_times(double fast, double slow, double planning) {
  fast_s = fast;
  slow_s = slow;
  plan_s = planning;
}

static void the_fastest_method_is_chosen_and_nothing_remembered_without_a_file(const struct subject *of) {
  test_case("%s: no user's table", of->operation);
  name_table(NULL);
  set_times(1e-3, 3e-3, 0);
  expect_plan(of, SWP_MEASURE, 0, of->fast, "measurement, ", true);
  expect_plan(of, SWP_ESTIMATE, 0, of->standard, "default", false);
}

static void equals_leave_the_default(const struct subject *of) {
  test_case("%s: equal methods", of->operation);
  set_times(3e-3, 3e-3, 0);
  for (int i = 0; i < 2; i++)
    expect_plan(of, SWP_MEASURE, 0, of->standard, "measurement, ", true);
}

/* Planning the fast method takes 20 ms more, executing it 2 ms less: ten executions make up for it. */
static void planning_is_weighed_against_the_executions(const struct subject *of) {
  test_case("%s: executions", of->operation);
  set_times(1e-3, 3e-3, 2e-2);
  noise = 0;
  expect_plan(of, SWP_MEASURE, 9, of->standard, "measurement, ", true);
  expect_plan(of, SWP_MEASURE, 12, of->fast, "measurement, ", true);
}

static void what_was_found_is_remembered_for_any_number_of_executions(const struct subject *of) {
  test_case("%s: user's table", of->operation);
  name_table(table);
  expect_plan(of, SWP_MEASURE, 1, of->standard, "measurement, ", true);
  expect_plan(of, SWP_MEASURE, 1, of->standard, table, false);
  expect_plan(of, SWP_ESTIMATE, 1, of->standard, table, false);
  expect_plan(of, SWP_ESTIMATE, 1000, of->fast, table, false);
  expect_plan(of, SWP_ESTIMATE, 0, of->fast, table, false);
}

static void another_problem_is_appended(const struct subject *of) {
  test_case("%s: another problem", of->operation);
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  swp_plan *plan = NULL;
  swp_table *read = NULL;
  struct stat status = {0};
  set_times(1e-3, 3e-3, 0);
  if (of == &exchange && procs == 1) /* which sends nothing to others: all exchanges are alike */
    return;
  if (rank == 0)
    chmod(table, 0640);
  EXPECT_ERROR(of->plan(&hints, 16, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_table_read(MPI_COMM_WORLD, table, &read)), SWP_SUCCESS);
  EXPECT_EQUAL(swp_table_rules(read), 3);
  swp_table_free(&read);
  EXPECT(rank > 0 || (stat(table, &status) == 0 && (status.st_mode & 0777) == 0640), "mode %o",
         (unsigned)status.st_mode);
  expect_plan(of, SWP_ESTIMATE, 0, of->fast, ":4", false);
}

/* A plan that is given other bytes goes by the rules for them; for those that were raced, by the race. */
static void a_race_holds_for_the_bytes_that_were_raced(void) {
  test_case("other bytes");
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  const struct swp_collective raced = bcast_of(8), other = bcast_of(9);
  swp_plan *plan = NULL;
  char text[1024] = "", data[9] = "", expected = (char)procs;
  name_table(NULL);
  set_times(1e-3, 3e-3, 0);
  EXPECT_ERROR(plan_bcast(&hints, 8, &plan), SWP_SUCCESS);
  for (int i = 0; i < 3; i++) {
    EXPECT_ERROR(swp_collective_set(plan, i == 1 ? &other : &raced), SWP_SUCCESS);
    EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
    EXPECT(strstr(text, i == 1 ? "vendor, chosen by default" : "binomial, chosen by measurement") != NULL,
           "'%s'", text);
    memset(data, rank == procs - 1 ? expected : 0, sizeof data);
    EXPECT_ERROR(swp_collective_execute(plan, NULL, data), SWP_SUCCESS);
    EXPECT_EQUAL(data[7], expected);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void nothing_is_not_raced(void) {
  test_case("no bytes");
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  swp_plan *plan = NULL;
  races = 0;
  EXPECT_ERROR(plan_bcast(&hints, 0, &plan), SWP_SUCCESS);
  EXPECT_EQUAL(races, 0);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* Random calls: types with gaps, any root, MPI_IN_PLACE. What was raced leaves the plan as good as any. */
static void every_collective_can_be_raced(void) {
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  hints.budget_s = 0.05;
  set_times(1e-3, 1e-3, 0);
  for (int operation = SWP_BCAST; swp_operation_name(operation) != NULL; operation++)
    for (uint64_t seed = 0; seed < 2; seed++) {
      struct test_call call = call_make(MPI_COMM_WORLD, (enum swp_operation)operation, seed, 12, CALL_TAME);
      swp_plan *plan = NULL;
      test_case("race of %s", call.text);
      EXPECT_ERROR(test_agreed(MPI_COMM_WORLD,
                               swp_collective_plan(MPI_COMM_WORLD, &call.problem, NULL, &hints, &plan)),
                   SWP_SUCCESS);
      EXPECT_ERROR(swp_collective_execute(plan, call.send, call.recv), SWP_SUCCESS);
      call_check(&call, MPI_COMM_WORLD);
      EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
      call_free(&call);
    }
}

/* All will execute in place. Ranks may differ in the side that this replaces: one gives none. */
static void a_side_that_is_replaced_on_some_ranks_is_raced(void) {
  static const enum swp_operation operations[] = {SWP_ALLGATHER, SWP_ALLGATHERV, SWP_ALLTOALL, SWP_ALLTOALLV};
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  int counts[64], displs[64];
  set_times(1e-3, 3e-3, 0);
  for (int i = 0; i < procs; i++) {
    counts[i] = 4;
    displs[i] = 4 * i;
  }
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    for (int bare = 0; bare < procs; bare++) {
      const struct swp_collective problem = {operations[i],
                                             .send_count = 4,
                                             .send_type = rank == bare ? MPI_DATATYPE_NULL : MPI_INT,
                                             .recv_count = 4,
                                             .recv_type = MPI_INT,
                                             .op = MPI_OP_NULL,
                                             .recv_counts = counts,
                                             .displs = displs,
                                             .send_counts = counts,
                                             .send_displs = displs};
      swp_plan *plan = NULL;
      test_case("race of %s, rank %d has no type to send", swp_operation_name(operations[i]), bare);
      in_place = 0;
      EXPECT_ERROR(
          test_agreed(MPI_COMM_WORLD, swp_collective_plan(MPI_COMM_WORLD, &problem, NULL, &hints, &plan)),
          SWP_SUCCESS);
      EXPECT(in_place > 0, "this rank sends from a buffer");
      EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    }
}

/* Blocks may lie far behind the beginning, in an array that ranks share. */
static void a_race_takes_no_memory_before_the_first_block(void) {
  enum { FIRST = 1000000 };
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  int counts[64], displs[64];
  test_case("blocks far behind the beginning");
  set_times(1e-3, 3e-3, 0);
  for (int i = 0; i < procs; i++) {
    const bool empty = i > 0 && i == procs - 1;
    counts[i] = empty ? 0 : 4;
    displs[i] = empty ? 0 : FIRST + 4 * i;
  }
  const struct swp_collective problem = {
      SWP_ALLGATHERV,    .send_count = counts[rank], .send_type = MPI_INT, .recv_type = MPI_INT,
      .op = MPI_OP_NULL, .recv_counts = counts,      .displs = displs};
  swp_plan *plan = NULL;
  EXPECT_ERROR(
      test_agreed(MPI_COMM_WORLD, swp_collective_plan(MPI_COMM_WORLD, &problem, NULL, &hints, &plan)),
      SWP_SUCCESS);
  EXPECT_EQUAL(skipped_bytes, FIRST * (int64_t)sizeof(int));
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* Ranks whose processes differ race the same methods, or none of them does. */
static void what_one_rank_lacks_is_not_raced(void) {
  test_case("rank 0 has no algorithms of the MPI library");
  name_table(NULL);
  set_times(1e-3, 3e-3, 0);
  lacks = rank == 0;
  expect_plan(&bcast, SWP_MEASURE, 0, "binomial", "measurement, ", true);
  lacks = false;
  if (procs == 1)
    return;
  test_case("rank 0 alone has an algorithm of the user's table");
  if (rank == 0)
    EXPECT_ERROR(swp_environment_set(SWP_BCAST, "rare"), SWP_SUCCESS);
  name_table(table);
  write_table("switchpoint-table 1\nrule op=bcast method=vendor:environment=rare\n");
  expect_plan(&bcast, SWP_MEASURE, 0, "binomial", "measurement, ", true);
  remove_table();
  name_table(NULL);
}

static void a_last_line_without_its_end_gets_one(void) {
  test_case("last line");
  name_table(table);
  set_times(1e-3, 3e-3, 0);
  write_table("switchpoint-table 1\nrule op=exchange method=neighbor bytes=1000000:*");
  expect_plan(&exchange, SWP_MEASURE, 0, "alltoallv", "measurement, ", true);
  expect_plan(&exchange, SWP_ESTIMATE, 0, "alltoallv", ":3", false);
}

static void a_table_that_gets_nul_bytes_during_the_race_stays(void) {
  test_case("a table with NUL bytes");
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  name_table(table);
  write_table("switchpoint-table 1\n");
  fills_table = true;
  expect_error(&exchange, &hints, SWP_ERR_TABLE, ":2: a NUL byte");
  fills_table = false;
  expect_error(&exchange, &hints, SWP_ERR_TABLE, ":2: a NUL byte"); /* still */
}

static void a_table_that_cannot_be_used_is_an_error_before_the_race(const struct subject *of) {
  test_case("%s: broken user's table", of->operation);
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  races = 0;
  name_table(table);
  write_table("switchpoint-table 1\nrule op=exchange\n");
  expect_error(of, &hints, SWP_ERR_TABLE, ":2: ");
  test_case("%s: user's table without a place", of->operation);
  name_table("/no/such/place/user.table");
  expect_error(of, &hints, SWP_ERR_TABLE,
               "/no/such/place/user.table, named by SWITCHPOINT_USER_TABLE, cannot be written");
  EXPECT_EQUAL(races, 0);
  hints.flags = SWP_ESTIMATE;
  swp_plan *plan = NULL;
  EXPECT_ERROR(of->plan(&hints, 8, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void a_budget_too_short_leaves_the_default_and_is_not_remembered(const struct subject *of) {
  test_case("%s: short budget", of->operation);
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  swp_plan *plan = NULL;
  char text[512] = "";
  hints.budget_s = 1e-9;
  name_table(table);
  remove_table();
  EXPECT_ERROR(of->plan(&hints, 8, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), of->standard) == 0 && strstr(text, "too short") != NULL, "'%s'", text);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT(access(table, F_OK) != 0, "%s is there", table);
}

static void hints_that_make_no_sense_are_refused(const struct subject *of) {
  test_case("%s: hints", of->operation);
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  swp_plan *plan;
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_discovery_plan(MPI_COMM_WORLD, NULL, &hints, &plan)),
               SWP_ERR_ARGUMENT);
  hints.budget_s = -1;
  expect_error(of, &hints, SWP_ERR_ARGUMENT, "budget_s");
  hints.budget_s = rank + 1;
  if (procs > 1)
    expect_error(of, &hints, SWP_ERR_ARGUMENT, "differs between ranks");
}

static void what_is_off_does_not_race(const struct subject *of) {
  test_case("%s: off", of->operation);
  name_table(NULL);
  set_times(1e-3, 3e-3, 0);
  setenv("SWITCHPOINT_OFF", "nbx alltoallv binomial", 1);
  expect_plan(of, SWP_MEASURE, 0, of->standard, "measurement, ", true);
  unsetenv("SWITCHPOINT_OFF");
}

/* Whichever allocation fails, on each rank in turn, all ranks get the same error. */
static void memory_that_runs_out_is_agreed_on(const struct subject *of) {
  enum { STEP = 3, MOST = 400 };
  long n;
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  int error = SWP_ERR_MEMORY;
  hints.budget_s = 0.05;
  set_times(1e-3, 1e-3, 0);
  name_table(table);
  for (n = 1; error != SWP_SUCCESS && n < MOST; n += STEP) {
    const int culprit = (int)(n / STEP) % procs;
    swp_plan *plan = NULL;
    test_case("%s: allocation %ld fails on rank %d", of->operation, n, culprit);
    swp_allocate_fail_after(rank == culprit ? n : 0);
    error = of->plan(&hints, 8, &plan);
    swp_allocate_fail_after(0);
    EXPECT(error == SWP_SUCCESS || error == SWP_ERR_MEMORY, "error %d: %s", error, swp_error_message());
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    remove_table();
  }
  EXPECT(n > 1 + STEP * procs && n < MOST, "%ld allocations", n);
}

static void check_subject(const struct subject *of) {
  noise = 0.2;
  the_fastest_method_is_chosen_and_nothing_remembered_without_a_file(of);
  equals_leave_the_default(of);
  planning_is_weighed_against_the_executions(of);
  what_was_found_is_remembered_for_any_number_of_executions(of);
  another_problem_is_appended(of);
  a_table_that_cannot_be_used_is_an_error_before_the_race(of);
  a_budget_too_short_leaves_the_default_and_is_not_remembered(of);
  hints_that_make_no_sense_are_refused(of);
  what_is_off_does_not_race(of);
  memory_that_runs_out_is_agreed_on(of);
}

static void the_last_of_many_candidates_is_raced(void) {
  test_case("more candidates than 64");
  name_table(NULL);
  many = true;
  set_times(1e-4, 1e-3, 0);
  expect_plan(&bcast, SWP_MEASURE, 0, "knomial:radix=64", " more", true);
  EXPECT(races > 64, "%d trials", races);
  many = false;
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_measure");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  if (rank == 0)
    EXPECT(mkdtemp(path) != NULL, "no directory %s", path);
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  snprintf(table, sizeof table, "%s/table", path);
  unsetenv("SWITCHPOINT_TABLE");
  calls_begin();
  check_subject(&exchange);
  a_last_line_without_its_end_gets_one();
  a_table_that_gets_nul_bytes_during_the_race_stays();
  remove_table();
  check_subject(&bcast);
  a_race_holds_for_the_bytes_that_were_raced();
  nothing_is_not_raced();
  the_last_of_many_candidates_is_raced();
  every_collective_can_be_raced();
  a_side_that_is_replaced_on_some_ranks_is_raced();
  a_race_takes_no_memory_before_the_first_block();
  what_one_rank_lacks_is_not_raced();
  calls_end();
  remove_table();
  if (rank == 0)
    rmdir(path);
  return test_end();
}
