/* Selectors, by which the preload chooses methods: what they find in a table, and plans by their choices. */
#include "table_file.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int procs;

/* The preload reports what is passed over. */
static void a_selector_passes_over_what_is_off(void) {
  const struct swp_layout layout = {procs, 1, procs, 1};
  const struct swp_facts facts = {64, 64, 64, 0, MPI_OP_NULL};
  swp_table *table;
  swp_selector *selector = NULL;
  table_file_write("switchpoint-table 1\nrule op=bcast method=binomial\nrule op=bcast method=chain\n");
  for (int off = 0; off < 3; off++) {
    static const char *const lists[] = {"nbx", "binomial", "binomial chain"};
    static const char *const expected[] = {"binomial", "chain", NULL};
    test_case("%s of collectives off", lists[off]);
    setenv("SWITCHPOINT_OFF", lists[off], 1);
    EXPECT_ERROR(table_file_read(&table), SWP_SUCCESS);
    EXPECT_ERROR(swp_selector_create(table, SWP_BCAST, &layout, &selector), SWP_SUCCESS);
    EXPECT(selector != NULL, "there is no selector");
    EXPECT_EQUAL(swp_selector_asks(selector, 64), expected[off] != NULL);
    if (procs > 1) {
      const char *found = swp_selector_find(selector, &facts), *why = "";
      EXPECT((found == NULL) == (expected[off] == NULL) && (!found || strcmp(found, expected[off]) == 0),
             "%s is selected", found ? found : "nothing");
      const char *passed = swp_selector_passed(selector, &facts, &why);
      EXPECT((passed != NULL) == (off > 0) && (!passed || strcmp(passed, "binomial") == 0),
             "%s is passed over", passed ? passed : "nothing");
      EXPECT(!passed || strcmp(why, "off at this site, by SWITCHPOINT_OFF") == 0, "because '%s'", why);
    }
    swp_selector_free(&selector);
    swp_table_free(&table);
  }
  unsetenv("SWITCHPOINT_OFF");
}

static struct swp_choice choose(const swp_selector *selector, int64_t bytes) {
  struct swp_choice choice;
  swp_selector_choose(selector, &(struct swp_facts){bytes, bytes, bytes, 0, MPI_OP_NULL}, &choice);
  return choice;
}

/* The plan goes by the choice for so many bytes, and says by which line of the table (0: the default). */
static void expect_set(swp_plan *plan, const swp_selector *selector, int bytes, const char *method,
                       int line) {
  const struct swp_choice choice = choose(selector, bytes);
  char text[PATH_BYTES + 256], words[PATH_BYTES + 16] = "default";
  if (line > 0)
    snprintf(words, sizeof words, "rule %s:%d", table_path, line);
  EXPECT_ERROR(
      swp_selector_set(plan, &(struct swp_collective){SWP_BCAST, .recv_count = bytes, .recv_type = MPI_BYTE},
                       &choice),
      SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), method) == 0 && strstr(text, words) != NULL, "%s is chosen, not %s",
         text, method);
}

static void a_plan_goes_by_the_choices_of_a_selector(void) {
  const struct swp_layout layout = {procs, 1, procs, 1};
  const struct swp_collective bcast = {.operation = SWP_BCAST, .recv_count = 9, .recv_type = MPI_BYTE};
  struct swp_choice choice;
  swp_selector *selector = NULL, *other = NULL;
  swp_plan *plan = NULL;
  const int64_t *changes;
  test_case("a selector's plan");
  swp_table *table =
      table_file_make("switchpoint-table 1\nrule op=bcast bytes=8:15 method=chain\n"
                      "rule op=bcast bytes=32:* method=binomial\nrule op=gather method=binomial\n");
  EXPECT_ERROR(swp_selector_create(table, SWP_BCAST, &layout, &selector), SWP_SUCCESS);
  EXPECT_ERROR(swp_selector_create(table, SWP_GATHER, &layout, &other), SWP_SUCCESS);
  EXPECT_EQUAL(swp_selector_changes(selector, &changes), 3);
  EXPECT(changes[0] == 8 && changes[1] == 16 && changes[2] == 32, "the changes are %d, %d, %d",
         (int)changes[0], (int)changes[1], (int)changes[2]);
  setenv("SWITCHPOINT_USER_TABLE", ".", 1); /* an error for who reads it */
  choice = choose(selector, 9);
  EXPECT_ERROR(swp_selector_plan(MPI_COMM_WORLD, &bcast, selector, &choice, NULL, &plan), SWP_SUCCESS);
  expect_set(plan, selector, 9, "chain", 2);
  expect_set(plan, selector, 20, "vendor", 0);
  expect_set(plan, selector, 40, "binomial", 3);
  choice = choose(other, 9);
  EXPECT_ERROR(swp_selector_set(plan, &bcast, &choice), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_selector_set(plan, &bcast, NULL), SWP_ERR_ARGUMENT);
  choice = choose(selector, 9);
  choice.passed_index = 1000;
  EXPECT_ERROR(swp_selector_set(plan, &bcast, &choice), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &bcast, "binomial", NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_selector_set(plan, &bcast, &(struct swp_choice){0}), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_selector_plan(MPI_COMM_WORLD, &bcast, other, &choice, NULL, &plan), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_selector_plan(MPI_COMM_WORLD, &bcast, NULL, NULL, NULL, &plan), SWP_ERR_ARGUMENT);
  EXPECT(plan == NULL, "a plan was made");
  unsetenv("SWITCHPOINT_USER_TABLE");
  swp_selector_free(&selector);
  swp_selector_free(&other);
  swp_table_free(&table);
}

/* The ranks agreed on the bytes for which the plan has memory. */
static void larger_blocks_than_planned_are_refused(void) {
  enum { MANY = 1000 };
  const struct swp_layout layout = {procs, 1, procs, 1};
  int *ones = test_allocate(3 * (size_t)procs * sizeof *ones), *many = ones + procs, *displs = many + procs;
  struct swp_collective planned = test_alltoallv(MPI_INT, ones, displs), larger = planned;
  struct swp_choice choice;
  swp_selector *selector = NULL;
  swp_plan *plan = NULL;
  test_case("larger blocks than planned");
  for (int i = 0; i < procs; i++) {
    ones[i] = 1;
    many[i] = MANY;
    displs[i] = MANY * i;
  }
  const int64_t bytes = (int64_t)sizeof(int), total = procs * bytes;
  swp_table *table = table_file_make("switchpoint-table 1\nrule op=alltoallv method=bruck\n");
  EXPECT_ERROR(swp_selector_create(table, SWP_ALLTOALLV, &layout, &selector), SWP_SUCCESS);
  swp_selector_choose(selector, &(struct swp_facts){bytes, total, bytes, 0, MPI_OP_NULL}, &choice);
  EXPECT_ERROR(swp_selector_plan(MPI_COMM_WORLD, &planned, selector, &choice, NULL, &plan), SWP_SUCCESS);
  larger.send_counts = larger.recv_counts = many;
  EXPECT_ERROR(swp_selector_set(plan, &larger, &choice), SWP_ERR_ARGUMENT);
  larger.recv_counts = ones; /* what is sent alone */
  EXPECT_ERROR(swp_selector_set(plan, &larger, &choice), SWP_ERR_ARGUMENT);
  EXPECT(strstr(swp_error_message(), "of up to 4000 bytes") != NULL, "'%s'", swp_error_message());
  EXPECT_ERROR(swp_selector_set(plan, &planned, &choice), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  swp_selector_free(&selector);
  swp_table_free(&table);
  free(ones);
}

static void wrong_selectors_are_refused(void) {
  static const struct swp_layout wrong[] = {{0, 1, 1, 1}, {4, 0, 4, 1}, {4, 1, 0, 1}, {-4, -1, -4, 1}};
  static const int none[] = {-1, SWP_EXCHANGE, SWP_DISCOVERY, 1000};
  const struct swp_layout layout = {procs, 1, procs, 1};
  swp_selector *selector = NULL;
  test_case("wrong selectors");
  swp_table *table = table_file_make("switchpoint-table 1\nrule op=allgather method=twolevel\n");
  EXPECT_ERROR(swp_selector_create(table, SWP_ALLGATHER, NULL, &selector), SWP_ERR_ARGUMENT);
  for (int i = 0; i < 4; i++) {
    EXPECT_ERROR(swp_selector_create(table, SWP_ALLGATHER, &wrong[i], &selector), SWP_ERR_ARGUMENT);
    EXPECT_ERROR(swp_selector_create(table, (enum swp_operation)none[i], &layout, &selector),
                 SWP_ERR_ARGUMENT);
    EXPECT(selector == NULL, "a selector was made");
  }
  swp_table_free(&table);
}

/* The ranks are on one node, unless the hints say otherwise. */
/* Plans by a selector for a layout, whose table has a rule. */
static int plan_by_selector_of(const struct swp_layout *layout, MPI_Comm comm,
                               const struct swp_hints *hints) {
  const struct swp_collective bcast = {.operation = SWP_BCAST, .recv_count = 9, .recv_type = MPI_BYTE};
  swp_selector *selector = NULL;
  swp_plan *plan = NULL;
  swp_table *table = table_file_make("switchpoint-table 1\nrule op=bcast method=binomial\n");
  EXPECT_ERROR(swp_selector_create(table, SWP_BCAST, layout, &selector), SWP_SUCCESS);
  const struct swp_choice choice = choose(selector, 9);
  const int error = swp_selector_plan(comm, &bcast, selector, &choice, hints, &plan);
  EXPECT((plan != NULL) == (error == SWP_SUCCESS), "a plan was made, or not");
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  swp_selector_free(&selector);
  swp_table_free(&table);
  return error;
}

static void selectors_of_other_layouts_are_refused(void) {
  const struct swp_layout apart = {procs, procs, 1, 1}; /* each rank on a node of its own */
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  if (procs == 1)
    return;
  test_case("a selector of another layout");
  EXPECT_ERROR(plan_by_selector_of(&apart, MPI_COMM_WORLD, NULL), SWP_ERR_ARGUMENT);
  hints.ppn = 1;
  EXPECT_ERROR(plan_by_selector_of(&apart, MPI_COMM_WORLD, &hints), SWP_SUCCESS);
}

static void selectors_of_a_whole_job_are_refused_in_a_part(void) {
  const struct swp_layout alone = {1, 1, 1, 1};
  if (procs == 1)
    return;
  test_case("a selector of a whole job");
  EXPECT_ERROR(plan_by_selector_of(&alone, MPI_COMM_SELF, NULL), SWP_ERR_ARGUMENT);
}

/* A choice by a predefined operation does not hold where the type is none that MPI defines. */
static void a_sum_of_a_derived_type_is_not_for_boards(void) {
  const struct swp_layout layout = {procs, 1, procs, 1};
  const struct swp_facts facts = {40000, 40000, 40000, 0, MPI_SUM};
  const struct swp_collective good = {
      .operation = SWP_ALLREDUCE, .recv_count = 5000, .recv_type = MPI_DOUBLE, .op = MPI_SUM};
  struct swp_collective sum = {.operation = SWP_ALLREDUCE, .recv_count = 1, .op = MPI_SUM};
  struct swp_choice choice;
  swp_selector *selector = NULL;
  swp_plan *plan = NULL;
  if (SWP_SIMULATED)
    return;
  test_case("a selector's plan for a derived type");
  MPI_Type_contiguous(5000, MPI_DOUBLE, &sum.recv_type);
  MPI_Type_commit(&sum.recv_type);
  swp_table *table = table_file_make("switchpoint-table 1\nrule op=allreduce method=shared\n");
  EXPECT_ERROR(swp_selector_create(table, SWP_ALLREDUCE, &layout, &selector), SWP_SUCCESS);
  swp_selector_choose(selector, &facts, &choice);
  EXPECT_ERROR(swp_selector_plan(MPI_COMM_WORLD, &good, selector, &choice, NULL, &plan), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), "shared") == 0, "the method is %s", swp_plan_method(plan));
  EXPECT_ERROR(swp_selector_set(plan, &sum, &choice), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), "vendor") == 0, "the method is %s", swp_plan_method(plan));
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Type_free(&sum.recv_type);
  swp_selector_free(&selector);
  swp_table_free(&table);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_selector");
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  unsetenv("SWITCHPOINT_TABLE");
  table_file_begin();
  a_selector_passes_over_what_is_off();
  a_plan_goes_by_the_choices_of_a_selector();
  larger_blocks_than_planned_are_refused();
  wrong_selectors_are_refused();
  selectors_of_other_layouts_are_refused();
  selectors_of_a_whole_job_are_refused_in_a_part();
  a_sum_of_a_derived_type_is_not_for_boards();
  table_file_end();
  return test_end();
}
