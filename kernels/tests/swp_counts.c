/*
 * What an execution really does, counted, against what the plan says and the papers' formulas: messages,
 * bytes, copies, allocations. What discoveries do is in counts_discovery.c.
 */
#include "activity.h"
#include "allocate.h"
#include "counts.h"
#include "nodes.h"
#include "oracle.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEM_BYTES = 24 };

/* One execution, counted, with its payload checked. */
static struct activity execute_counted(struct exchange_run *run) {
  int *nodes = nodes_of(run->comm);
  run_fill(run, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  long allocations = swp_allocate_count();
  activity_start(nodes, NULL);
  int error = run_execute(run);
  struct activity activity = activity_stop();
  EXPECT_ERROR(error, SWP_SUCCESS);
  EXPECT_EQUAL(swp_allocate_count(), allocations);
  EXPECT_EQUAL(activity.allocations, 0);
  run_check(run, 1);
  free(nodes);
  return activity;
}

/* Messages and bytes of the run are the planned ones, and the stages add up to them. */
static void check_plan_is_kept(const struct exchange_run *run, const struct activity *activity) {
  struct swp_statistics plan;
  int64_t messages = 0, bytes = 0;
  EXPECT_ERROR(swp_plan_statistics(run->plan, NULL, &plan), SWP_SUCCESS);
  for (int stage = 0; stage < plan.stages; stage++) {
    int64_t m, v, m_max, v_max;
    EXPECT_ERROR(swp_plan_stage(run->plan, stage, &m, &m_max, &v, &v_max), SWP_SUCCESS);
    EXPECT(m_max <= m && v_max <= v && m_max * run->traffic->procs >= m, "stage %d: most and total differ",
           stage);
    messages += m;
    bytes += v;
  }
  EXPECT_ERROR(swp_plan_stage(run->plan, plan.stages, NULL, NULL, NULL, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_plan_stage(run->plan, -1, NULL, NULL, NULL, NULL), SWP_ERR_ARGUMENT);
  int64_t sent = reduced(activity->messages, MPI_SUM), sent_bytes = reduced(activity->bytes, MPI_SUM);
  EXPECT_EQUAL(sent, messages);
  EXPECT_EQUAL(sent_bytes, bytes);
  EXPECT_EQUAL(plan.hop_bytes, bytes);
  EXPECT_EQUAL(plan.mmax, reduced(activity->messages, MPI_MAX));
  EXPECT_EQUAL(plan.vmax_bytes, reduced(activity->bytes, MPI_MAX));
  int64_t off_node = reduced(activity->off_node_messages, MPI_SUM);
  int64_t off_node_bytes = reduced(activity->off_node_bytes, MPI_SUM);
  EXPECT_EQUAL(plan.off_node_messages, off_node);
  EXPECT_EQUAL(plan.on_node_messages, sent - off_node);
  EXPECT_EQUAL(plan.off_node_bytes, off_node_bytes);
  EXPECT_EQUAL(plan.on_node_bytes, sent_bytes - off_node_bytes);
  EXPECT_EQUAL(plan.off_node_mmax, reduced(activity->off_node_messages, MPI_MAX));
  EXPECT_EQUAL(plan.off_node_vmax_bytes, reduced(activity->off_node_bytes, MPI_MAX));
  EXPECT(plan.mavg == (double)sent / run->traffic->procs, "mavg is %g", plan.mavg);
  EXPECT(plan.vavg_bytes == (double)sent_bytes / run->traffic->procs, "vavg is %g", plan.vavg_bytes);
}

/* copied_bytes is what is really copied: at most 5 % more than what is sent. By node, the sender of a message
   between nodes and its receiver may both have to copy what it brings; by the node's memory, both copy, at
   each of the steps on a node. `shared` has one such step. */
static void check_copies(const struct exchange_run *run, const struct activity *activity, bool self) {
  struct swp_statistics plan, problem;
  swp_plan_statistics(run->plan, &problem, &plan);
  const char *method = swp_plan_method(run->plan);
  double most = 1.05 * (double)plan.hop_bytes;
  if (strncmp(method, "nap", 3) == 0)
    most = (double)(plan.hop_bytes + problem.off_node_bytes);
  if (needs_nodes(method))
    most = 2 * (double)problem.on_node_bytes + 4 * (double)problem.off_node_bytes;
  if (strcmp(method, "shared") == 0)
    most += 2 * (double)problem.on_node_bytes;
  if (needs_one_node(SWP_EXCHANGE, method))
    most = 2 * (double)(problem.on_node_bytes + problem.off_node_bytes);
  if (self)
    return; /* a message to oneself is copied, and not a method's */
  EXPECT_EQUAL(plan.copied_bytes, reduced(activity->copied_bytes, MPI_SUM));
  if (strcmp(method, "direct") == 0)
    EXPECT_EQUAL(problem.copied_bytes, plan.copied_bytes);
  EXPECT((double)plan.copied_bytes <= most, "%lld bytes are copied, %lld sent", (long long)plan.copied_bytes,
         (long long)plan.hop_bytes);
}

/* ---- The formulas of store-and-forward ---- */

/* The sizes in "4x3"; no dimensions when their product is not procs. */
static struct sizes read_sizes(const char *text, int procs) {
  struct sizes sizes = {0};
  int product = 1;
  while (sizes.ndims < MOST_DIMS) {
    char *end;
    product *= sizes.k[sizes.ndims++] = (int)strtol(text, &end, 10);
    if (*end != 'x')
      break;
    text = end + 1;
  }
  if (product != procs)
    sizes.ndims = 0;
  return sizes;
}

int forwarded(const struct sizes *sizes, int at, int destination, int stages) {
  int stride = 1;
  for (int d = 0; d < stages; d++)
    stride *= sizes->k[d];
  return at / stride * stride + destination % stride;
}

/* Messages and bytes of each stage, by following every message of the traffic. */
static void check_stages(const struct exchange_run *run, const struct sizes *sizes) {
  size_t procs = (size_t)run->traffic->procs;
  for (int stage = 0; stage < sizes->ndims; stage++) {
    int64_t messages = 0, bytes = 0;
    bool *link = test_allocate(procs * procs * sizeof *link);
    memset(link, 0, procs * procs * sizeof *link);
    for (int source = 0; source < run->traffic->procs; source++) {
      const struct row *row = &run->traffic->rows[source];
      for (int i = 0; i < row->nsends; i++) {
        int from = forwarded(sizes, source, row->ranks[i], stage);
        int to = forwarded(sizes, source, row->ranks[i], stage + 1);
        if (from == to || row_items(row, i) == 0)
          continue;
        bool *used = &link[(size_t)from * procs + (size_t)to];
        messages += !*used;
        *used = true;
        bytes += row_items(row, i) * run->item_bytes;
      }
    }
    free(link);
    int64_t planned_messages, planned_bytes;
    EXPECT_ERROR(swp_plan_stage(run->plan, stage, &planned_messages, NULL, &planned_bytes, NULL),
                 SWP_SUCCESS);
    EXPECT(planned_messages == messages && planned_bytes == bytes,
           "stage %d: %d messages of %d bytes planned, expected %d of %d", stage, (int)planned_messages,
           (int)planned_bytes, (int)messages, (int)bytes);
  }
}

/* s Σ (k_d − 1) K / k_d bytes a rank, in Σ (k_d − 1) messages. */
static void check_complete(const struct exchange_run *run, const struct sizes *sizes) {
  struct swp_statistics plan;
  int64_t volume = 0, messages = 0, pair_bytes = 2 * run->item_bytes;
  swp_plan_statistics(run->plan, NULL, &plan);
  for (int d = 0; d < sizes->ndims; d++) {
    volume += pair_bytes * (sizes->k[d] - 1) * run->traffic->procs / sizes->k[d];
    messages += sizes->k[d] - 1;
  }
  EXPECT_EQUAL(plan.vmax_bytes, volume);
  EXPECT(plan.vavg_bytes == (double)volume, "vavg is %g, expected %d", plan.vavg_bytes, (int)volume);
  EXPECT_EQUAL(plan.mmax, messages);
}

/* ---- The methods ---- */

/* Returns whether the method sends messages itself, not by calls of MPI that send for it. */
static bool sends_itself(const char *method) {
  return strncmp(method, "neighbor", 8) != 0 && strncmp(method, "alltoallv", 9) != 0;
}

static void check_family(const char *method, const struct sizes *sizes, const struct family *family) {
  struct exchange_run run;
  test_case("%s, %s", method, family->name);
  if (!run_open(&run, MPI_COMM_WORLD, method, family, 9, ITEM_BYTES, 0))
    return;
  struct activity activity = execute_counted(&run);
  if (sends_itself(method)) {
    check_plan_is_kept(&run, &activity);
    check_copies(&run, &activity, family->self);
  }
  if (sizes != NULL && sizes->ndims > 0) {
    struct swp_statistics plan;
    swp_plan_statistics(run.plan, NULL, &plan);
    EXPECT_EQUAL(plan.stages, sizes->ndims);
    check_stages(&run, sizes);
    if (strcmp(family->name, "complete") == 0)
      check_complete(&run, sizes);
  }
  run_close(&run);
}

/* With fields no more messages are sent, and nothing is allocated either. */
static void check_fields(const char *method) {
  struct exchange_run run;
  test_case("%s, fields", method);
  if (!run_open(&run, MPI_COMM_WORLD, method, &families[0], 9, FUSED, 0))
    return;
  struct activity activity = execute_counted(&run);
  if (sends_itself(method))
    check_plan_is_kept(&run, &activity);
  run_close(&run);
}

/* Every other family on many ranks: the rest is like one of them. */
static void check_method(const char *method, const struct sizes *sizes) {
  int procs;
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  for (int i = 0; i < nfamilies; i += procs > 4 ? 2 : 1)
    check_family(method, sizes, &families[i]);
  check_fields(method);
}

static void check_all_methods(int procs) {
  char *specs = all_specs(SWP_EXCHANGE, procs);
  for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
    check_method(spec, NULL);
  free(specs);
}

/* Grids of every number of ranks that the tests use; `dims` must choose the first of its dimension, and
 * `radix` the first of the most dimensions. */
static const struct {
  int procs;
  const char *chosen_by, *sizes;
} grids[] = {
    {4, "dims=2", "2x2"},  {8, "dims=2", "4x2"},    {8, "dims=3", "2x2x2"},  {8, NULL, "2x4"},
    {12, "dims=2", "4x3"}, {12, "dims=3", "3x2x2"}, {12, NULL, "3x4"},       {12, NULL, "2x6"},
    {12, NULL, "2x3x2"},   {16, "dims=2", "4x4"},   {16, "dims=3", "4x2x2"}, {16, "dims=4", "2x2x2x2"},
    {16, NULL, "2x8"},     {6, "dims=2", "3x2"},    {1, NULL, "1"},          {2, NULL, "2"},
    {4, "radix=2", "2x2"}, {8, "radix=2", "2x2x2"}, {12, "radix=3", "4x3"},  {16, "radix=4", "4x4"},
};

static void check_grids(int procs) {
  for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
    if (grids[i].procs != procs)
      continue;
    char method[64];
    struct sizes sizes = read_sizes(grids[i].sizes, procs);
    snprintf(method, sizeof method, "stfw:grid=%s", grids[i].sizes);
    check_method(method, &sizes);
    check_discovery_on_grid(method, &sizes);
    if (grids[i].chosen_by == NULL)
      continue;
    snprintf(method, sizeof method, "stfw:%s", grids[i].chosen_by);
    check_method(method, &sizes);
    check_discovery_on_grid(method, &sizes);
  }
}

/* ---- Memory ---- */

static void check_scattered_items(const char *method, int64_t most_bytes) {
  enum { ITEMS = 4096 };
  static int64_t items[ITEMS];
  const int64_t offsets[2] = {0, ITEMS};
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int peer = rank ^ 1; /* one hop in stage 1 */
  for (int i = 0; i < ITEMS; i++)
    items[i] = 2 * i;
  const struct swp_exchange problem = {.item_bytes = 8,
                                       .nitems = 2 * ITEMS,
                                       .nsends = 1,
                                       .send_ranks = &peer,
                                       .send_offsets = offsets,
                                       .send_items = items,
                                       .nrecvs = 1,
                                       .recv_ranks = &peer,
                                       .recv_offsets = offsets};
  swp_plan *plan = NULL;
  struct swp_statistics statistics;
  test_case("memory of %s for scattered items", method);
  EXPECT_ERROR(swp_exchange_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_statistics(plan, NULL, &statistics), SWP_SUCCESS);
  EXPECT(statistics.plan_bytes < most_bytes, "%lld bytes", (long long)statistics.plan_bytes);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* The runs of the items (16 bytes each) are kept once, and the payload (8 bytes each) at most once. */
static void check_memory(void) {
  enum { RUNS_BYTES = 4096 * 16, PAYLOAD_BYTES = 4096 * 8, ROOM_BYTES = 16384 };
  check_scattered_items("direct", RUNS_BYTES + PAYLOAD_BYTES + ROOM_BYTES);
  check_scattered_items("stfw:dims=2", RUNS_BYTES + PAYLOAD_BYTES + ROOM_BYTES);
}

/* ---- Figure 4 of the paper, on its 64 processes ---- */

static int paper_rank(int high, int mid, int low) {
  return (low - 1) + 4 * (mid - 1) + 16 * (high - 1);
}

static void fill_figure_4(struct row *row, int procs, int source, uint64_t seed) {
  static const int a[3][3] = {{1, 2, 3}, {3, 2, 3}, {2, 4, 3}}, b[3][3] = {{1, 2, 3}, {3, 2, 3}, {4, 1, 3}};
  (void)procs, (void)seed;
  const int (*to)[3] = source == paper_rank(2, 2, 1) ? a : source == paper_rank(2, 1, 4) ? b : NULL;
  for (int i = 0; to != NULL && i < 3; i++)
    row_once(row, paper_rank(to[i][0], to[i][1], to[i][2]), 1);
}

static void check_figure_4(void) {
  static const struct family figure = {"figure 4", false, fill_figure_4};
  static const struct sizes sizes = {3, {4, 4, 4}};
  static const int64_t messages[] = {2, 2, 3}, hops[] = {6, 3, 5};
  struct exchange_run run;
  check_family("direct", NULL, &figure);
  check_family("stfw:dims=3", &sizes, &figure);
  if (!run_open(&run, MPI_COMM_WORLD, "stfw:dims=3", &figure, 0, ITEM_BYTES, 0))
    return;
  for (int stage = 0; stage < 3; stage++) {
    int64_t m, v;
    EXPECT_ERROR(swp_plan_stage(run.plan, stage, &m, NULL, &v, NULL), SWP_SUCCESS);
    EXPECT_EQUAL(m, messages[stage]);
    EXPECT_EQUAL(v, hops[stage] * ITEM_BYTES);
  }
  struct activity activity = execute_counted(&run);
  EXPECT_EQUAL(reduced(activity.messages, MPI_SUM), 7);
  if (run.rank == paper_rank(2, 2, 3)) { /* P_g: to e what a sent, to c and d what a and b sent in one each */
    EXPECT_EQUAL(activity.messages, 3);
    EXPECT_EQUAL(activity.bytes, 5 * ITEM_BYTES);
  }
  run_close(&run);
}

int main(int argc, char **argv) {
  int procs;
  test_begin(&argc, &argv, "swp_counts");
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  if (procs == 64) {
    check_figure_4();
    return test_end();
  }
  check_all_methods(procs);
  check_discoveries();
  check_grids(procs);
  if (procs == 4)
    check_memory();
  oracle_hints.ppn = 2;
  check_all_methods(procs);
  check_discoveries();
  oracle_hints.ppn = 3;
  check_discoveries();
  oracle_hints.placement = SWP_PLACEMENT_CYCLIC;
  check_all_methods(procs);
  check_discoveries();
  return test_end();
}
