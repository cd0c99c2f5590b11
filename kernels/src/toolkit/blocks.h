/* Memory in blocks, one for each rank, hypercubes of ranks, and how ranks with a block each gather all. */
#ifndef SWP_BLOCKS_H
#define SWP_BLOCKS_H

#include "call.h"

struct blocks {
  char *buffer;
  MPI_Datatype type;
  MPI_Aint extent;
  int n;
  int64_t items;              /* of all blocks, which are as equal as possible, and contiguous */
  const int *counts, *displs; /* unless these are given, by block */
};

/* The call's blocks in recv, with a block of recv.count items for each rank, or of their own sizes. */
struct blocks swp_blocks_of_ranks(const struct swp_plan *plan, void *recv);

/* The blocks of an alltoall or alltoallv that this rank sends: those of recv in place. */
struct blocks swp_blocks_sent(const struct swp_plan *plan, const void *send, void *recv);

/* A vector of this many items, cut for the ranks. */
struct blocks swp_blocks_of_vector(const struct swp_plan *plan, const struct side *side, void *vector,
                                   int64_t items);

/* The item with which a block begins. */
static inline int64_t swp_blocks_first(const struct blocks *blocks, int block) {
  int64_t each = blocks->items / blocks->n, more = blocks->items % blocks->n;
  return blocks->displs != NULL ? blocks->displs[block] : block * each + (block < more ? block : more);
}

/* Computed as numbers, as in swp_item. */
static inline void *swp_blocks_at(const struct blocks *blocks, int block) {
  return (void *)((uintptr_t)blocks->buffer + (uintptr_t)(swp_blocks_first(blocks, block) * blocks->extent));
}

/* Items of one block, and of those from one up to another, for which blocks must lie one behind the other. */
static inline int swp_blocks_run(const struct blocks *blocks, int from, int to) {
  return (int)(swp_blocks_first(blocks, to) - swp_blocks_first(blocks, from));
}
static inline int swp_blocks_items(const struct blocks *blocks, int block) {
  return blocks->counts != NULL ? blocks->counts[block] : swp_blocks_run(blocks, block, block + 1);
}

/* Copy all blocks, whose items are those of the side, to consecutive bytes, and back. Errors, of all below:
   SWP_ERR_MPI. */
int swp_blocks_pack(const struct swp_plan *plan, const struct blocks *blocks, const struct side *side,
                    char *bytes);
int swp_blocks_unpack(const struct swp_plan *plan, const struct blocks *blocks, const struct side *side,
                      const char *bytes);

/* Copies rows x columns pieces of this many bytes column by column. */
void swp_blocks_transpose(const char *from, int rows, int columns, int64_t bytes, char *to);

/* Copies the rank's block from send, unless that is MPI_IN_PLACE. */
int swp_blocks_place_own(const struct swp_plan *plan, const struct blocks *blocks, const void *send);

/* The same from an address that was computed: where MPI_BOTTOM is 0 it may equal MPI_IN_PLACE. */
int swp_blocks_copy_own(const struct swp_plan *plan, const struct blocks *blocks, const void *send);

/* Passes all blocks around the ring of ranks, in procs - 1 steps. This rank has block `own`, its neighbours
   those before and behind. */
int swp_blocks_ring(struct swp_plan *plan, const struct blocks *blocks, int own);

/*
 * A hypercube of ranks whose number need be no power of two: the first ranks make pairs, of which the lower
 * one stands for both. Positions keep the order of the ranks, so neighbours stand for runs of them.
 */
struct fold {
  int procs, root;
  int size;     /* of swp_fold: the largest power of two that is not above procs */
  int pairs;    /* the first this many positions stand for two ranks */
  int position; /* of this rank; -1: its partner stands for it */
  int partner;  /* the other rank of its pair; -1: none */
};

/* The fold with `root` as the first rank, and those before it behind the last; and one of another size, from
   half of procs up to procs. */
struct fold swp_fold(const struct swp_plan *plan, int root);
struct fold swp_fold_of(const struct swp_plan *plan, int root, int size);

/* The first rank that a position stands for, counted from the root; procs behind the last position. */
static inline int swp_fold_first(const struct fold *fold, int position) {
  return position < fold->pairs ? 2 * position : position + fold->pairs;
}

/* The rank at a position. */
static inline int swp_fold_rank(const struct fold *fold, int position) {
  return (swp_fold_first(fold, position) + fold->root) % fold->procs;
}

/* An allreduce, or a part of one, over positions. In: begins *sum, for the partner too, with `own`; *other is
   room for a vector. Out: gives both ranks of a pair the result that is in `sum` in recv. A rank that its
   partner stands for sends `own`, and receives into recv. Errors: SWP_ERR_MPI. */
int swp_fold_in(struct swp_plan *plan, const struct fold *fold, const void *own, void **sum, void **other);
int swp_fold_out(struct swp_plan *plan, const struct fold *fold, const void *sum, void *recv);

/* Gathers all blocks along the dimensions of the hypercube. A position has the blocks that it stands for, in
   runs; a rank that its partner stands for gets all from there in the end. */
int swp_blocks_hypercube(struct swp_plan *plan, const struct blocks *blocks, const struct fold *fold);

#endif
