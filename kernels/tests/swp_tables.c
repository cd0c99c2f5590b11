/*
 * Method tables: which method they choose, and that a broken one is refused with its file and line.
 * Usage: swp_tables DIRECTORY, of broken tables; the first line of each is "# line N: words of the message".
 */
#include "oracle.h"
#include "table_file.h"
#include "testing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, procs;

/* ---- Which method ---- */

static int plan_exchange(const char *method, const struct swp_hints *hints, swp_plan **plan) {
  struct traffic *traffic = traffic_new(&families[1], procs, 0);
  struct swp_exchange problem = exchange_of(traffic, rank, 8, 0);
  int error = test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &problem, method, hints, plan));
  exchange_free(&problem);
  traffic_free(traffic);
  return error;
}

/* Frees a plan that must use `method`, and say so with the words. */
static void expect_choice(swp_plan *plan, const char *method, const char *words) {
  char text[512] = "";
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), method) == 0, "%s is chosen, expected %s (%s)", swp_plan_method(plan),
         method, text);
  EXPECT(strstr(text, words) != NULL, "'%s' does not say '%s'", text, words);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static swp_table *read_rules(const char *rules) {
  char text[2048];
  snprintf(text, sizeof text, "switchpoint-table 1\n%s", rules);
  return table_file_make(text);
}

/* A plan by these rules, for an exchange or, where there is one, a collective. */
static swp_plan *plan_by_rules(const char *rules, const struct swp_collective *collective) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  swp_table *table = read_rules(rules);
  swp_plan *plan = NULL;
  hints.table = table;
  EXPECT_ERROR(collective != NULL ? swp_collective_plan(MPI_COMM_WORLD, collective, "auto", &hints, &plan)
                                  : plan_exchange("auto", &hints, &plan),
               SWP_SUCCESS);
  swp_table_free(&table); /* the plan must not need it any more */
  return plan;
}

/* The rules choose this method for the exchange, and the plan names their line (0: the default). */
static void expect_exchange(const char *rules, const char *method, int line) {
  char words[PATH_BYTES + 16] = "default";
  swp_plan *plan = plan_by_rules(rules, NULL);
  if (line > 0)
    snprintf(words, sizeof words, "%s:%d", table_path, line);
  expect_choice(plan, method, words);
}

/* The rule of line 2 holds, and the plan says why its method is not used. */
static void expect_passed(const char *rules, const struct swp_collective *collective, const char *method,
                          const char *why) {
  char words[PATH_BYTES + 128];
  snprintf(words, sizeof words, "; rule %s:2 is passed over: %s", table_path, why);
  expect_choice(plan_by_rules(rules, collective), method, words);
}

static void the_first_match_wins(void) {
  test_case("first match");
  expect_exchange("rule op=exchange method=neighbor\nrule op=exchange method=alltoallv\n", "neighbor", 2);
  expect_exchange("rule op=exchange method=alltoallv\nrule op=exchange method=neighbor\n", "alltoallv", 2);
  expect_exchange("# words\n\nprovenance by hand and eye\nrule op=exchange method=neighbor\n", "neighbor", 5);
}

static void rules_that_do_not_fit_are_skipped(void) {
  test_case("skipped rules");
  expect_exchange("rule op=exchange method=stfw:dims=30\nrule op=exchange method=alltoallv\n", "alltoallv",
                  3);
  expect_exchange("rule op=discovery method=nbx\nrule op=exchange method=alltoallv\n", "alltoallv", 3);
  expect_exchange("rule op=discovery method=nbx\n", "direct", 0);
  expect_exchange("", "direct", 0);
}

static void rules_that_cannot_be_used_are_reported(void) {
  const struct swp_collective bcast = {.operation = SWP_BCAST, .recv_count = 4, .recv_type = MPI_INT};
  char words[PATH_BYTES + 64];
  test_case("unusable rules");
  expect_passed("rule op=exchange method=stfw:dims=30\nrule op=exchange method=alltoallv\n", NULL,
                "alltoallv", "stfw:dims=30: ");
  expect_passed("rule op=exchange method=stfw:dims=30\n", NULL, "direct", "stfw:dims=30: ");
  expect_passed("rule op=bcast method=vendor:algorithm=none\n", &bcast, "vendor",
                "vendor:algorithm=none: the MPI library has no such algorithm");
  expect_passed("rule op=bcast method=vendor:algorithm=none\nrule op=bcast method=binomial\n", &bcast,
                "binomial", "vendor:algorithm=none: ");
  snprintf(words, sizeof words, "default: no other rule of %s matches; rule ", table_path);
  expect_choice(plan_by_rules("rule op=exchange method=stfw:dims=30\n", NULL), "direct", words);
  expect_choice(plan_by_rules("rule op=bcast method=vendor:algorithm=none\n", &bcast), "vendor", words);
  setenv("SWITCHPOINT_OFF", "alltoallv", 1);
  expect_passed("rule op=exchange method=alltoallv\n", NULL, "direct",
                "alltoallv: off at this site, by SWITCHPOINT_OFF");
  setenv("SWITCHPOINT_OFF", "binomial", 1);
  expect_passed("rule op=bcast method=binomial\n", &bcast, "vendor",
                "binomial: off at this site, by SWITCHPOINT_OFF");
  expect_passed("rule op=bcast method=binomial\nrule op=bcast method=chain\n", &bcast, "chain",
                "binomial: off at this site, by SWITCHPOINT_OFF");
  unsetenv("SWITCHPOINT_OFF");
}

/* A rule with this condition on a value is taken, or not. */
static void expect_condition(bool taken, const char *name, const char *format, double low, double high) {
  char rule[256], condition[128];
  snprintf(condition, sizeof condition, format, low, high);
  snprintf(rule, sizeof rule, "rule op=exchange method=alltoallv %s=%s\n", name, condition);
  test_case("%s=%s", name, condition);
  expect_exchange(rule, taken ? "alltoallv" : "direct", taken ? 2 : 0);
}

static void both_ends_of_a_range_are_included(void) {
  swp_plan *plan = NULL;
  struct swp_statistics s;
  plan_exchange("direct", NULL, &plan);
  swp_plan_statistics(plan, &s, NULL);
  swp_plan_free(&plan);
  double bytes = s.mavg > 0 ? (double)(int64_t)(s.vavg_bytes / s.mavg) : 0;
  const struct {
    const char *name;
    double value;
  } features[] = {{"nodes", s.nodes}, {"ppn", s.ppn}, {"mmax", (double)s.mmax}, {"bytes", bytes}};
  for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
    const char *name = features[i].name;
    double value = features[i].value;
    expect_condition(true, name, "%.0f", value, 0);
    expect_condition(true, name, "%.0f:%.0f", value, value);
    expect_condition(true, name, "0:%.0f", value, 0);
    expect_condition(true, name, "%.0f:*", value, 0);
    expect_condition(true, name, "*", 0, 0);
    expect_condition(false, name, "%.0f:*", value + 1, 0);
    expect_condition(false, name, "%.0f", value + 1, 0);
    if (value > 0)
      expect_condition(false, name, "0:%.0f", value - 1, 0);
  }
  expect_condition(true, "mavg", "%.3f:%.3f", s.mavg > 0 ? s.mavg - 0.01 : 0, s.mavg + 0.01);
  expect_condition(false, "mavg", "%.3f:%.3f", s.mavg + 0.01, s.mavg + 0.02);
  expect_condition(false, "mavg", "%.2f:*", s.mavg + 0.02, 0);
}

static void all_conditions_must_hold(void) {
  test_case("several conditions");
  expect_exchange("rule op=exchange method=alltoallv nodes=0:* bytes=1000000:*\n", "direct", 0);
  expect_exchange("rule bytes=0:*\tmethod=alltoallv  nodes=0:* op=exchange evidence=\"any = text # here\"\n",
                  "alltoallv", 2);
}

static void expect_discovery(int64_t degree, int64_t bytes, const char *rules, const char *method) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  swp_table *table = read_rules(rules);
  swp_plan *plan = NULL;
  hints.degree = degree;
  hints.bytes = bytes;
  hints.table = table;
  test_case("discovery, degree %d, %d bytes: %s", (int)degree, (int)bytes, rules);
  int error = swp_discovery_plan(MPI_COMM_WORLD, NULL, &hints, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_SUCCESS);
  expect_choice(plan, method, strcmp(method, "pex") == 0 ? "default" : table_path);
  swp_table_free(&table);
}

static void discovery_is_chosen_by_hints(void) {
  expect_discovery(-1, -1, "rule op=discovery method=pcx\n", "pcx");
  expect_discovery(-1, -1, "rule op=discovery method=pcx bytes=0:* mmax=* mavg=0:*\n", "pcx");
  expect_discovery(-1, -1, "rule op=discovery method=pcx bytes=0:64\n", "pex");
  expect_discovery(-1, 64, "rule op=discovery method=pcx bytes=0:64\n", "pcx");
  expect_discovery(-1, 65, "rule op=discovery method=pcx bytes=0:64\n", "pex");
  expect_discovery(-1, 64, "rule op=discovery method=pcx mmax=3\n", "pex");
  expect_discovery(3, -1, "rule op=discovery method=pcx mmax=3 mavg=3\n", "pcx");
  expect_discovery(4, -1, "rule op=discovery method=pcx mmax=3\n", "pex");
  expect_discovery(4, -1, "rule op=discovery method=pcx mavg=3\n", "pex");
  expect_discovery(-1, -1, "rule op=exchange method=alltoallv\n", "pex");
}

#define ON_NODE                                                                                              \
  "model message pair=on_node up_to=* alpha_s=1e-06 step_s=1 receive_s=0 per_byte_s=0.1 beta_s=0.1\n"
#define MODEL ON_NODE "model synchronous pair=on_node penalty_s=0\n"

/* By this model pex takes at least 0.4 s per rank, nbx 0.1 s for lg P steps, and dense 1 s for each message
   after the first. */
static void a_model_stands_in_where_no_rule_matches(void) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  swp_table *table;
  swp_plan *plan = NULL;
  expect_discovery(-1, -1, "rule op=discovery method=pcx\n" ON_NODE, "pcx");
  test_case("a model");
  hints.table = table = read_rules(MODEL "rule op=exchange method=alltoallv bytes=*\n");
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, NULL, &hints, &plan), SWP_SUCCESS);
  expect_choice(plan, procs == 1 ? "pex" : procs == 2 ? "dense" : "shared", "estimated");
  EXPECT_ERROR(plan_exchange(NULL, &hints, &plan), SWP_SUCCESS);
  expect_choice(plan, "alltoallv", ":4");
  test_case("a model without the parameters of messages between nodes");
  hints.ppn = 1;
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, NULL, &hints, &plan), SWP_SUCCESS);
  expect_choice(plan, "pex", procs > 1 ? "default: no rule" : "estimated");
  swp_table_free(&table);
  test_case("a model of nodes with fewer cores");
  hints.table = table = read_rules(MODEL "model node cores=1\n");
  hints.ppn = 0;
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, NULL, &hints, &plan), SWP_SUCCESS);
  expect_choice(plan, "pex", procs > 1 ? "default: no rule" : "estimated");
  swp_table_free(&table);
}

/* Only the environment of rank 0 counts. */
static void set_environment(const char *value) {
  unsetenv("SWITCHPOINT_TABLE");
  if (value != NULL)
    setenv("SWITCHPOINT_TABLE", rank == 0 ? value : "/only/rank/0/counts", 1);
}

static void expect_auto(const char *method, const struct swp_hints *hints, const char *expected,
                        const char *words) {
  swp_plan *plan = NULL;
  EXPECT_ERROR(plan_exchange(method, hints, &plan), SWP_SUCCESS);
  expect_choice(plan, expected, words);
}

static void the_callers_word_goes_before_tables_and_hints_before_the_environment(void) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  test_case("precedence");
  swp_table *table = table_file_make("switchpoint-table 1\nrule op=exchange method=neighbor\n");
  EXPECT_EQUAL(swp_table_rules(table), 1);
  hints.table = table;
  table_file_write(
      "switchpoint-table 1\nrule op=exchange method=alltoallv\nrule op=exchange method=direct\n");
  set_environment(table_path);
  expect_auto(NULL, NULL, "alltoallv", ":2");
  expect_auto("auto", NULL, "alltoallv", table_path);
  expect_auto("auto", &hints, "neighbor", ":2");
  expect_auto("direct", &hints, "direct", "caller");
  table_file_write("switchpoint-table 1\n");
  expect_auto(NULL, NULL, "direct", "default");
  set_environment("");
  expect_auto(NULL, NULL, "direct", "default");
  set_environment(NULL);
  expect_auto(NULL, NULL, "direct", "default: no table");
  setenv("SWITCHPOINT_USER_TABLE", table_path, 1);
  expect_auto(NULL, NULL, "direct", "default: no rule of ");
  unsetenv("SWITCHPOINT_USER_TABLE");
  swp_table_free(&table);
  EXPECT(table == NULL, "swp_table_free left the pointer");
}

static void a_table_in_the_hints_of_one_rank_is_an_error(void) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  swp_table *table;
  swp_plan *plan = NULL;
  table_file_write("switchpoint-table 1\nrule op=exchange method=neighbor\n");
  table_file_read(&table);
  if (procs > 1 && rank == procs - 1)
    hints.table = table;
  test_case("a table in the hints of one rank only");
  EXPECT_ERROR(plan_exchange("auto", &hints, &plan), procs > 1 ? SWP_ERR_ARGUMENT : SWP_SUCCESS);
  swp_plan_free(&plan);
  swp_table_free(&table);
}

static void a_table_without_place_on_one_rank_is_an_error(void) {
  swp_table *table = NULL;
  test_case("no place for the table on one rank");
  table_file_write("switchpoint-table 1\n");
  int error = swp_table_read(MPI_COMM_WORLD, table_path, rank == procs - 1 ? NULL : &table);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_ARGUMENT);
  EXPECT(table == NULL, "a table was made");
  test_case("a table without communicator");
  EXPECT_ERROR(swp_table_read(MPI_COMM_NULL, table_path, &table), SWP_ERR_ARGUMENT);
}

static void a_path_missing_on_one_rank_is_an_error(void) {
  swp_table *table = (swp_table *)&rank;
  test_case("a path that is NULL on one rank");
  table_file_write("switchpoint-table 1\n");
  int error = swp_table_read(MPI_COMM_WORLD, rank == procs - 1 ? NULL : table_path, &table);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_ARGUMENT);
  EXPECT(table == NULL, "a table was made");
}

static void the_chosen_method_exchanges(void) {
  table_file_write(
      "switchpoint-table 1\r\nrule op=exchange method=stfw:dims=2\r\nrule op=exchange method=alltoallv");
  set_environment(table_path);
  check_exchange(MPI_COMM_WORLD, "auto", &families[4], 24);
  expect_auto("auto", NULL, procs >= 4 ? "stfw:dims=2" : "alltoallv", procs >= 4 ? ":2" : ":3");
  set_environment(NULL);
}

/* ---- Methods that are off ---- */

static void expect_refused(const char *off, const char *method, int expected, const char *words) {
  swp_plan *plan = NULL;
  test_case("%s is off, %s is wanted", off, method);
  setenv("SWITCHPOINT_OFF", off, 1);
  EXPECT_ERROR(plan_exchange(method, NULL, &plan), expected);
  EXPECT(strstr(swp_error_message(), words) != NULL, "'%s' does not say '%s'", swp_error_message(), words);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void methods_that_are_off_are_passed_over(void) {
  const char *rules = "rule op=exchange method=neighbor\nrule op=exchange method=stfw:dims=2\n"
                      "rule op=exchange method=alltoallv\n";
  swp_table *table;
  test_case("off");
  setenv("SWITCHPOINT_OFF", "nbx; neighbor;stfw", 1);
  expect_exchange(rules, "alltoallv", 4);
  EXPECT_ERROR(table_file_read(&table), SWP_SUCCESS);
  setenv("SWITCHPOINT_OFF", "neighbor stfw alltoallv", 1);
  expect_exchange(rules, "direct", 0);
  expect_discovery(-1, -1, "rule op=discovery method=nbx\n", "nbx");
  setenv("SWITCHPOINT_OFF", "nbx", 1);
  expect_discovery(-1, -1, "rule op=discovery method=nbx\nrule op=discovery method=pcx\n", "pcx");
  setenv("SWITCHPOINT_OFF", "neighbor stfw:dims=3", 1);
  expect_exchange(rules, procs >= 4 ? "stfw:dims=2" : "alltoallv", procs >= 4 ? 3 : 4);
  swp_table_free(&table);
  expect_refused("neighbor", "neighbor", SWP_ERR_NOT_APPLICABLE, "neighbor: off at this site");
  expect_refused("node-memory", "nap:node=shared", SWP_ERR_NOT_APPLICABLE, "shared: off at this site");
  expect_refused("nieghbor", "alltoallv", SWP_ERR_METHOD, "no method 'nieghbor'");
  expect_refused("stfw:dims=02", "alltoallv", SWP_ERR_METHOD, "write stfw:dims=2 for stfw:dims=02");
  expect_refused("vendor", "alltoallv", SWP_ERR_METHOD, "vendor cannot be off");
  if (procs > 1)
    expect_refused(rank == 1 ? "nbx" : "pcx", "alltoallv", SWP_ERR_ARGUMENT, "differs between ranks");
  unsetenv("SWITCHPOINT_OFF");
}

/* Rank 0 alone has an algorithm: all refuse it, and choose the same without it. */
static void what_one_rank_lacks_no_rank_uses(void) {
  const struct swp_collective bcast = {.operation = SWP_BCAST, .recv_count = 1, .recv_type = MPI_INT};
  const char rules[] = "rule op=bcast method=vendor:environment=rare\nrule op=bcast method=binomial\n";
  swp_plan *plan = NULL;
  int value = rank == 0 ? 7 : 0;
  test_case("an algorithm of one rank");
  if (procs == 1)
    return;
  if (rank == 0)
    EXPECT_ERROR(swp_environment_set(SWP_BCAST, "rare"), SWP_SUCCESS);
  int error = swp_collective_plan(MPI_COMM_WORLD, &bcast, "vendor:environment=rare", NULL, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_NOT_APPLICABLE);
  EXPECT(strstr(swp_error_message(), rank == 0 ? "another rank" : "not started with") != NULL, "'%s'",
         swp_error_message());
  expect_passed(rules, &bcast, "binomial", "vendor:environment=rare: ");
  plan = plan_by_rules(rules, &bcast);
  EXPECT_ERROR(swp_collective_set(plan, &bcast), SWP_SUCCESS);
  EXPECT_ERROR(swp_collective_execute(plan, NULL, &value), SWP_SUCCESS);
  EXPECT_EQUAL(value, 7);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void descriptions_fit_their_buffer(void) {
  swp_plan *plan = NULL;
  char text[8];
  test_case("short description");
  plan_exchange("alltoallv", NULL, &plan);
  memset(text, 'x', sizeof text);
  EXPECT_ERROR(swp_plan_describe(plan, text, 5), SWP_SUCCESS);
  EXPECT(strlen(text) == 4 && text[5] == 'x', "wrote '%.8s'", text);
  swp_plan_free(&plan);
}

/* ---- Broken tables ---- */

/* The first line, "# line N: words". */
static int read_expectation(char *words, size_t length) {
  int line = -1;
  char format[32];
  FILE *file = fopen(table_path, "rb");
  snprintf(format, sizeof format, "# line %%d: %%%zu[^\n]", length - 1);
  words[0] = '\0';
  if (file != NULL) {
    EXPECT(fscanf(file, format, &line, words) == 2, "no expectation in the first line of %s", table_path);
    fclose(file);
  }
  return line;
}

static void expect_broken(int line, const char *words) {
  char place[PATH_BYTES + 16];
  swp_table *table;
  swp_plan *plan = NULL;
  snprintf(place, sizeof place, "%s:%d: ", table_path, line);
  EXPECT_ERROR(table_file_read(&table), SWP_ERR_TABLE);
  EXPECT(table == NULL, "a table was made");
  EXPECT(strstr(swp_error_message(), place) != NULL, "'%s' does not name %s", swp_error_message(), place);
  EXPECT(strstr(swp_error_message(), words) != NULL, "'%s' does not say '%s'", swp_error_message(), words);
  swp_table_free(&table);

  set_environment(table_path); /* the same where the table is found by the environment */
  EXPECT_ERROR(plan_exchange(NULL, NULL, &plan), SWP_ERR_TABLE);
  EXPECT(strstr(swp_error_message(), place) != NULL, "'%s' does not name %s", swp_error_message(), place);
  set_environment(NULL);
}

static void every_broken_table_is_refused(const char *directory) {
  DIR *entries = opendir(directory);
  int count = 0;
  EXPECT(entries != NULL, "cannot read the directory %s", directory);
  for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
    char words[256];
    if (strstr(entry->d_name, ".table") == NULL)
      continue;
    snprintf(table_path, sizeof table_path, "%s/%s", directory, entry->d_name);
    test_case("%s", entry->d_name);
    MPI_Bcast(table_path, PATH_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    int line = read_expectation(words, sizeof words);
    expect_broken(line, words);
    count++;
  }
  if (entries != NULL)
    closedir(entries);
  EXPECT(count >= 20, "only %d broken tables in %s", count, directory);
}

static void files_that_cannot_be_read_are_refused(void) {
  static const char *const names[] = {"/no/such/file.table", "."};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    swp_table *table;
    snprintf(table_path, sizeof table_path, "%s", names[i]);
    test_case("reading %s", table_path);
    EXPECT_ERROR(table_file_read(&table), SWP_ERR_TABLE);
    EXPECT(strstr(swp_error_message(), table_path) != NULL, "'%s' does not name the file",
           swp_error_message());
    EXPECT(i == 0 || strstr(swp_error_message(), "directory") != NULL, "'%s' does not say why",
           swp_error_message());
  }
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_tables");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  const char *directory = argc == 2 ? argv[1] : ".";
  table_file_begin();
  set_environment(NULL);
  the_first_match_wins();
  rules_that_do_not_fit_are_skipped();
  rules_that_cannot_be_used_are_reported();
  both_ends_of_a_range_are_included();
  all_conditions_must_hold();
  discovery_is_chosen_by_hints();
  a_model_stands_in_where_no_rule_matches();
  the_callers_word_goes_before_tables_and_hints_before_the_environment();
  a_table_in_the_hints_of_one_rank_is_an_error();
  a_path_missing_on_one_rank_is_an_error();
  a_table_without_place_on_one_rank_is_an_error();
  the_chosen_method_exchanges();
  methods_that_are_off_are_passed_over();
  what_one_rank_lacks_no_rank_uses();
  descriptions_fit_their_buffer();
  every_broken_table_is_refused(directory);
  files_that_cannot_be_read_are_refused();
  table_file_end();
  return test_end();
}
