/*
 * SWP_MEASURE: which method a race chooses, and what it remembers. By --wrap the library reads a clock of the
 * test's, which its executions and trials put forward by what the test says they take.
 */
#include "allocate.h"
#include "oracle.h"
#include "race.h"
#include "testing.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int __real_swp_exchange_execute(swp_plan *plan, const void *send, void *recv);
int __wrap_swp_exchange_execute(swp_plan *plan, const void *send, void *recv);
int __real_swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, struct estimate *estimate,
                          struct swp_plan *trial);
int __wrap_swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, struct estimate *estimate,
                          struct swp_plan *trial);

double __wrap_MPI_Wtime(void);

static int rank, procs, races;
static double clock_s;
static char path[] = "/tmp/switchpoint-measure-XXXXXX"; /* a directory; the table is in it */
static char table[sizeof path + 8];
static double fast_s, slow_s, plan_s; /* of executing alltoallv and others, and of planning alltoallv */
static double noise;                  /* of executions, as a share */

double __wrap_MPI_Wtime(void) {
  return clock_s;
}

static bool is_fast(const struct spec *spec) {
  return strcmp(spec->text, "alltoallv") == 0;
}

int __wrap_swp_exchange_execute(swp_plan *plan, const void *send, void *recv) {
  static uint64_t calls;
  double share = (double)(mix(calls++, (uint64_t)rank, 0, 0) % 1000) / 1000;
  clock_s += (is_fast(&plan->spec) ? fast_s : slow_s) * (1 + noise * share);
  return __real_swp_exchange_execute(plan, send, recv);
}

int __wrap_swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, struct estimate *estimate,
                          struct swp_plan *trial) {
  races++;
  clock_s += is_fast(spec) ? plan_s : 0;
  return __real_swp_trial_plan(plan, spec, estimate, trial);
}

static int plan_hinted(const struct swp_hints *hints, int64_t item_bytes, swp_plan **plan) {
  struct traffic *traffic = traffic_new(&families[1], procs, 0);
  struct swp_exchange problem = exchange_of(traffic, rank, item_bytes, 0);
  int error = test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &problem, NULL, hints, plan));
  exchange_free(&problem);
  traffic_free(traffic);
  return error;
}

static struct swp_hints hints_of(unsigned flags, int64_t executions) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.flags = flags;
  hints.executions = executions;
  hints.budget_s = 2;
  return hints;
}

/* The plan of 8-byte items uses the method, and says so with the words; with or without a race. */
static void expect_plan(unsigned flags, int64_t executions, const char *method, const char *words,
                        bool raced) {
  struct swp_hints hints = hints_of(flags, executions);
  swp_plan *plan = NULL;
  char text[1024] = "";
  races = 0;
  EXPECT_ERROR(plan_hinted(&hints, 8, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), method) == 0, "%s is chosen, expected %s (%s)", swp_plan_method(plan),
         method, text);
  EXPECT(strstr(text, words) != NULL, "'%s' does not say '%s'", text, words);
  EXPECT((races > 0) == raced, "%d trials", races);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void expect_error(const struct swp_hints *hints, int expected, const char *words) {
  swp_plan *plan;
  EXPECT_ERROR(plan_hinted(hints, 8, &plan), expected);
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

static void the_fastest_method_is_chosen_and_nothing_remembered_without_a_file(void) {
  test_case("no user's table");
  name_table(NULL);
  set_times(1e-3, 3e-3, 0);
  expect_plan(SWP_MEASURE, 0, "alltoallv", "measurement, ", true);
  expect_plan(SWP_ESTIMATE, 0, "direct", "default", false);
}

static void equals_leave_the_default(void) {
  test_case("equal methods");
  set_times(3e-3, 3e-3, 0);
  for (int i = 0; i < 4; i++)
    expect_plan(SWP_MEASURE, 0, "direct", "measurement, ", true);
}

/* Planning alltoallv takes 20 ms more, executing it 2 ms less: ten executions make up for it. */
static void planning_is_weighed_against_the_executions(void) {
  test_case("executions");
  set_times(1e-3, 3e-3, 2e-2);
  noise = 0;
  expect_plan(SWP_MEASURE, 9, "direct", "measurement, ", true);
  expect_plan(SWP_MEASURE, 12, "alltoallv", "measurement, ", true);
}

static void what_was_found_is_remembered_for_any_number_of_executions(void) {
  test_case("user's table");
  name_table(table);
  expect_plan(SWP_MEASURE, 1, "direct", "measurement, ", true);
  expect_plan(SWP_MEASURE, 1, "direct", table, false);
  expect_plan(SWP_ESTIMATE, 1, "direct", table, false);
  expect_plan(SWP_ESTIMATE, 1000, "alltoallv", table, false);
  expect_plan(SWP_ESTIMATE, 0, "alltoallv", table, false);
}

static void another_exchange_is_appended(void) {
  test_case("another exchange");
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  swp_plan *plan = NULL;
  swp_table *read = NULL;
  struct stat status = {0};
  set_times(1e-3, 3e-3, 0);
  if (procs == 1) /* which sends nothing to others: all exchanges are alike */
    return;
  if (rank == 0)
    chmod(table, 0640);
  EXPECT_ERROR(plan_hinted(&hints, 16, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_table_read(MPI_COMM_WORLD, table, &read)), SWP_SUCCESS);
  EXPECT_EQUAL(swp_table_rules(read), 3);
  swp_table_free(&read);
  EXPECT(rank > 0 || (stat(table, &status) == 0 && (status.st_mode & 0777) == 0640), "mode %o",
         (unsigned)status.st_mode);
  expect_plan(SWP_ESTIMATE, 0, "alltoallv", ":4", false);
}

static void a_last_line_without_its_end_gets_one(void) {
  test_case("last line");
  write_table("switchpoint-table 1\nrule op=exchange method=neighbor bytes=1000000:*");
  expect_plan(SWP_MEASURE, 0, "alltoallv", "measurement, ", true);
  expect_plan(SWP_ESTIMATE, 0, "alltoallv", ":3", false);
}

static void a_table_that_cannot_be_used_is_an_error_before_the_race(void) {
  test_case("broken user's table");
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  races = 0;
  write_table("switchpoint-table 1\nrule op=exchange\n");
  expect_error(&hints, SWP_ERR_TABLE, ":2: ");
  test_case("user's table without a place");
  name_table("/no/such/place/user.table");
  expect_error(&hints, SWP_ERR_TABLE, "/no/such/place/user.table: cannot be written");
  EXPECT_EQUAL(races, 0);
  hints.flags = SWP_ESTIMATE;
  swp_plan *plan = NULL;
  EXPECT_ERROR(plan_hinted(&hints, 8, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void a_budget_too_short_leaves_the_default_and_is_not_remembered(void) {
  test_case("short budget");
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  swp_plan *plan = NULL;
  char text[512] = "";
  hints.budget_s = 1e-9;
  name_table(table);
  remove_table();
  EXPECT_ERROR(plan_hinted(&hints, 8, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), "direct") == 0 && strstr(text, "too short") != NULL, "'%s'", text);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT(access(table, F_OK) != 0, "%s is there", table);
}

static void hints_that_make_no_sense_are_refused(void) {
  test_case("hints");
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  swp_plan *plan;
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_discovery_plan(MPI_COMM_WORLD, NULL, &hints, &plan)),
               SWP_ERR_ARGUMENT);
  hints.budget_s = -1;
  expect_error(&hints, SWP_ERR_ARGUMENT, "budget_s");
  hints.budget_s = rank + 1;
  if (procs > 1)
    expect_error(&hints, SWP_ERR_ARGUMENT, "differs between ranks");
}

static void what_is_off_does_not_race(void) {
  test_case("off");
  name_table(NULL);
  set_times(1e-3, 3e-3, 0);
  setenv("SWITCHPOINT_OFF", "nbx alltoallv", 1);
  expect_plan(SWP_MEASURE, 0, "direct", "measurement, ", true);
  unsetenv("SWITCHPOINT_OFF");
}

/* Whichever allocation fails on whichever rank, all ranks get the same error, or a plan. */
static void memory_that_runs_out_is_agreed_on(void) {
  struct swp_hints hints = hints_of(SWP_MEASURE, 0);
  int error = SWP_ERR_MEMORY;
  hints.budget_s = 0.05;
  set_times(1e-3, 1e-3, 0);
  for (long n = 1; error != SWP_SUCCESS && n < 400; n += 3) {
    swp_plan *plan = NULL;
    test_case("allocation %ld fails", n);
    swp_allocate_fail_after(rank == n % procs ? n : 0);
    error = plan_hinted(&hints, 8, &plan);
    swp_allocate_fail_after(0);
    EXPECT(error == SWP_SUCCESS || error == SWP_ERR_MEMORY, "error %d: %s", error, swp_error_message());
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    remove_table();
  }
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
  noise = 0.2;
  the_fastest_method_is_chosen_and_nothing_remembered_without_a_file();
  equals_leave_the_default();
  planning_is_weighed_against_the_executions();
  what_was_found_is_remembered_for_any_number_of_executions();
  another_exchange_is_appended();
  a_last_line_without_its_end_gets_one();
  a_table_that_cannot_be_used_is_an_error_before_the_race();
  a_budget_too_short_leaves_the_default_and_is_not_remembered();
  hints_that_make_no_sense_are_refused();
  what_is_off_does_not_race();
  memory_that_runs_out_is_agreed_on();
  remove_table();
  if (rank == 0)
    rmdir(path);
  return test_end();
}
