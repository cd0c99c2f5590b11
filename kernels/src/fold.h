/*
 * A hypercube of ranks whose number need be no power of two: the first ranks make pairs, of which the lower
 * one stands for both. Positions keep the order of the ranks, so neighbours stand for runs of them.
 */
#ifndef SWP_FOLD_H
#define SWP_FOLD_H

#include "plan.h"

struct fold {
  int procs, root;
  int size;     /* the largest power of two that is not above procs */
  int pairs;    /* the first so many positions stand for two ranks */
  int position; /* of this rank; -1: its partner stands for it */
  int partner;  /* the other rank of its pair; -1: none */
};

/* With `root` as the first rank, and those before it behind the last. */
struct fold swp_fold(const struct swp_plan *plan, int root);

/* What a position stands for begins with this rank, counted from the root; procs behind the last position. */
static inline int swp_fold_first(const struct fold *fold, int position) {
  return position < fold->pairs ? 2 * position : position + fold->pairs;
}

/* The rank that is there. */
static inline int swp_fold_rank(const struct fold *fold, int position) {
  return (swp_fold_first(fold, position) + fold->root) % fold->procs;
}

#endif
