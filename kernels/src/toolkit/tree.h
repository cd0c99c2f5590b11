/*
 * Trees of ranks, and collectives along them. Positions count ranks from the root on, around to it; those of
 * a subtree follow each other, so blocks travel without headers.
 */
#ifndef SWP_TREE_H
#define SWP_TREE_H

#include "call.h"

enum { TREE_CHILDREN = 6 * 63 }; /* of radix 64, the most for 2^31 ranks */

/* A child: its rank, and the first position and the ranks of its subtree. */
struct branch {
  int rank, first, ranks;
};

/* This rank's place in the tree with a root. */
struct tree {
  int root, position;
  int parent;       /* a rank; -1 at the root */
  int first, ranks; /* of the subtree with this rank */
  int nchildren;
  struct branch children[TREE_CHILDREN]; /* each one's subtree lies before or behind all of those before it */
};

/* The tree in which the position p has as its parent the one without the last nonzero digit of p to this
   base. */
void swp_tree_knomial(const struct swp_plan *plan, int root, int radix, struct tree *tree);

/*
 * The tree in which a run of ranks is cut in halves, again and again, and the half without the root gets one
 * of its own, a third of its ranks away from the cut. For a power of two these are the binomial negabinary
 * trees of arXiv 2508.17311. The first run begins a third of the ranks before the root or, in_order, with
 * rank 0.
 */
void swp_tree_bine(const struct swp_plan *plan, int root, bool in_order, struct tree *tree);

/* Procedures along the tree that plan->spec.method->tree makes, and their scratch. An allreduce is a
   reduction to rank 0 and a broadcast from there, and so is a barrier, of empty messages. */
int swp_tree_bcast(struct swp_plan *plan, const void *send, void *recv);
int swp_tree_gather(struct swp_plan *plan, const void *send, void *recv);
int swp_tree_scatter(struct swp_plan *plan, const void *send, void *recv);
int swp_tree_reduce(struct swp_plan *plan, const void *send, void *recv);
int swp_tree_allreduce(struct swp_plan *plan, const void *send, void *recv);
int swp_tree_barrier(struct swp_plan *plan, const void *send, void *recv);
int64_t swp_tree_gather_scratch_bytes(const struct swp_plan *plan);
int64_t swp_tree_scatter_scratch_bytes(const struct swp_plan *plan);
int64_t swp_tree_reduce_scratch_bytes(const struct swp_plan *plan);

#endif
