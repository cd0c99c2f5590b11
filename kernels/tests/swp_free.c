/*
 * A method's free is called once for each call of its plan, on every rank, wherever planning ends. By --wrap
 * the library finds a method whose plan and free count their calls, in place of one that it has; that plan
 * may fail, on one rank, before or after it has a state.
 */
#include "attempt.h"
#include "kinds.h"
#include "table.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

const struct method *__real_swp_method_find(enum swp_operation operation, const char *name, size_t length);
const struct method *__wrap_swp_method_find(enum swp_operation operation, const char *name, size_t length);

double __wrap_MPI_Wtime(void);

enum failing { NOWHERE, WITHOUT_STATE, WITH_STATE, FAILINGS };

static const char *const failings[FAILINGS] = {"nowhere", "without a state", "with a state"};

static int rank, procs;
static const char *replaced = ""; /* the method in whose place the counting one is found */
static enum failing failing;      /* of this rank's plans */
static int plans, frees, half_made;

/* Races are then over after as many rounds on any machine. */
double __wrap_MPI_Wtime(void) {
  static double clock_s;
  return clock_s += 1e-3;
}

static int counting_plan(struct swp_plan *plan) {
  plans++;
  EXPECT(plan->method_state == NULL, "plan is called with a state");
  if (failing == WITHOUT_STATE)
    return swp_fail(SWP_ERR_NOT_APPLICABLE, "no state");
  plan->method_state = swp_plan_allocate(plan, 1, 8);
  if (failing == WITH_STATE)
    return swp_fail(SWP_ERR_NOT_APPLICABLE, "half a state");
  return plan->operation == SWP_EXCHANGE ? swp_plan_stages(plan, 1) : SWP_SUCCESS;
}

static void counting_free(struct swp_plan *plan) {
  frees++;
  half_made += plan->method_state != NULL;
}

const struct method *__wrap_swp_method_find(enum swp_operation operation, const char *name, size_t length) {
  static struct method counting;
  const struct method *method = __real_swp_method_find(operation, name, length);
  if (method == NULL || strcmp(method->name, replaced) != 0)
    return method;
  counting = *method;
  counting.plan = counting_plan;
  counting.free = counting_free;
  return &counting;
}

static int plan_operation(enum swp_operation operation, const char *method, const struct swp_hints *hints,
                          swp_plan **plan) {
  struct attempt attempt;
  const struct swp_collective bcast = {.operation = SWP_BCAST, .recv_count = 4, .recv_type = MPI_INT};
  attempt_make(&attempt);
  if (operation == SWP_EXCHANGE)
    return swp_exchange_plan(MPI_COMM_WORLD, &attempt.problem, method, hints, plan);
  if (operation == SWP_DISCOVERY)
    return swp_discovery_plan(MPI_COMM_WORLD, method, hints, plan);
  return swp_collective_plan(MPI_COMM_WORLD, &bcast, method, hints, plan);
}

/* Plans and frees; the plan is to fail for good, or to be made by another method. */
static void expect_freed(enum swp_operation operation, const char *method, const struct swp_hints *hints,
                         const char *counted, enum failing how, bool fails) {
  swp_plan *plan = NULL;
  const int culprit = procs / 2;
  test_case("%s %s, plans of %s fail %s", swp_operation_name((int)operation), method ? method : "selected",
            counted, failings[how]);
  replaced = counted;
  failing = rank == culprit ? how : NOWHERE;
  plans = frees = half_made = 0;
  int error = test_agreed(MPI_COMM_WORLD, plan_operation(operation, method, hints, &plan));
  EXPECT_ERROR(error, fails ? SWP_ERR_NOT_APPLICABLE : SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  EXPECT(plans > 0, "the method is not planned");
  EXPECT_EQUAL(frees, plans);
  EXPECT_EQUAL(half_made, failing == WITHOUT_STATE ? 0 : plans);
}

static void by_name(void) {
  for (enum failing how = NOWHERE; how < FAILINGS; how++) {
    expect_freed(SWP_EXCHANGE, "alltoallv", NULL, "alltoallv", how, how != NOWHERE);
    expect_freed(SWP_DISCOVERY, "pcx", NULL, "pcx", how, how != NOWHERE);
    expect_freed(SWP_BCAST, "binomial", NULL, "binomial", how, how != NOWHERE);
  }
}

/* A race, an estimate or a collective passes over methods that it cannot plan. */
static void passed_over(void) {
  static const char text[] =
      "switchpoint-table 1\nrule op=bcast method=binomial\n"
      "model message pair=on_node up_to=* alpha_s=1e-6 step_s=1e-6 receive_s=0 per_byte_s=1e-9 "
      "beta_s=1e-9\n"
      "model message pair=off_node up_to=* alpha_s=9e-6 step_s=9e-6 receive_s=0 per_byte_s=1e-9 "
      "beta_s=1e-9\n";
  struct swp_hints racing = SWP_HINTS_DEFAULT, ruled = SWP_HINTS_DEFAULT;
  struct swp_table *table;
  racing.flags = SWP_MEASURE;
  racing.budget_s = 0.2;
  EXPECT_ERROR(swp_table_parse("free", text, sizeof text - 1, &table), SWP_SUCCESS);
  ruled.table = table;
  for (enum failing how = WITHOUT_STATE; how < FAILINGS; how++) {
    expect_freed(SWP_EXCHANGE, NULL, &racing, "alltoallv", how, false);
    expect_freed(SWP_BCAST, NULL, &racing, "binomial", how, false);
    expect_freed(SWP_EXCHANGE, NULL, &ruled, "nap", how, false);
    expect_freed(SWP_BCAST, NULL, &ruled, "binomial", how, false);
  }
  swp_table_free(&table);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_free");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  by_name();
  passed_over();
  return test_end();
}
