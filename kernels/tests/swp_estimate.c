/*
 * What the model of a table says of an exchange, a discovery and collectives, for comparison with
 * tuner/models. Usage: swp_estimate TABLE EXCHANGE PPN [SPEC...], EXCHANGE being a text of numbers: bytes of
 * an item, which are those of a collective's block, number of messages, and for each its source, destination,
 * number of items, and their places at the source. Prints a line for every method that the model can
 * estimate: operation, spec, seconds, also for these specs of every collective that can do them; and what
 * auto plans.
 */
#include "algorithms.h"
#include "estimate.h"
#include "kinds.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, procs;

/* The messages of this rank, as it describes them to the library. */
struct lists {
  int64_t item_bytes, nitems;
  int nsends, nrecvs;
  int *send_ranks, *recv_ranks;
  int64_t *send_offsets, *send_items, *recv_offsets;
};

static int64_t next_number(FILE *file) {
  long long number = 0;
  EXPECT(fscanf(file, "%lld", &number) == 1, "the exchange is cut");
  return number;
}

static struct lists read_exchange(const char *path) {
  FILE *file = fopen(path, "r");
  struct lists lists = {0};
  EXPECT(file != NULL, "%s cannot be read", path);
  lists.item_bytes = next_number(file);
  const int64_t nmessages = next_number(file);
  lists.send_ranks = test_allocate((size_t)nmessages * sizeof(int) + 1);
  lists.recv_ranks = test_allocate((size_t)nmessages * sizeof(int) + 1);
  lists.send_offsets = calloc((size_t)nmessages + 1, sizeof(int64_t));
  lists.recv_offsets = calloc((size_t)nmessages + 1, sizeof(int64_t));
  for (int64_t m = 0; m < nmessages; m++) {
    const int source = (int)next_number(file), destination = (int)next_number(file);
    const int64_t count = next_number(file);
    const int64_t begin = lists.send_offsets[lists.nsends];
    if (source == rank) {
      lists.send_ranks[lists.nsends++] = destination;
      lists.send_offsets[lists.nsends] = begin + count;
      lists.send_items = realloc(lists.send_items, (size_t)(begin + count) * sizeof(int64_t));
    }
    if (destination == rank) {
      lists.recv_offsets[lists.nrecvs + 1] = lists.recv_offsets[lists.nrecvs] + count;
      lists.recv_ranks[lists.nrecvs++] = source;
    }
    for (int64_t i = 0; i < count; i++) {
      const int64_t item = next_number(file);
      if (source == rank) {
        lists.send_items[begin + i] = item;
        lists.nitems = item >= lists.nitems ? item + 1 : lists.nitems;
      }
    }
  }
  fclose(file);
  return lists;
}

static void free_lists(struct lists *lists) {
  free(lists->send_ranks);
  free(lists->recv_ranks);
  free(lists->send_offsets);
  free(lists->send_items);
  free(lists->recv_offsets);
}

/* Others are not planned by auto. Algorithms of other MPI libraries have formulas too. */
static bool is_applicable(const swp_plan *plan, const char *text) {
  static const char algorithm[] = "vendor:algorithm=";
  const size_t length = sizeof algorithm - 1;
  struct spec spec;
  if (swp_spec_parse(plan->operation, text, &spec) != SWP_SUCCESS)
    return false;
  if (strncmp(text, algorithm, length) == 0 && !swp_algorithm_known(plan->operation, text + length))
    return true;
  return swp_not_applicable(&spec, &plan->features) == NULL;
}

static void print_one(swp_plan *plan, const swp_table *table, const char *spec) {
  double seconds;
  if (!is_applicable(plan, spec))
    return;
  const int error = swp_estimate_seconds(plan, &table->model, spec, &seconds);
  if (error == SWP_ERR_NOT_APPLICABLE)
    return;
  EXPECT_ERROR(error, SWP_SUCCESS);
  if (rank == 0 && seconds >= 0)
    printf("%s %s %.17g\n", swp_operation_name((int)plan->operation), spec, seconds);
}

static void print_all(swp_plan *plan, const swp_table *table) {
  char *specs = all_specs(plan->operation, procs), text[512];
  for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
    print_one(plan, table, spec);
  free(specs);
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  if (rank == 0)
    printf("auto: %s\n", text);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* Blocks, or a vector, of this many bytes. */
static void print_collective(enum swp_operation operation, int bytes, const struct swp_hints *hints,
                             char **specs) {
  swp_plan *plan;
  int *counts = test_allocate(2 * (size_t)procs * sizeof *counts), *displs = counts + procs;
  for (int i = 0; i < procs; i++) {
    counts[i] = bytes;
    displs[i] = i * bytes;
  }
  const struct swp_collective problem = {operation, bytes,    MPI_BYTE, bytes,  MPI_BYTE, counts,
                                         displs,    MPI_BXOR, 0,        counts, displs};
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_collective_plan(MPI_COMM_WORLD, &problem, NULL, hints, &plan)),
               SWP_SUCCESS);
  free(counts);
  for (; *specs != NULL; specs++)
    print_one(plan, hints->table, *specs);
  print_all(plan, hints->table);
}

int main(int argc, char **argv) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  swp_table *table;
  swp_plan *plan;
  test_begin(&argc, &argv, "swp_estimate");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  EXPECT(argc >= 4, "usage: swp_estimate TABLE EXCHANGE PPN [SPEC...]");
  test_case("%s", argv[2]);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_table_read(MPI_COMM_WORLD, argv[1], &table)), SWP_SUCCESS);
  struct lists lists = read_exchange(argv[2]);
  const struct swp_exchange exchange = {lists.item_bytes, lists.nitems,       lists.nsends,
                                        lists.send_ranks, lists.send_offsets, lists.send_items,
                                        lists.nrecvs,     lists.recv_ranks,   lists.recv_offsets};
  hints.ppn = atoi(argv[3]);
  hints.table = table;
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_exchange_plan(MPI_COMM_WORLD, &exchange, NULL, &hints, &plan)),
               SWP_SUCCESS);
  struct swp_statistics problem;
  swp_plan_statistics(plan, &problem, NULL);
  print_all(plan, table);
  hints.degree = problem.mmax;
  hints.bytes = problem.mmax > 0 ? (int64_t)(problem.vavg_bytes / problem.mavg) : 0;
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_discovery_plan(MPI_COMM_WORLD, NULL, &hints, &plan)),
               SWP_SUCCESS);
  print_all(plan, table);
  for (int operation = SWP_BCAST; swp_operation_name(operation) != NULL; operation++)
    print_collective((enum swp_operation)operation, (int)lists.item_bytes, &hints, argv + 4);
  swp_table_free(&table);
  free_lists(&lists);
  return test_end();
}
