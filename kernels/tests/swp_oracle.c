/*
 * Every registered method, and the specs named on the command line, against an oracle.
 * Usage: swp_oracle [OPTION]... [exchange:SPEC | discovery:SPEC]...
 *   --brief   fewer item sizes and back-to-back calls, for runs under slow tools
 *   --long    many more back-to-back calls
 *   --only    the specs named here, not those that the library proposes
 *   --ppn     virtual nodes of N ranks; --cyclic deals the ranks to them in turn
 *   --scatter the machine seems to have N nodes, with ranks on them in no order
 */
#include "nodes.h"
#include "oracle.h"
#include "scatter.h"
#include "sharing.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t item_sizes[] = {8, 1, 3, 24, 4096};
enum { SIZES = sizeof item_sizes / sizeof item_sizes[0], ALL_SIZES_TO = 3, MOST_SPECS = 128 };

static bool brief;
static double seconds = 0.02; /* about so long do the back-to-back calls of a method go on */

struct specs {
  int count;
  const char *list[MOST_SPECS];
  char *words; /* storage of those that the library proposes */
};

/* Adds all methods, but on several nodes not those that need memory of all. */
static void add_words(struct specs *specs, enum swp_operation operation, bool sharing) {
  for (char *word = strtok(specs->words, " "); word != NULL && specs->count < MOST_SPECS;
       word = strtok(NULL, " "))
    if (sharing || !needs_one_node(operation, word))
      specs->list[specs->count++] = word;
}

/* The checks that need no more than a method and a communicator. Up to three ranks every family meets every
   item size; above, where ranks share cores, one each, and fields. */
static void check_families(MPI_Comm comm, enum swp_operation operation, const char *method) {
  int procs;
  MPI_Comm_size(comm, &procs);
  for (int family = 0; family < nfamilies; family++)
    for (int size = 0; size < (procs <= ALL_SIZES_TO && !brief ? SIZES : 1); size++) {
      int64_t bytes = item_sizes[(family + size) % SIZES];
      if (operation == SWP_EXCHANGE)
        check_exchange(comm, method, &families[family], bytes);
      else
        check_discovery(comm, method, &families[family], bytes);
    }
  for (int family = 0; operation == SWP_EXCHANGE && family < nfamilies; family++)
    check_exchange(comm, method, &families[family], FUSED);
}

static void check_method(enum swp_operation operation, const char *method) {
  check_families(MPI_COMM_WORLD, operation, method);
  if (operation == SWP_EXCHANGE) {
    check_exchange(MPI_COMM_WORLD, method, &large_family, 4096);
    check_exchange_repeated(MPI_COMM_WORLD, method, seconds);
    for (int family = 0; family < nfamilies; family += 4)
      check_exchange_crossing(MPI_COMM_WORLD, method, &families[family]);
  } else {
    check_discovery(MPI_COMM_WORLD, method, &large_family, 4096);
    check_discovery_repeated(MPI_COMM_WORLD, method, seconds);
  }
}

static void check_one(MPI_Comm comm, enum swp_operation operation, const char *method,
                      const struct family *family) {
  if (operation == SWP_EXCHANGE)
    check_exchange(comm, method, family, 24);
  else
    check_discovery(comm, method, family, 24);
}

/* Open MPI 4 may confuse the windows of the halves. */
static bool is_refused(MPI_Comm half, const char *method) {
#if defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION < 5
  const bool has_window =
      strcmp(method, "rsx") == 0 || strcmp(method, "put") == 0 || strstr(method, "find=put") != NULL;
  if (has_window && !ranks_share_memory(half)) {
    swp_plan *plan;
    test_case("%s on a half of the ranks, across nodes", method);
    EXPECT_ERROR(swp_discovery_plan(half, method, NULL, &plan), SWP_ERR_NOT_APPLICABLE);
    return true;
  }
#endif
  (void)half, (void)method;
  return false;
}

/* All methods again where ranks are not those of MPI_COMM_WORLD: two halves at once, in reverse order. */
static void check_halves(void) {
  int rank, procs;
  MPI_Comm half;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_size(half, &procs);
  bool sharing = ranks_share_memory(MPI_COMM_WORLD);
  for (int operation = SWP_EXCHANGE; operation <= SWP_DISCOVERY; operation++) {
    struct specs specs = {.words = all_specs(operation, procs)};
    add_words(&specs, operation, sharing);
    for (int i = 0; i < specs.count; i++)
      if (!is_refused(half, specs.list[i]))
        check_one(half, operation, specs.list[i], &families[i % 5]);
    free(specs.words);
  }
  MPI_Comm_free(&half);
}

/* Each method beside the next two, and twice beside the next: two exchanges that forward need each other's
   progress. Then two in other orders. */
static void check_outstanding(const struct specs *specs) {
  int procs;
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  const bool few = procs <= ALL_SIZES_TO;
  for (int i = 0; i < specs->count; i++)
    for (int twice = 0; twice < 2; twice++) {
      const char *three[3];
      for (int k = 0; k < 3; k++)
        three[k] = specs->list[(i + (twice ? k / 2 : k)) % specs->count];
      check_exchange_outstanding(MPI_COMM_WORLD, three);
      if (few) /* more ranks take turns on cores */
        check_exchange_orders(MPI_COMM_WORLD, &three[twice ? 0 : 1], !brief);
    }
}

/* One option; gives how many words it took, 0 when it is none. */
static int take_option(int argc, char **argv, bool *only) {
  if (strcmp(argv[0], "--brief") == 0)
    brief = true, seconds = 0;
  else if (strcmp(argv[0], "--long") == 0)
    seconds = 0.5;
  else if (strcmp(argv[0], "--only") == 0)
    *only = true;
  else if (strcmp(argv[0], "--cyclic") == 0)
    oracle_hints.placement = SWP_PLACEMENT_CYCLIC;
  else if (argc > 1 && strcmp(argv[0], "--ppn") == 0)
    oracle_hints.ppn = atoi(argv[1]);
  else if (argc > 1 && strcmp(argv[0], "--scatter") == 0)
    scatter_nodes(atoi(argv[1]));
  else
    return 0;
  return strcmp(argv[0], "--ppn") == 0 || strcmp(argv[0], "--scatter") == 0 ? 2 : 1;
}

/* The specs that the library proposes, unless an option forbids it, and those of the command line. */
static void gather_specs(int argc, char **argv, struct specs specs[2]) {
  static const char *const prefixes[] = {"exchange:", "discovery:"};
  bool only = false;
  for (int i = 1, words; i < argc; i += words) {
    words = take_option(argc - i, argv + i, &only);
    if (words == 0) {
      words = 1;
      int operation = strncmp(argv[i], prefixes[SWP_DISCOVERY], strlen(prefixes[SWP_DISCOVERY])) == 0;
      size_t length = strlen(prefixes[operation]);
      EXPECT(strncmp(argv[i], prefixes[operation], length) == 0, "unknown argument '%s'", argv[i]);
      specs[operation].list[specs[operation].count++] = argv[i] + length;
    }
  }
  int procs;
  bool sharing = ranks_share_memory(MPI_COMM_WORLD);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  for (int operation = SWP_EXCHANGE; operation <= SWP_DISCOVERY && !only; operation++) {
    specs[operation].words = all_specs(operation, procs);
    add_words(&specs[operation], operation, sharing);
    specs[operation].list[specs[operation].count++] = "auto";
  }
}

int main(int argc, char **argv) {
  struct specs specs[2] = {{0}, {0}};
  test_begin(&argc, &argv, "swp_oracle");
  swp_calls_begin = UINT64_MAX - 3;
  gather_specs(argc, argv, specs);
  for (int operation = SWP_EXCHANGE; operation <= SWP_DISCOVERY; operation++)
    for (int i = 0; i < specs[operation].count; i++)
      check_method(operation, specs[operation].list[i]);
  check_outstanding(&specs[SWP_EXCHANGE]);
  for (int i = 0; i < specs[SWP_EXCHANGE].count && specs[SWP_DISCOVERY].count > 0; i++)
    check_discovery_during_exchange(MPI_COMM_WORLD, specs[SWP_EXCHANGE].list[i],
                                    specs[SWP_DISCOVERY].list[i % specs[SWP_DISCOVERY].count]);
  check_halves();
  free(specs[SWP_EXCHANGE].words);
  free(specs[SWP_DISCOVERY].words);
  return test_end();
}
