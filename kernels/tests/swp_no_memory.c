/*
 * Memory that runs out on one rank at the k-th allocation, for every k: an error of all ranks that plan, and
 * nothing is leaked.
 */
#include "allocate.h"
#include "nodes.h"
#include "objects.h"
#include "oracle.h"
#include "table.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

static int rank, procs;
static bool with_fields;

static int plan_operation(enum swp_operation operation, const char *method,
                          const struct swp_exchange *problem, swp_plan **plan) {
  if (with_fields)
    return swp_fields_plan(MPI_COMM_WORLD, problem, FIELDS, field_bytes, method, &oracle_hints, plan);
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
    test_case("%s%s, %d ranks a node, allocation %d fails on rank %d", method,
              with_fields ? " of fields" : "", oracle_hints.ppn, k, culprit);
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

/* Once more on two nodes where that makes a difference. Of two ranks none share memory then. */
static void every_method_survives_no_memory(int culprit) {
  for (int operation = SWP_EXCHANGE; operation <= SWP_DISCOVERY; operation++) {
    char *specs = all_specs(operation, procs);
    for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " ")) {
      const bool is_shared = operation == SWP_EXCHANGE && strcmp(spec, "shared") == 0;
      if (procs == 1 && is_shared)
        continue; /* as it needs a message to another rank */
      if (!needs_nodes(spec))
        planning_survives_no_memory(operation, spec, culprit);
      if (procs < (is_shared ? 3 : 2) || (!is_shared && strncmp(spec, "nap", 3) != 0))
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

/* In a discovery that forwards, a rank without memory, and those that its notice reaches, fail; others have
   all their messages. */
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

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_no_memory");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  every_method_survives_no_memory(procs / 2);
  with_fields = true;
  planning_survives_no_memory(SWP_EXCHANGE, "direct", procs / 2);
  with_fields = false;
  an_estimate_survives_no_memory(procs / 2);
  a_discovery_survives_no_memory();
  for (int ppn = 1; procs > 1 && ppn <= procs; ppn++)
    nobody_waits_for_a_rank_without_memory("nap", ppn, ppn % procs);
  if (procs > 1 && procs <= 4)
    nobody_waits_for_a_rank_without_memory(procs == 2 ? "stfw:grid=2" : "stfw:grid=2x2", procs, procs - 1);
  return test_end();
}
