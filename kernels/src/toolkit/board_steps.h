/*
 * Calls of collectives by boards. A rank copies what others need to its board, where they read it; what is
 * larger than a board goes piece by piece, the next one while the others read this one. Where blocks of a
 * rank differ by receiver, its board has a piece of each. What is reduced each reader folds from the last
 * rank down to the first, so that all get the same; in an allreduce of a long vector each rank folds a slice.
 */
#ifndef SWP_BOARD_STEPS_H
#define SWP_BOARD_STEPS_H

#include "boards.h"
#include "kinds.h"

/* Below, a second step takes longer than folding whole vectors. */
enum { SLICED_BYTES = 8192 };

/* Who posts what to whom in all steps of a call. Ranks are those of the boards. */
struct roles {
  int root;        /* -1: none */
  bool one_writes; /* the root alone, otherwise every rank */
  bool one_reads;  /* likewise */
  bool writes, reads;
  int out_blocks, in_blocks; /* 1 or one for each rank */
};

/* Blocks of different sizes: the bytes of each, and where it begins. */
struct spans {
  const int64_t *bytes, *places; /* NULL: blocks are equal, and one behind the other */
};

/* The blocks as they travel. */
struct images {
  const char *out; /* for ranks that write */
  char *in;        /* for ranks that read */
  struct spans out_spans, in_spans;
};

/* NULL where boards of so many ranks can do the call, else why not. */
const char *swp_boards_cannot(const struct features *features, int ranks, bool reduces);

/* Returns whether so many ranks reduce a piece of so many bytes by slices, where all get all sums. */
static inline bool swp_boards_by_slices(int ranks, double bytes) {
  return ranks > 2 && bytes >= SLICED_BYTES;
}

/* Moves blocks of this many bytes at most, equal on all ranks, as the next call of the boards. Errors, also
   of the next: SWP_ERR_MPI. */
int swp_boards_move(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                    const struct images *images, int64_t block_bytes);

/* Reduces blocks of side->count items of predefined operation and type; send may be MPI_IN_PLACE. */
int swp_boards_reduce(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                      const struct side *side, MPI_Op op, const void *send, void *recv);

/* Waits until all ranks have come to this step, as the next call of the boards. */
int swp_boards_meet(struct swp_plan *plan, struct boards *boards);

#endif
