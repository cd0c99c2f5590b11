/*
 * binomial: a tree in which the rank at position p, counted from the root, has the one at p without its
 * lowest bit as its parent. An allreduce is a reduction to rank 0 and a broadcast from there,
 * and so is a barrier, of empty messages.
 */
#include "textbook.h"
#include "tree.h"

/* An operation that does not commute needs positions to be ranks, also for other roots. */
static void binomial_tree(const struct swp_plan *plan, int root, struct tree *tree) {
  swp_tree_knomial(plan, plan->features.commutative ? root : 0, 2, tree);
}

const struct method swp_collective_binomial = {
    .name = "binomial",
    .summary = "along a binomial tree; allreduce as reduce and bcast, barrier likewise",
    .source = "Hartmann, Kuehnemann, Rauber, Ruenger, Adaptive selection of communication methods, 2006",
    .estimate = swp_estimate_textbook,
    .tree = binomial_tree,
    .procedures =
        {
            [SWP_BCAST] = {swp_tree_bcast},
            [SWP_GATHER] = {swp_tree_gather, swp_tree_gather_scratch_bytes, swp_total_applicable},
            [SWP_SCATTER] = {swp_tree_scatter, swp_tree_scatter_scratch_bytes, swp_total_applicable},
            [SWP_REDUCE] = {swp_tree_reduce, swp_tree_reduce_scratch_bytes},
            [SWP_ALLREDUCE] = {swp_tree_allreduce, swp_tree_reduce_scratch_bytes},
            [SWP_BARRIER] = {swp_tree_barrier},
        },
};
