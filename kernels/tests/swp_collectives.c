/*
 * Every registered collective method against MPI's own functions, by random calls.
 * Usage: swp_collectives [--brief] [--all] [--ppn N [--cyclic]] [--only] [OPERATION:SPEC]...
 *   --brief  fewer calls, for runs under slow tools
 *   --all    every variant of a method at every operation, and no memory at every number of ranks
 *   --ppn    virtual nodes of N ranks; --cyclic deals the ranks to them in turn
 *   --only   the specs named here, not those that the library proposes
 */
#include "allocate.h"
#include "calls.h"
#include "sharing.h"
#include "table_file.h"
#include "testing.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BURST = 8, SMALL_UNITS = 12, LARGE_UNITS = 5000, MOST_NAMED = 64, TABLE_BYTES = 1 << 16 };
enum { MOST_SPECS = 512, VARIANTS = 2, FEW_PROCS = 5 };

static int rank, procs;
static bool brief, every_variant;
static int executed; /* later calls of the method that is checked */
static struct swp_hints hints = SWP_HINTS_DEFAULT;

/* All ranks must use one method, and what they use may only be communicated by MPI itself. */
static void expect_one_method(MPI_Comm comm, const swp_plan *plan) {
  char mine[256] = "", first[256];
  snprintf(mine, sizeof mine, "%s", swp_plan_method(plan));
  memcpy(first, mine, sizeof first);
  MPI_Bcast(first, (int)sizeof first, MPI_CHAR, 0, comm);
  EXPECT(strcmp(mine, first) == 0, "rank 0 uses %s, this rank %s", first, mine);
}

/* Gives the plan a call, and executes it, which allocates nothing. False when the method cannot do it. */
static bool execute(MPI_Comm comm, swp_plan *plan, struct test_call *call) {
  int error = swp_collective_set(plan, &call->given.problem);
  if (error == SWP_ERR_NOT_APPLICABLE)
    return false;
  EXPECT_ERROR(error, SWP_SUCCESS);
  long allocated = swp_allocate_count();
  call->entered_s = call_clock_s();
  EXPECT_ERROR(swp_collective_execute(plan, call->given.send, call->given.recv), SWP_SUCCESS);
  call->left_s = call_clock_s();
  executed++;
  EXPECT_EQUAL(swp_allocate_count() - allocated, 0);
  (void)comm;
  return error == SWP_SUCCESS;
}

/* Calls back to back, ranks drifting apart, and then what MPI says to all of them. */
static void check_burst(MPI_Comm comm, swp_plan *plan, enum swp_operation operation, uint64_t seed,
                        int most_units, enum call_range range) {
  struct test_call calls[BURST];
  bool done[BURST];
  for (int i = 0; i < BURST; i++)
    calls[i] = call_make(comm, operation, mix(seed, (uint64_t)i, 20, 0), most_units, range);
  for (int i = 0; i < BURST; i++) {
    if (mix(seed, (uint64_t)rank, (uint64_t)i, 21) % 16 == 0)
      usleep(300);
    done[i] = execute(comm, plan, &calls[i]);
  }
  expect_one_method(comm, plan);
  for (int i = 0; i < BURST; i++) {
    if (done[i])
      call_check(&calls[i], comm);
    call_free(&calls[i]);
  }
}

static bool is_algorithm(const char *method) {
  static const char prefix[] = "vendor:algorithm=";
  return strncmp(method, prefix, sizeof prefix - 1) == 0;
}

static bool reduces(enum swp_operation operation) {
  return operation == SWP_REDUCE || operation == SWP_ALLREDUCE || operation == SWP_REDUCE_SCATTER_BLOCK;
}

/* The library's algorithms get what is moved as bytes, and what is reduced as it is. */
static enum call_range range_of(enum swp_operation operation, const char *method) {
  bool plain = strcmp(method, "vendor") == 0 || strcmp(method, "auto") == 0;
  return plain || (is_algorithm(method) && reduces(operation)) ? CALL_TAME : CALL_ANY;
}

/* Operands in the order of the ranks, in place too, which few random calls ask for. */
static void check_order(MPI_Comm comm, swp_plan *plan, enum swp_operation operation, enum call_range range) {
  enum { CALLS = 4 };
  uint64_t seed = 0;
  for (int i = 0; i < CALLS; i++) {
    seed = call_ordered_seed(seed + 1, operation, SMALL_UNITS, range, i % 2 == 1);
    struct test_call call = call_make(comm, operation, seed, SMALL_UNITS, range);
    if (execute(comm, plan, &call))
      call_check(&call, comm);
    call_free(&call);
  }
}

/* Returns whether the ranks, or their nodes, have no place for a method, whatever it is called with. */
static bool is_of_ranks(const char *refusal) {
  static const char *const reasons[] = {"all ranks are on one node",
                                        "nodes have different numbers of ranks",
                                        "several nodes of several ranks",
                                        "each rank is on a node of its own",
                                        "on several nodes, which share no memory",
                                        "do not divide the ranks of a node",
                                        "the number of ranks is no power of two",
                                        "it is only for two processes"};
  bool is = false;
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
    is = is || strstr(refusal, reasons[i]) != NULL;
  return is;
}

/* One plan for all calls, which begins with one of its own. False where the method cannot do that. */
static bool check_method(MPI_Comm comm, enum swp_operation operation, const char *method) {
  enum call_range range = range_of(operation, method);
  swp_plan *plan = NULL;
  struct test_call first = call_make(comm, operation, 1, SMALL_UNITS, range);
  test_case("%s %s, %s", swp_operation_name(operation), method,
            hints.table != NULL ? "of a table" : "on its own");
  int error = test_agreed(comm, swp_collective_plan(comm, &first.given.problem, method, &hints, &plan));
  EXPECT(error == SWP_SUCCESS || (error == SWP_ERR_NOT_APPLICABLE && is_of_ranks(swp_error_message())),
         "error %d: %s", error, swp_error_message());
  executed = 0;
  if (error == SWP_SUCCESS) {
    EXPECT_ERROR(swp_collective_execute(plan, first.given.send, first.given.recv), SWP_SUCCESS);
    call_check(&first, comm);
    for (int burst = 0; burst < (brief ? 1 : 3); burst++)
      check_burst(comm, plan, operation, 10 + (uint64_t)burst, burst == 2 ? LARGE_UNITS : SMALL_UNITS, range);
    if (reduces(operation))
      check_order(comm, plan, operation, range);
    EXPECT(executed > 0, "all later calls were refused: %s", swp_error_message());
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
  EXPECT(plan == NULL, "the plan is not NULL");
  call_free(&first);
  return error == SWP_SUCCESS;
}

/* ---- Selection among all methods ---- */

/* A table in which every spec of the operation has the bytes of its own, over and over. */
static void write_rules(enum swp_operation operation, char *text, size_t length) {
  char *specs = all_specs(operation, procs);
  int64_t low = 0;
  size_t used = (size_t)snprintf(text, length, "switchpoint-table 1\n");
  for (int turn = 0; turn < 4; turn++) {
    char *copy = test_allocate(strlen(specs) + 1), *rest = strcpy(copy, specs);
    for (char *spec; (spec = strtok_r(rest, " ", &rest)) != NULL && used < length - 256;) {
      int64_t high = low + 40 + low / 8;
      used += (size_t)snprintf(text + used, length - used, "rule op=%s bytes=%lld:%lld method=%s\n",
                               swp_operation_name(operation), (long long)low, (long long)high, spec);
      low = high + 1;
    }
    free(copy);
  }
  free(specs);
}

static void check_selection(enum swp_operation operation) {
  char *text = test_allocate(TABLE_BYTES);
  write_rules(operation, text, TABLE_BYTES);
  swp_table *table = table_file_make(text);
  hints.table = table;
  check_method(MPI_COMM_WORLD, operation, "auto");
  hints.table = NULL;
  swp_table_free(&table);
  free(text);
}

static void expect_choice(swp_plan *plan, struct swp_collective *problem, int bytes, const char *method,
                          const char *words) {
  char text[512];
  problem->recv_count = bytes;
  EXPECT_ERROR(swp_collective_set(plan, problem), SWP_SUCCESS);
  EXPECT(strcmp(swp_plan_method(plan), method) == 0, "%d bytes: %s, expected %s", bytes,
         swp_plan_method(plan), method);
  EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
  EXPECT(strstr(text, words) != NULL, "'%s' does not say '%s'", text, words);
}

/* First match wins, both ends belong to a range, and the default fills the gaps. */
static void rules_are_found_by_bytes(void) {
  swp_plan *plan = NULL;
  struct swp_collective problem = {.operation = SWP_BCAST, .recv_count = 3, .recv_type = MPI_BYTE};
  swp_table *table = table_file_make("switchpoint-table 1\n"
                                     "rule op=bcast nodes=99 method=binomial\n"
                                     "rule op=bcast bytes=100:200 method=binomial\n"
                                     "rule op=bcast bytes=150:300 method=vendor\n"
                                     "rule op=reduce method=binomial\n"
                                     "rule op=bcast bytes=400 method=binomial\n"
                                     "rule op=bcast bytes=1000:* method=binomial\n");
  test_case("choices by bytes");
  hints.table = table;
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problem, NULL, &hints, &plan), SWP_SUCCESS);
  hints.table = NULL;
  swp_table_free(&table); /* the plan must not need it any more */
  expect_choice(plan, &problem, 0, "vendor", "default");
  expect_choice(plan, &problem, 99, "vendor", "default");
  expect_choice(plan, &problem, 100, "binomial", ":3");
  expect_choice(plan, &problem, 200, "binomial", ":3");
  expect_choice(plan, &problem, 201, "vendor", ":4");
  expect_choice(plan, &problem, 301, "vendor", "default");
  expect_choice(plan, &problem, 400, "binomial", ":6");
  expect_choice(plan, &problem, 401, "vendor", "default");
  expect_choice(plan, &problem, 1000, "binomial", ":7");
  expect_choice(plan, &problem, 1 << 30, "binomial", ":7");
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* Blocks that MPI's int cannot count together are left to others; the plan stays as it was. */
static void blocks_over_two_gib_are_not_forwarded(void) {
  swp_plan *plan = NULL;
  int mine = rank, *all = test_allocate((size_t)procs * sizeof *all);
  struct swp_collective problem = {SWP_GATHER, 1, MPI_INT, 1, MPI_INT, .op = MPI_OP_NULL};
  struct swp_collective large = {SWP_GATHER, 1 << 29, MPI_INT, 1 << 29, MPI_INT, .op = MPI_OP_NULL};
  test_case("blocks over 2 GiB");
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problem, "binomial", NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_collective_set(plan, &large), SWP_ERR_NOT_APPLICABLE);
  EXPECT_ERROR(swp_collective_execute(plan, &mine, all), SWP_SUCCESS);
  for (int i = 0; rank == 0 && i < procs; i++)
    EXPECT_EQUAL(all[i], i);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  free(all);
}

/* MPICH 4.0.2 packs a part only of items of types made when there are some 500 others. */
static void items_of_the_last_of_many_types_are_packed_whole(void) {
  enum { TYPES = 600, ITEM = 5 };
  MPI_Datatype types[TYPES];
  char own[ITEM], *all = test_allocate((size_t)procs * ITEM);
  swp_plan *plan = NULL;
  test_case("many types");
  for (int i = 0; i < TYPES; i++) {
    MPI_Type_contiguous(ITEM, MPI_CHAR, &types[i]);
    MPI_Type_commit(&types[i]);
  }
  struct swp_collective problem = {SWP_ALLGATHER,    1, types[TYPES - 1], 1, types[TYPES - 1],
                                   .op = MPI_OP_NULL};
  memset(own, rank + 1, sizeof own);
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problem, "bruck", NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_collective_execute(plan, own, all), SWP_SUCCESS);
  for (int i = 0; i < procs * ITEM; i++)
    EXPECT_EQUAL(all[i], i / ITEM + 1);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  for (int i = 0; i < TYPES; i++)
    MPI_Type_free(&types[i]);
  free(all);
}

struct mixed {
  int number;
  double real;
  char letters[3];
};

/* MPICH 4.0.2 truncates what was packed where it is received into such types. */
static void blocks_of_several_basic_types_arrive_whole(enum swp_operation operation, const char *method,
                                                       int root) {
  enum { ITEMS = 700, MEMBERS = 3 };
  const MPI_Datatype members[MEMBERS] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  const MPI_Aint places[MEMBERS] = {offsetof(struct mixed, number), offsetof(struct mixed, real),
                                    offsetof(struct mixed, letters)};
  MPI_Datatype with_gaps, type;
  MPI_Type_create_struct(MEMBERS, (const int[]){1, 1, MEMBERS}, places, members, &with_gaps);
  MPI_Type_create_resized(with_gaps, 0, sizeof(struct mixed), &type);
  MPI_Type_commit(&type);
  struct mixed *send = test_allocate((size_t)procs * ITEMS * sizeof *send);
  struct mixed *recv = test_allocate((size_t)procs * ITEMS * sizeof *recv);
  struct swp_collective problem = {operation, ITEMS, type, ITEMS, type, .op = MPI_OP_NULL, .root = root};
  swp_plan *plan = NULL;
  const bool in_place = operation == SWP_ALLTOALL;
  const int all = procs * ITEMS, own = operation == SWP_GATHER ? ITEMS : in_place ? all : 0;
  test_case("%s of mixed items, root %d", swp_operation_name(operation), root);
  for (int i = 0; i < all; i++)
    (in_place ? recv : send)[i] = (struct mixed){.number = rank * own + i, .letters = {0, 0, 5}};
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_collective_execute(plan, in_place ? MPI_IN_PLACE : send, recv), SWP_SUCCESS);
  const int first = operation == SWP_GATHER ? 0 : rank * ITEMS, from_each = in_place ? all : ITEMS;
  const int received = operation == SWP_SCATTER ? ITEMS : rank == root || in_place ? all : 0;
  for (int i = 0; i < received; i++)
    EXPECT(recv[i].number == first + i / ITEMS * from_each + i % ITEMS && recv[i].letters[2] == 5,
           "item %d has number %d", i, recv[i].number);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  free(recv);
  free(send);
  MPI_Type_free(&with_gaps);
  MPI_Type_free(&type);
}

/* ---- Memory ---- */

/* Every allocation of the planning fails once on one rank; then it succeeds. */
static void planning_survives_no_memory(enum swp_operation operation, const char *method, int culprit) {
  enum { MOST = 200 };
  struct test_call call = call_make(MPI_COMM_WORLD, operation, 3, SMALL_UNITS, CALL_TAME);
  int k, error = SWP_ERR_MEMORY;
  for (k = 1; error == SWP_ERR_MEMORY && k < MOST; k++) {
    swp_plan *plan = NULL;
    test_case("%s %s, allocation %d fails on rank %d", swp_operation_name(operation), method, k, culprit);
    if (rank == culprit)
      swp_allocate_fail_after(k);
    error = swp_collective_plan(MPI_COMM_WORLD, &call.problem, method, &hints, &plan);
    swp_allocate_fail_after(0);
    test_agreed(MPI_COMM_WORLD, error);
    EXPECT((error == SWP_SUCCESS) == (plan != NULL), "error %d, and the plan is %p", error, (void *)plan);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
  EXPECT(error == SWP_SUCCESS || error == SWP_ERR_NOT_APPLICABLE, "error %d: %s", error, swp_error_message());
  call_free(&call);
}

/* ---- Which methods ---- */

static bool same_method(const char *a, const char *b) {
  size_t length = strcspn(a, ":");
  return strncmp(a, b, length) == 0 && strcspn(b, ":") == length && is_algorithm(a) == is_algorithm(b);
}

/* The methods of an operation. Of their variants, which may be many, a few that are others at each operation
   and process count. */
static void check_specs(MPI_Comm comm, enum swp_operation operation, bool without_memory) {
  int count, nspecs = 0, end;
  MPI_Comm_size(comm, &count);
  char *specs = all_specs(operation, count), *rest = specs, *list[MOST_SPECS];
  for (char *spec; nspecs < MOST_SPECS && (spec = strtok_r(rest, " ", &rest)) != NULL;)
    list[nspecs++] = spec;
  for (int begin = 0; begin < nspecs; begin = end) {
    for (end = begin; end < nspecs && same_method(list[begin], list[end]);)
      end++;
    int variants = every_variant || end - begin < VARIANTS ? end - begin : VARIANTS;
    for (int i = 0; i < variants; i++) {
      const char *spec = list[begin + ((int)operation + procs + i) % (end - begin)];
      check_method(comm, operation, spec);
      if (without_memory)
        planning_survives_no_memory(operation, spec, procs - 1);
    }
  }
  free(specs);
}

static void check_operation(enum swp_operation operation, MPI_Comm half) {
  check_specs(MPI_COMM_WORLD, operation, every_variant || procs <= FEW_PROCS);
  check_method(MPI_COMM_WORLD, operation, "auto");
  check_selection(operation);
  if (!brief)
    check_specs(half, operation, false);
}

static void check_all(void) {
  MPI_Comm half; /* two at once, in reverse order */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  for (int operation = SWP_BCAST; swp_operation_name(operation) != NULL; operation++)
    check_operation((enum swp_operation)operation, half);
  MPI_Comm_free(&half);
  rules_are_found_by_bytes();
  blocks_over_two_gib_are_not_forwarded();
  items_of_the_last_of_many_types_are_packed_whole();
  for (int root = 0; root < procs; root += procs > 1 ? procs - 1 : 1) {
    blocks_of_several_basic_types_arrive_whole(SWP_GATHER, "binomial", root);
    blocks_of_several_basic_types_arrive_whole(SWP_SCATTER, "binomial", root);
  }
  blocks_of_several_basic_types_arrive_whole(SWP_ALLTOALL, "pairwise", 0);
}

/* A word OPERATION:SPEC of the command line. */
static void check_named(const char *word) {
  for (int operation = SWP_BCAST; swp_operation_name(operation) != NULL; operation++) {
    size_t length = strlen(swp_operation_name(operation));
    if (strncmp(word, swp_operation_name(operation), length) == 0 && word[length] == ':') {
      EXPECT(check_method(MPI_COMM_WORLD, (enum swp_operation)operation, word + length + 1),
             "%s was refused: %s", word, swp_error_message());
      return;
    }
  }
  EXPECT(false, "unknown argument '%s'", word);
}

int main(int argc, char **argv) {
  bool only = false;
  const char *named[MOST_NAMED];
  int nnamed = 0;
  swp_environment_allow();
  test_begin(&argc, &argv, "swp_collectives");
  swp_calls_begin = UINT64_MAX - 3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--brief") == 0)
      brief = true;
    else if (strcmp(argv[i], "--all") == 0)
      every_variant = true;
    else if (strcmp(argv[i], "--only") == 0)
      only = true;
    else if (strcmp(argv[i], "--cyclic") == 0)
      hints.placement = SWP_PLACEMENT_CYCLIC;
    else if (strcmp(argv[i], "--ppn") == 0 && i + 1 < argc)
      hints.ppn = atoi(argv[++i]);
    else if (nnamed < MOST_NAMED)
      named[nnamed++] = argv[i];
  }
  calls_begin();
  table_file_begin();
  if (!only)
    check_all();
  for (int i = 0; i < nnamed; i++)
    check_named(named[i]);
  table_file_end();
  calls_end();
  return test_end();
}
