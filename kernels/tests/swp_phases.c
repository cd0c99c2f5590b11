/*
 * Which collectives of the MPI library the methods that are made of them call, on how many ranks and of how
 * many bytes, phase by phase, and where asked for which messages they send; and the layouts that are
 * proposed.
 */
#include "phases.h"
#include "testing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 4, BYTES = 24 };

/* ---- Executing ---- */

enum { COUNT = BYTES / sizeof(double) };

static int rank, procs;
static char *send, *recv;
static int *counts, *displs; /* of an allgatherv: 1, 2 ... items by rank */

static void make_buffers(void) {
  size_t room = (size_t)(procs + 2) * (size_t)(procs + 2) * BYTES;
  send = memset(test_allocate(room), 0, room);
  recv = memset(test_allocate(room), 0, room);
  counts = test_allocate((size_t)procs * sizeof(int));
  displs = test_allocate((size_t)procs * sizeof(int));
  for (int i = 0, at = 0; i < procs; at += counts[i++]) {
    counts[i] = i + 1;
    displs[i] = at;
  }
}

static void free_buffers(void) {
  free(send), free(recv), free(counts), free(displs);
}

/* Blocks, or vectors, of so many doubles, in memory as they come. Reductions commute. */
static struct swp_collective problem_of(enum swp_operation operation, int root) {
  return (struct swp_collective){.operation = operation,
                                 .send_count = operation == SWP_ALLGATHERV ? rank + 1 : COUNT,
                                 .send_type = MPI_DOUBLE,
                                 .recv_count = COUNT,
                                 .recv_type = MPI_DOUBLE,
                                 .recv_counts = counts,
                                 .displs = displs,
                                 .op = MPI_SUM,
                                 .root = root};
}

static bool has_root(enum swp_operation operation) {
  return operation <= SWP_REDUCE;
}

static swp_plan *open_plan(enum swp_operation operation, const char *method, const struct swp_hints *hints) {
  struct swp_collective problem = problem_of(operation, 0);
  swp_plan *plan = NULL;
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problem, method, hints, &plan), SWP_SUCCESS);
  return plan;
}

/* Makes the phases. What is delivered is not looked at here. */
static void execute(swp_plan *plan, enum swp_operation operation, int root) {
  struct swp_collective problem = problem_of(operation, root);
  EXPECT_ERROR(swp_collective_set(plan, &problem), SWP_SUCCESS);
  phases_made.count = 0;
  EXPECT_ERROR(swp_collective_execute(plan, send, recv), SWP_SUCCESS);
}

/* ---- Grids ---- */

static const char *const functions[] = {
    [SWP_BCAST] = "Bcast",
    [SWP_GATHER] = "Gather",
    [SWP_SCATTER] = "Scatter",
    [SWP_REDUCE] = "Reduce",
    [SWP_ALLREDUCE] = "Allreduce",
    [SWP_ALLGATHER] = "Allgather",
    [SWP_ALLGATHERV] = "Allgatherv",
    [SWP_ALLTOALL] = "Alltoall",
    [SWP_REDUCE_SCATTER_BLOCK] = "Reduce_scatter_block",
};

/* Blocks in a row of ranks, or of an allgatherv the sum of 1 … by rank. */
static int64_t blocks(enum swp_operation operation, int first, int count) {
  if (operation != SWP_ALLGATHERV)
    return count;
  return (int64_t)count * (2 * first + count + 1) / 2;
}

/* T(p1, m) + T(p2, p1·m) + … of gather and allgather, the same backwards of scatter and reduce_scatter_block,
   T(p1, m) + T(p2, m) + … of bcast (backwards), reduce, allreduce, T(p1, P/p1·m) + … of alltoall. */
static struct phases expected_phases(enum swp_operation operation, int nsizes, const int *sizes, int root) {
  struct phases result = {0};
  bool backwards =
      operation == SWP_BCAST || operation == SWP_SCATTER || operation == SWP_REDUCE_SCATTER_BLOCK;
  for (int i = 0; i < nsizes; i++) {
    int d = backwards ? nsizes - 1 - i : i, stride = 1;
    for (int k = 0; k < d; k++)
      stride *= sizes[k];
    int64_t bytes = BYTES;
    if (operation == SWP_ALLGATHERV)
      bytes =
          (int64_t)sizeof(double) * blocks(operation, rank - rank % (stride * sizes[d]), stride * sizes[d]);
    else if (operation == SWP_ALLTOALL)
      bytes = (int64_t)procs / sizes[d] * BYTES;
    else if (operation != SWP_BCAST && operation != SWP_REDUCE && operation != SWP_ALLREDUCE)
      bytes = (int64_t)stride * BYTES;
    if (!has_root(operation) || rank % stride == root % stride) /* the lower coordinates are the root's */
      phases_expect(&result, functions[operation], sizes[d], bytes);
  }
  return result;
}

/* Finds the rising sizes of two or three dimensions of the least sum, and then of the smallest largest. */
static void balance(int count, int ndims, int *sizes) {
  int least = INT_MAX, largest = 0;
  for (int a = ndims == 3 ? 2 : 1; a <= (ndims == 3 ? count : 1); a++)
    for (int b = a > 2 ? a : 2; count % a == 0 && b <= count / a / b; b++) {
      int c = count / a / b;
      if (a * b * c != count || a + b + c > least || (a + b + c == least && c >= largest))
        continue;
      least = a + b + c;
      largest = c;
      memcpy(sizes, ndims == 3 ? (int[]){a, b, c} : (int[]){b, c}, (size_t)ndims * sizeof *sizes);
    }
}

/* Writes the sizes of the grid that a spec names on so many ranks. Returns how many. */
static int read_grid(const char *method, int count, int *sizes) {
  int nsizes = 0;
  const char *at = strchr(method, '=') + 1;
  if (strncmp(method, "orthogonal:dims", strlen("orthogonal:dims")) == 0) {
    balance(count, atoi(at), sizes);
    return atoi(at);
  }
  for (; nsizes < MOST_LEVELS; at = strchr(at, 'x') + 1) {
    sizes[nsizes++] = atoi(at);
    if (strchr(at, 'x') == NULL)
      break;
  }
  return nsizes;
}

static void check_grid(const char *method) {
  int sizes[MOST_LEVELS], nsizes = read_grid(method, procs, sizes);
  for (enum swp_operation operation = SWP_BCAST; operation <= SWP_REDUCE_SCATTER_BLOCK; operation++) {
    swp_plan *plan = open_plan(operation, method, NULL);
    for (int root = 0; root < (has_root(operation) ? procs : 1); root++) {
      test_case("%s %s, root %d", swp_operation_name(operation), method, root);
      execute(plan, operation, root);
      struct phases expected = expected_phases(operation, nsizes, sizes, root);
      phases_compare(&expected);
    }
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
}

static void check_grids(void) {
  char specs[1024];
  EXPECT_ERROR(swp_method_specs(SWP_BCAST, "orthogonal", procs, specs, sizeof specs), SWP_SUCCESS);
  for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
    check_grid(spec);
  if (procs == 16)
    check_grid("orthogonal:grid=2x2x2x2");
}

/* The counts of the paper, of two dimensions, and of three. */
static void check_layouts(int count, int two, int three) {
  char specs[4096];
  int dimensions[MOST_LEVELS + 1] = {0};
  test_case("layouts of %d ranks", count);
  for (int operation = SWP_BCAST; operation <= SWP_REDUCE_SCATTER_BLOCK; operation++) {
    memset(dimensions, 0, sizeof dimensions);
    EXPECT_ERROR(swp_method_specs((enum swp_operation)operation, "orthogonal", count, specs, sizeof specs),
                 SWP_SUCCESS);
    for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " ")) {
      int sizes[MOST_LEVELS], n = read_grid(spec, count, sizes), product = 1;
      for (int d = 0; d < n; d++)
        product *= sizes[d];
      EXPECT_EQUAL(product, count);
      dimensions[n]++;
    }
    EXPECT_EQUAL(dimensions[2], two);
    EXPECT_EQUAL(dimensions[3], three);
    EXPECT_EQUAL(dimensions[1] + dimensions[4], 0);
  }
}

static void expect_refused_of(enum swp_operation operation, const char *method, const struct swp_hints *hints,
                              const char *words, int expected) {
  struct swp_collective problem = problem_of(operation, 0);
  swp_plan *plan = NULL;
  test_case("%s %s on %d ranks", swp_operation_name(operation), method, procs);
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problem, method, hints, &plan), expected);
  EXPECT(strstr(swp_error_message(), words) != NULL, "'%s' does not say '%s'", swp_error_message(), words);
  EXPECT(plan == NULL, "the plan is not NULL");
}

static void expect_refused(const char *method, const char *words, int expected) {
  expect_refused_of(SWP_ALLREDUCE, method, NULL, words, expected);
}

/* ---- Nodes ---- */

static int node_of(const struct swp_hints *hints, int nodes, int any) {
  return hints->placement == SWP_PLACEMENT_BLOCK ? any / hints->ppn : any % nodes;
}

static int local_of(const struct swp_hints *hints, int nodes, int any) {
  return hints->placement == SWP_PLACEMENT_BLOCK ? any % hints->ppn : any / nodes;
}

static int node_size(const struct swp_hints *hints, int nodes, int node) {
  int size = 0;
  for (int i = 0; i < procs; i++)
    size += node_of(hints, nodes, i) == node;
  return size;
}

/* Where the root is a leader, and where it is not. */
static struct phases expected_by_node(enum swp_operation operation, const struct swp_hints *hints, int root,
                                      bool by_memory) {
  struct phases result = {0};
  int nodes = (procs - 1) / hints->ppn + 1, least = procs, ppn = 0;
  for (int node = 0; node < nodes; node++) {
    int size = node_size(hints, nodes, node);
    least = size < least ? size : least;
    ppn = size > ppn ? size : ppn;
  }
  int node = node_of(hints, nodes, rank), size = node_size(hints, nodes, node);
  const int on_node = by_memory ? 0 : size;
  int leader = local_of(hints, nodes, root) < least ? local_of(hints, nodes, root) : 0;
  bool leads = local_of(hints, nodes, rank) == leader, leads_any = local_of(hints, nodes, rank) == 0;
  bool node_first = node == node_of(hints, nodes, root) && leader != local_of(hints, nodes, root);
  int64_t all = 0, ours = 0;
  for (int i = 0; i < procs; i++) {
    all += (int64_t)(i + 1) * (int64_t)sizeof(double);
    ours += node_of(hints, nodes, i) == node ? (int64_t)(i + 1) * (int64_t)sizeof(double) : 0;
  }
  switch (operation) {
  case SWP_BCAST:
    if (node_first)
      phases_expect(&result, "Bcast", on_node, BYTES);
    if (leads)
      phases_expect(&result, "Bcast", nodes, BYTES);
    if (!node_first)
      phases_expect(&result, "Bcast", on_node, BYTES);
    break;
  case SWP_GATHER:
    phases_expect(&result, "Gather", on_node, BYTES);
    if (leads)
      phases_expect(&result, "Gather", nodes, (int64_t)ppn * BYTES);
    break;
  case SWP_SCATTER:
    if (leads)
      phases_expect(&result, "Scatter", nodes, (int64_t)ppn * BYTES);
    phases_expect(&result, "Scatter", on_node, BYTES);
    break;
  case SWP_REDUCE:
    phases_expect(&result, "Reduce", on_node, BYTES);
    if (leads)
      phases_expect(&result, "Reduce", nodes, BYTES);
    break;
  case SWP_ALLREDUCE:
    phases_expect(&result, "Reduce", on_node, BYTES);
    if (leads_any)
      phases_expect(&result, "Allreduce", nodes, BYTES);
    phases_expect(&result, "Bcast", on_node, BYTES);
    break;
  case SWP_ALLGATHER:
    phases_expect(&result, "Gather", on_node, BYTES);
    if (leads_any)
      phases_expect(&result, "Allgather", nodes, (int64_t)ppn * BYTES);
    phases_expect(&result, "Bcast", on_node, (int64_t)nodes * ppn * BYTES);
    break;
  default: /* allgatherv */
    phases_expect(&result, "Gatherv", on_node,
                  leads_any ? ours : (int64_t)(rank + 1) * (int64_t)sizeof(double));
    if (leads_any)
      phases_expect(&result, "Allgatherv", nodes, all);
    phases_expect(&result, "Bcast", on_node, all);
  }
  return result;
}

static void check_nodes(const char *method, int ppn, int placement) {
  const bool by_memory = strchr(method, ':') != NULL;
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = ppn;
  hints.placement = placement;
  if (ppn >= procs)
    return;
  for (enum swp_operation operation = SWP_BCAST; operation <= SWP_ALLGATHERV; operation++) {
    if (by_memory && operation == SWP_ALLGATHERV)
      continue;
    swp_plan *plan = open_plan(operation, method, &hints);
    for (int root = 0; root < (has_root(operation) ? procs : 1); root++) {
      test_case("%s %s, root %d, ppn %d, placement %d", swp_operation_name(operation), method, root, ppn,
                placement);
      execute(plan, operation, root);
      struct phases expected = expected_by_node(operation, &hints, root, by_memory);
      phases_compare(&expected);
    }
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
}

/* A leader exchanges with its peers its share of the bytes, and no other rank crosses nodes. */
static struct phases expected_by_leaders(enum swp_operation operation, const struct swp_hints *hints,
                                         int root, int leaders, bool by_memory) {
  struct phases result = {0};
  const int ppn = hints->ppn, nodes = procs / ppn, group = ppn / leaders;
  const int node = node_of(hints, nodes, rank), local = local_of(hints, nodes, rank), share = local / group;
  const bool leads = local % group == 0;
  const int on_node = by_memory ? 0 : ppn, own = by_memory ? 0 : group; /* without a message */
  const int unit = operation == SWP_ALLREDUCE ? (int)sizeof(double) : 1, units = BYTES / unit;
  const int slice = (units * (share + 1) / leaders - units * share / leaders) * unit;
  switch (operation) {
  case SWP_BCAST:
    if (node == node_of(hints, nodes, root))
      phases_expect(&result, "Scatterv", on_node, rank == root ? BYTES : leads ? slice : 0);
    if (leads)
      phases_expect(&result, "Bcast", nodes, slice);
    phases_expect(&result, "Allgatherv", on_node, BYTES);
    break;
  case SWP_ALLREDUCE:
    phases_expect(&result, "Reduce_scatter", on_node, BYTES);
    if (leads)
      phases_expect(&result, "Allreduce", nodes, slice);
    phases_expect(&result, "Allgatherv", on_node, BYTES);
    break;
  case SWP_ALLGATHER:
    phases_expect(&result, "Gather", own, BYTES);
    if (leads)
      phases_expect(&result, "Allgather", nodes, (int64_t)group * BYTES);
    phases_expect(&result, "Allgatherv", on_node, (int64_t)procs * BYTES);
    break;
  default: /* alltoall */
    phases_expect(&result, "Gather", own, (int64_t)procs * BYTES);
    if (leads)
      phases_expect(&result, "Alltoall", nodes, (int64_t)group * ppn * BYTES);
    phases_expect(&result, "Alltoallv", on_node, (int64_t)procs * BYTES);
  }
  return result;
}

static const enum swp_operation shared_out[] = {SWP_BCAST, SWP_ALLREDUCE, SWP_ALLGATHER, SWP_ALLTOALL};

static void check_leaders(int ppn, int placement, int leaders, bool by_memory) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  char method[64];
  snprintf(method, sizeof method, "twolevel:%sleaders=%d", by_memory ? "node=shared," : "", leaders);
  hints.ppn = ppn;
  hints.placement = procs % ppn == 0 ? placement : SWP_PLACEMENT_BLOCK; /* cyclic nodes may be even */
  for (size_t i = 0; i < sizeof shared_out / sizeof *shared_out; i++) {
    const enum swp_operation operation = shared_out[i];
    if (ppn >= procs || procs % ppn != 0 || ppn % leaders != 0) {
      const char *why = ppn >= procs ? "on one node" : procs % ppn != 0 ? "different numbers" : "not divide";
      expect_refused_of(operation, method, &hints, why, SWP_ERR_NOT_APPLICABLE);
      continue;
    }
    swp_plan *plan = open_plan(operation, method, &hints);
    for (int root = 0; root < (operation == SWP_BCAST ? procs : 1); root++) {
      test_case("%s %s, root %d, ppn %d, placement %d", swp_operation_name(operation), method, root, ppn,
                placement);
      execute(plan, operation, root);
      struct phases expected = expected_by_leaders(operation, &hints, root, leaders, by_memory);
      phases_compare(&expected);
    }
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
  if (ppn < procs) {
    expect_refused_of(SWP_REDUCE, method, &hints, "is for bcast", SWP_ERR_NOT_APPLICABLE);
    expect_refused_of(SWP_ALLTOALL, "twolevel", &hints, "needs leaders", SWP_ERR_NOT_APPLICABLE);
  }
}

/* ---- bruck of two levels ---- */

/* In a step where a node knows so many nodes, itself among them, the rank of this local number has a message
   with those that are new on the node which wants them. */
static struct phases expected_by_levels(int nodes, int ppn, int local) {
  struct phases result = {0};
  phases_expect(&result, "Allgather", ppn, BYTES);
  for (int known = 1; known < nodes; known *= ppn) {
    const int missing = nodes - local * known, got = missing < known ? missing : known;
    const int next = known * ppn < nodes ? known * ppn : nodes;
    if (local > 0 && got > 0)
      phases_expect(&result, "Isend", 2, (int64_t)got * ppn * BYTES);
    phases_expect(&result, "Allgatherv", ppn, (int64_t)(next - known) * ppn * BYTES);
  }
  return result;
}

static void check_levels(int ppn, int placement) {
  static const char method[] = "bruck:levels=2";
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = ppn;
  hints.placement = placement;
  if (ppn >= procs)
    expect_refused_of(SWP_ALLGATHER, method, &hints, "on one node", SWP_ERR_NOT_APPLICABLE);
  if (ppn >= procs || procs % ppn != 0)
    return;
  swp_plan *plan = open_plan(SWP_ALLGATHER, method, &hints);
  test_case("allgather %s, ppn %d, placement %d", method, ppn, placement);
  phases_with_messages = true;
  execute(plan, SWP_ALLGATHER, 0);
  phases_with_messages = false;
  const struct phases expected = expected_by_levels(procs / ppn, ppn, local_of(&hints, procs / ppn, rank));
  phases_compare(&expected);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  expect_refused_of(SWP_ALLTOALL, method, &hints, "is for allgather", SWP_ERR_NOT_APPLICABLE);
  expect_refused_of(SWP_ALLGATHER, "bruck:radix=2,levels=2", &hints, "either radix", SWP_ERR_NOT_APPLICABLE);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_phases");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  make_buffers();
  check_layouts(96, 10, 30);
  check_layouts(48, 8, 18);
  check_layouts(64, 5, 10);
  check_layouts(32, 4, 6);
  check_layouts(7, 0, 0);
  expect_refused("orthogonal", "grid=AxB", SWP_ERR_NOT_APPLICABLE);
  expect_refused("orthogonal:grid=97", "two dimensions", SWP_ERR_NOT_APPLICABLE);
  expect_refused("orthogonal:grid=2x97", "multiply to the number of ranks", SWP_ERR_NOT_APPLICABLE);
  expect_refused("orthogonal:grid=2147483647x2147483647x2", "multiply", SWP_ERR_NOT_APPLICABLE);
  expect_refused("orthogonal:grid=1x4", "malformed", SWP_ERR_METHOD);
  expect_refused("orthogonal:dims=2,grid=2x2", "either dims=N or grid=AxB", SWP_ERR_NOT_APPLICABLE);
  expect_refused("orthogonal:dims=30", "fewer factors", SWP_ERR_NOT_APPLICABLE);
  expect_refused("twolevel", "on one node", SWP_ERR_NOT_APPLICABLE);
  check_grids();
  for (int ppn = 2; ppn <= 3; ppn++) {
    for (int shared = 0; shared < 2; shared++) {
      const char *method = shared ? "twolevel:node=shared" : "twolevel";
      check_nodes(method, ppn, SWP_PLACEMENT_BLOCK);
      check_nodes(method, ppn, SWP_PLACEMENT_CYCLIC);
    }
  }
  for (int ppn = 2; ppn <= 4; ppn++)
    for (int leaders = 1; leaders <= ppn; leaders++)
      for (int shared = 0; shared < 2; shared++)
        check_leaders(ppn, leaders % 2 == 0 ? SWP_PLACEMENT_BLOCK : SWP_PLACEMENT_CYCLIC, leaders, shared);
  for (int ppn = 2; ppn <= 4; ppn++) {
    check_levels(ppn, SWP_PLACEMENT_BLOCK);
    check_levels(ppn, SWP_PLACEMENT_CYCLIC);
  }
  free_buffers();
  return test_end();
}
