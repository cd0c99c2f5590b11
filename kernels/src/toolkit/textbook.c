#include "textbook.h"

#include "board_steps.h"
#include "formulas.h"
#include "order.h"
#include "radix.h"

#include <float.h>
#include <string.h>

enum {
  RADIX = 4,
  SEGMENT_BYTES = 65536,
  SMALL_BYTES = 8,
  CHAINS = 4
}; /* where a spec has none; of Open MPI's `chain` */

static double lesser(double a, double b) {
  return a < b ? a : b;
}

/* ⌊lg P⌋. */
static int dims_of(const struct group *g) {
  int dims = 0;
  while (2LL << dims <= g->procs)
    dims++;
  return dims;
}

static double cube_of(const struct group *g) {
  return (double)(1LL << dims_of(g));
}

static bool is_folded(const struct group *g) {
  return cube_of(g) != g->procs;
}

/* A message within pairs that act as one rank of a hypercube. */
static double folded_s(const struct group *g, double bytes) {
  return is_folded(g) ? swp_message_s(g, bytes) : 0;
}

/* ---- Trees ---- */

static double bcast_binomial(const struct group *g, double m) {
  return swp_radix_levels(g, 2) * swp_message_s(g, m);
}

static double bcast_knomial(const struct group *g, double m) {
  return swp_radix_knomial_bcast_s(g, m, RADIX);
}

static double bcast_linear(const struct group *g, double m) {
  return swp_burst_s(g, g->procs - 1, m, 1);
}

static double bcast_binary(const struct group *g, double m) {
  return dims_of(g) * swp_burst_s(g, swp_fewer(2, g->procs - 1), m, 1);
}

static double bcast_split_binary(const struct group *g, double m) {
  return bcast_binary(g, m / 2) + swp_message_s(g, m / 2);
}

static double star(const struct group *g, double m) {
  const struct message_cost *cost = swp_cost_of(g->pair, m);
  double overhead = cost->receive_s + m * cost->per_byte_s;
  return (g->procs - 1) * (cost->step_s > overhead ? cost->step_s : overhead) + cost->alpha_s;
}

static double tree_of_blocks(const struct group *g, double m) {
  double seconds = 0;
  for (int i = 0; i < swp_radix_levels(g, 2); i++)
    seconds += swp_message_s(g, swp_fewer(1 << i, g->procs - (1 << i)) * m);
  return seconds;
}

static double reduce_star(const struct group *g, double m) {
  const struct message_cost *cost = swp_cost_of(g->pair, m);
  return (g->procs - 1) * (cost->receive_s + m * (cost->per_byte_s + g->reduce_s_per_byte));
}

static double reduce_binomial(const struct group *g, double m) {
  return swp_radix_levels(g, 2) * (swp_message_s(g, m) + swp_reduced_s(g, m));
}

static double reduce_binary(const struct group *g, double m) {
  return bcast_binary(g, m) + dims_of(g) * swp_fewer(2, g->procs - 1) * swp_reduced_s(g, m);
}

static double allreduce_binomial(const struct group *g, double m) {
  return reduce_binomial(g, m) + bcast_binomial(g, m);
}

static double allreduce_linear(const struct group *g, double m) {
  return reduce_star(g, m) + bcast_linear(g, m);
}

static double barrier_binomial(const struct group *g, double m) {
  return 2 * bcast_binomial(g, m);
}

static double barrier_linear(const struct group *g, double m) {
  return star(g, m) + bcast_linear(g, m);
}

static double allgather_linear(const struct group *g, double m) {
  return star(g, m) + bcast_linear(g, g->procs * m);
}

/* ---- Chains ---- */

double swp_textbook_chain_s(const struct group *g, double m, double segment_bytes) {
  int64_t segments = m > segment_bytes ? (int64_t)((m + segment_bytes - 1) / segment_bytes) : 1;
  return (double)(g->procs - 2 + segments) * swp_message_s(g, lesser(m, segment_bytes));
}

static double bcast_chain(const struct group *g, double m) {
  return swp_textbook_chain_s(g, m, SEGMENT_BYTES);
}

static int chains_of(const struct group *g) {
  return swp_fewer(CHAINS, g->procs - 1);
}

static int length_of_chains(const struct group *g) {
  return (g->procs - 2) / chains_of(g) + 1;
}

static double bcast_chains(const struct group *g, double m) {
  return swp_burst_s(g, chains_of(g), m, 1) + (length_of_chains(g) - 1) * swp_message_s(g, m);
}

static double reduce_chains(const struct group *g, double m) {
  return bcast_chains(g, m) + (length_of_chains(g) - 1 + chains_of(g)) * swp_reduced_s(g, m);
}

/* ---- Hypercubes ---- */

static double halves(const struct group *g, double m) {
  double seconds = 0;
  for (int i = 1; i <= dims_of(g); i++)
    seconds += swp_message_s(g, m / (double)(1LL << i));
  return seconds;
}

static double doubled(const struct group *g, double m) {
  double seconds = 0;
  for (int i = 0; i < dims_of(g); i++)
    seconds += swp_message_s(g, (double)(1LL << i) * (g->procs / cube_of(g) * m));
  return seconds;
}

static double bcast_scatter_allgather(const struct group *g, double m) {
  return 2 * halves(g, m) + folded_s(g, m);
}

static double reduce_rabenseifner(const struct group *g, double m) {
  double joined = m * (1 - 1 / cube_of(g)) + (is_folded(g) ? m : 0);
  return 2 * halves(g, m) + folded_s(g, m) + swp_reduced_s(g, joined);
}

static double allreduce_rabenseifner(const struct group *g, double m) {
  return reduce_rabenseifner(g, m) + folded_s(g, m);
}

static double allreduce_hypercube(const struct group *g, double m) {
  return dims_of(g) * swp_message_s(g, m) + 2 * folded_s(g, m) + swp_radix_levels(g, 2) * swp_reduced_s(g, m);
}

static double allgather_hypercube(const struct group *g, double m) {
  return doubled(g, m) + folded_s(g, m) + folded_s(g, g->procs * m);
}

static double reduce_scatter_hypercube(const struct group *g, double m) {
  double joined = (g->procs - g->procs / cube_of(g)) * m + (is_folded(g) ? g->procs * m : 0);
  return allgather_hypercube(g, m) + swp_reduced_s(g, joined);
}

static double reduce_scatter_doubling(const struct group *g, double m) {
  double seconds = 0;
  for (int i = 0; i < swp_radix_levels(g, 2); i++) {
    double bytes = (g->procs - (1 << i)) * m;
    seconds += swp_message_s(g, bytes) + swp_reduced_s(g, bytes);
  }
  return seconds;
}

static double barrier_hypercube(const struct group *g, double m) {
  return dims_of(g) * swp_message_s(g, m) + 2 * folded_s(g, m);
}

/* ---- Rings, pairs, Bruck ---- */

/* Messages one after the other, also those of a pipeline without segments. */
static double ring(const struct group *g, double m) {
  return (g->procs - 1) * swp_message_s(g, m);
}

static double reducing_ring(const struct group *g, double m) {
  return ring(g, m) + (g->procs - 1) * swp_reduced_s(g, m);
}

static double ring_allreduce(const struct group *g, double m) {
  return reducing_ring(g, m / g->procs) + ring(g, m / g->procs);
}

/* A message goes round twice. */
static double barrier_rings(const struct group *g, double m) {
  return 2 * g->procs * swp_message_s(g, m);
}

double swp_textbook_scatter_ring_s(const struct group *g, double m) {
  return tree_of_blocks(g, m / g->procs) + ring(g, m / g->procs);
}

static double allgather_neighbor(const struct group *g, double m) {
  return swp_message_s(g, m) + (g->procs - 1) / 2 * swp_message_s(g, 2 * m);
}

static double allgather_bruck(const struct group *g, double m) {
  return tree_of_blocks(g, m) + g->procs * m * g->copy_s_per_byte;
}

static double alltoall_bruck(const struct group *g, double m) {
  double seconds = 0, copied = g->procs;
  for (int i = 0; i < swp_radix_levels(g, 2); i++) {
    int blocks = swp_with_bit(1 << i, g->procs);
    seconds += swp_message_s(g, blocks * m);
    copied += blocks;
  }
  return seconds + 2 * copied * m * g->copy_s_per_byte;
}

/* Blocks are put in order before or behind. */
static double allgather_bine(const struct group *g, double m) {
  return allgather_hypercube(g, m) + g->procs * m * g->copy_s_per_byte;
}

static double reduce_scatter_bine(const struct group *g, double m) {
  return reduce_scatter_hypercube(g, m) + g->procs * m * g->copy_s_per_byte;
}

static double alltoall_linear(const struct group *g, double m) {
  return swp_burst_s(g, g->procs - 1, m, g->procs - 1);
}

/* ---- The node's memory ---- */

/* A step takes as long as a small message, and all steps what the busiest rank copies to its board and from
   those of all. */
double swp_textbook_shared_s(enum swp_operation operation, const struct group *g, double m) {
  const struct shape *shape = &swp_shapes[operation];
  const struct pair_model *pair = g->on_node != NULL ? g->on_node : g->pair;
  const int out = swp_holds_all(shape->send) ? g->procs : 1, in = swp_holds_all(shape->recv) ? g->procs : 1;
  const double step = swp_cost_of(pair, SMALL_BYTES)->alpha_s;
  const bool slices = operation == SWP_ALLREDUCE && swp_boards_by_slices(g->procs, m);
  const double folded = slices ? m / g->procs : m;
  double seconds = step + (out + in) * m * g->copy_s_per_byte;
  if (!shape->reduces)
    return seconds;
  if (slices)
    seconds += step + 2 * folded * g->copy_s_per_byte;
  return seconds + (g->procs - 1) * swp_reduced_s(g, folded);
}

/* ---- The table ---- */

/* The formulas of methods; `own` are those of methods that no MPI library has, and `others` those of
   algorithms that only MPI libraries have. */
static const struct entry {
  enum swp_operation operation;
  const char *name;
  formula *formula;
} methods[] =
    {
        {SWP_BCAST, "binomial", bcast_binomial},
        {SWP_BCAST, "knomial", bcast_knomial},
        {SWP_BCAST, "chain", bcast_chain},
        {SWP_BCAST, "scatter_allgather", bcast_scatter_allgather},
        {SWP_GATHER, "binomial", tree_of_blocks},
        {SWP_GATHER, "star", star},
        {SWP_SCATTER, "binomial", tree_of_blocks},
        {SWP_SCATTER, "star", star},
        {SWP_REDUCE, "binomial", reduce_binomial},
        {SWP_REDUCE, "star", reduce_star},
        {SWP_REDUCE, "rabenseifner", reduce_rabenseifner},
        {SWP_ALLREDUCE, "binomial", allreduce_binomial},
        {SWP_ALLREDUCE, "hypercube", allreduce_hypercube},
        {SWP_ALLREDUCE, "rabenseifner", allreduce_rabenseifner},
        {SWP_ALLREDUCE, "ring", ring_allreduce},
        {SWP_ALLGATHER, "hypercube", allgather_hypercube},
        {SWP_ALLGATHER, "ring", ring},
        {SWP_ALLGATHER, "bruck", allgather_bruck},
        {SWP_ALLTOALL, "bruck", alltoall_bruck},
        {SWP_ALLTOALL, "pairwise", ring},
        {SWP_ALLTOALLV, "pairwise", ring},
        {SWP_REDUCE_SCATTER_BLOCK, "hypercube", reduce_scatter_hypercube},
        {SWP_REDUCE_SCATTER_BLOCK, "ring", reducing_ring},
        {SWP_REDUCE_SCATTER_BLOCK, "pairwise", reducing_ring},
        {SWP_BARRIER, "binomial", barrier_binomial},
        {SWP_BARRIER, "bruck", bcast_binomial},
    },
  own[] =
      {
          {SWP_BCAST, "bine", bcast_binomial},
          {SWP_GATHER, "bine", tree_of_blocks},
          {SWP_SCATTER, "bine", tree_of_blocks},
          {SWP_REDUCE, "bine", reduce_binomial},
          {SWP_ALLREDUCE, "bine", allreduce_rabenseifner},
          {SWP_ALLGATHER, "bine", allgather_bine},
          {SWP_ALLTOALL, "bine", alltoall_bruck},
          {SWP_REDUCE_SCATTER_BLOCK, "bine", reduce_scatter_bine},
      },
  others[] = {
      {SWP_BCAST, "linear", bcast_linear},
      {SWP_BCAST, "binary", bcast_binary},
      {SWP_BCAST, "split_binary_tree", bcast_split_binary},
      {SWP_BCAST, "pipeline", ring},
      {SWP_BCAST, "chain", bcast_chains},
      {SWP_BCAST, "scatter_allgather_ring", swp_textbook_scatter_ring_s},
      {SWP_GATHER, "linear", star},
      {SWP_SCATTER, "linear", star},
      {SWP_REDUCE, "linear", reduce_star},
      {SWP_REDUCE, "binary", reduce_binary},
      {SWP_REDUCE, "pipeline", reducing_ring},
      {SWP_REDUCE, "chain", reduce_chains},
      {SWP_ALLREDUCE, "linear", allreduce_linear},
      {SWP_ALLREDUCE, "nonoverlapping", allreduce_binomial},
      {SWP_ALLGATHER, "linear", allgather_linear},
      {SWP_ALLGATHER, "neighbor", allgather_neighbor},
      {SWP_ALLGATHER, "sparbit", tree_of_blocks},
      {SWP_ALLTOALL, "linear", alltoall_linear},
      {SWP_ALLTOALLV, "linear", alltoall_linear},
      {SWP_REDUCE_SCATTER_BLOCK, "recursive_doubling", reduce_scatter_doubling},
      {SWP_BARRIER, "linear", barrier_linear},
      {SWP_BARRIER, "tree", barrier_binomial},
      {SWP_BARRIER, "hypercube", barrier_hypercube},
      {SWP_BARRIER, "double_ring", barrier_rings},
  };

enum {
  METHODS = sizeof methods / sizeof methods[0],
  OWN = sizeof own / sizeof own[0],
  OTHERS = sizeof others / sizeof others[0]
};

/* Other names that libraries have for the same algorithms. */
static const char *const aliases[][2] = {
    {"basic_linear", "linear"},
    {"linear_nb", "linear"},
    {"linear_sync", "linear"},
    {"scattered", "linear"},
    {"binary_tree", "binary"},
    {"in-order_binary", "binary"},
    {"scatter_recursive_doubling_allgather", "scatter_allgather"},
    {"scatter_ring_allgather", "scatter_allgather_ring"},
    {"recursive_doubling", "hypercube"},
    {"recursive_multiplying", "hypercube"},
    {"recursive_halving", "hypercube"},
    {"recexch_doubling", "hypercube"},
    {"recexch_halving", "hypercube"},
    {"butterfly", "hypercube"},
    {"reduce_scatter_gather", "rabenseifner"},
    {"reduce_scatter_allgather", "rabenseifner"},
    {"k_reduce_scatter_allgather", "rabenseifner"},
    {"segmented_ring", "ring"},
    {"brucks", "bruck"},
    {"k_brucks", "bruck"},
    {"bruck-k-fanout", "bruck"},
    {"modified_bruck", "bruck"},
    {"dissemination", "bruck"},
    {"k_dissemination", "bruck"},
    {"pairwise_sendrecv_replace", "pairwise"},
};

/* The operation with equal blocks: blocks that differ in size take as long as their mean. */
static enum swp_operation even(enum swp_operation operation) {
  return operation == SWP_ALLGATHERV ? SWP_ALLGATHER : operation;
}

static formula *find(const struct entry *entries, int count, enum swp_operation operation, const char *name) {
  for (int i = 0; i < count; i++)
    if (entries[i].operation == even(operation) && strcmp(entries[i].name, name) == 0)
      return entries[i].formula;
  return NULL;
}

/* A library's `chain` is not ours. */
static formula *find_any(enum swp_operation operation, const char *name) {
  formula *found = find(others, OTHERS, operation, name);
  return found != NULL ? found : find(methods, METHODS, operation, name);
}

formula *swp_textbook_algorithm(enum swp_operation operation, const char *name) {
  formula *found = find_any(operation, name);
  for (int i = 0; found == NULL && i < (int)(sizeof aliases / sizeof aliases[0]); i++)
    if (strcmp(aliases[i][0], name) == 0)
      found = find_any(operation, aliases[i][1]);
  return found;
}

static double least_of(const struct entry *entries, int count, enum swp_operation operation,
                       const struct group *group, double m, double least) {
  for (int i = 0; i < count; i++)
    if (entries[i].operation == even(operation))
      least = lesser(least, entries[i].formula(group, m));
  return least;
}

double swp_textbook_least_s(enum swp_operation operation, const struct group *group, double m) {
  if (group->procs == 1)
    return 0;
  double least = least_of(methods, METHODS, operation, group, m, DBL_MAX);
  return least_of(others, OTHERS, operation, group, m, least);
}

int swp_estimate_formula(const struct swp_plan *plan, const struct estimate *estimate, formula *its,
                         double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  *seconds = its(&group, (double)plan->features.bytes);
  return SWP_SUCCESS;
}

int swp_estimate_textbook(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const char *name = estimate->spec->method->name;
  formula *its = find(methods, METHODS, plan->operation, name);
  if (its == NULL)
    its = find(own, OWN, plan->operation, name);
  return its != NULL ? swp_estimate_formula(plan, estimate, its, seconds) : SWP_SUCCESS;
}
