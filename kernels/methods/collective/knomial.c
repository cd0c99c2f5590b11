/*
 * knomial: a tree in which the rank at position p, counted from the root in digits to base `radix`, has the
 * one at p without its last nonzero digit as its parent. binomial is the one of radix 2.
 */
#include "radix.h"
#include "tree.h"

#include <stdio.h>

enum { RADIX = 4 };

/* Several for bcast alone, and others only where they are no star: a screening has room for all kinds of
   methods. */
static bool knomial_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  static const int of_bcast[] = {3, RADIX, 8};
  const int count = operation == SWP_BCAST ? (int)(sizeof of_bcast / sizeof of_bcast[0]) : 1;
  if (index >= count || (index > 0 && of_bcast[index] > procs) || (count == 1 && procs <= RADIX))
    return false;
  snprintf(text, length, "knomial:radix=%d", count > 1 ? of_bcast[index] : RADIX);
  return true;
}

/* Reductions that do not commute go to rank 0 first, as in binomial. */
static void knomial_tree(const struct swp_plan *plan, int root, struct tree *tree) {
  swp_tree_knomial(plan, plan->features.commutative ? root : 0, swp_radix_of(&plan->spec), tree);
}

static int knomial_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  radix_formula *its = plan->operation == SWP_BCAST     ? swp_radix_knomial_bcast_s
                       : plan->operation == SWP_REDUCE  ? swp_radix_knomial_reduce_s
                       : plan->operation == SWP_BARRIER ? swp_radix_knomial_barrier_s
                                                        : swp_radix_knomial_blocks_s;
  return swp_estimate_radix(plan, estimate, its, seconds);
}

const struct method swp_collective_knomial = {
    .name = "knomial",
    .summary = "along a tree with radix - 1 children at each level",
    .source = "Wilkins et al., Generalized collective algorithms for the exascale era, CLUSTER 2023",
    .usage = "radix=K (3 to 64; 4 when not given)",
    .parameters = {{.name = "radix", .type = PARAMETER_INTEGER, .low = 3, .high = 64, .otherwise = RADIX}},
    .variant = knomial_variant,
    .estimate = knomial_estimate,
    .tree = knomial_tree,
    .procedures =
        {
            [SWP_BCAST] = {swp_tree_bcast},
            [SWP_GATHER] = {swp_tree_gather, swp_tree_gather_scratch_bytes, swp_total_applicable},
            [SWP_SCATTER] = {swp_tree_scatter, swp_tree_scatter_scratch_bytes, swp_total_applicable},
            [SWP_REDUCE] = {swp_tree_reduce, swp_tree_reduce_scratch_bytes},
            [SWP_BARRIER] = {swp_tree_barrier},
        },
};
