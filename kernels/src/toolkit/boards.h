/*
 * Boards of a collective in memory that all ranks share. It goes in steps, which all ranks count alike: in
 * each, some post data and some read it. A rank has two boards, which take turns; it writes one again when
 * those that read it have finished that step. A rank that posts in a step has finished the one before. It may
 * go on writing the part of a posted board that it alone reads.
 * kernels/tests/protocols/boards.pml is a model of this.
 */
#ifndef SWP_BOARDS_H
#define SWP_BOARDS_H

#include "sharing.h"

enum { BOARDS = 2, BOARD_BYTES = 32768, READ_BY_ALL = -1 };

struct board {
  call_number posted; /* the step; written last, read first */
  int64_t unused;     /* so that data are aligned as those of malloc */
  char data[BOARD_BYTES];
};

enum { BOARD_STRIDE = (sizeof(struct board) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES };
enum { BOARDS_PART_BYTES = BOARDS * BOARD_STRIDE + LINE_BYTES };

struct boards {
  struct share share;
  int rank, procs;
  uint64_t step;            /* under way */
  uint64_t written[BOARDS]; /* the last step in which this rank wrote each board */
  int reader[BOARDS];       /* who reads it: a rank, or READ_BY_ALL */
  uint64_t *finished;       /* by rank: the last step that it is known to have finished */
};

static inline struct board *swp_board(const struct boards *boards, int rank) {
  return (struct board *)(void *)(swp_share_of(&boards->share, rank) +
                                  (int64_t)(boards->step % BOARDS) * BOARD_STRIDE);
}

/* The last step that a rank has finished: behind the boards in its part of the memory. */
static inline call_number *swp_board_finished(const struct boards *boards, int rank) {
  return (call_number *)(void *)(swp_share_of(&boards->share, rank) + BOARDS * BOARD_STRIDE);
}

/* A rank that may not have read this rank's board of the step yet; negative: none. */
static inline int swp_boards_missing(struct boards *boards) {
  const uint64_t turn = boards->step % BOARDS, written = boards->written[turn];
  const int reader = boards->reader[turn];
  int rank = reader == READ_BY_ALL ? 0 : reader;
  const int end = reader == READ_BY_ALL ? boards->procs : reader + 1;
  for (; rank < end; rank++) {
    if (rank == boards->rank || (int64_t)(boards->finished[rank] - written) >= 0)
      continue;
    if (!swp_has_reached(swp_board_finished(boards, rank), written))
      return rank;
    boards->finished[rank] = written;
  }
  return -1;
}

/* Lets the readers see what this rank has written to its board. */
static inline void swp_boards_post(struct boards *boards, int reader) {
  boards->written[boards->step % BOARDS] = boards->step;
  boards->reader[boards->step % BOARDS] = reader;
  swp_reach(&swp_board(boards, boards->rank)->posted, boards->step);
}

static inline bool swp_boards_posted(struct boards *boards, int rank) {
  if (!swp_has_reached(&swp_board(boards, rank)->posted, boards->step))
    return false;
  boards->finished[rank] = boards->step - 1;
  return true;
}

/* This rank will not read boards of the step any more. */
static inline void swp_boards_finish(struct boards *boards) {
  swp_reach(swp_board_finished(boards, boards->rank), boards->step);
}

/* Begins in boards->share, with the step after swp_calls_begin. `finished` has room for procs numbers. Local.
 */
void swp_boards_begin(struct boards *boards, int rank, int procs, uint64_t *finished);

/* Waits until this rank may write its board of the step, or until another has posted its own. Errors:
 * SWP_ERR_MPI. */
int swp_boards_await_readers(struct swp_plan *plan, struct boards *boards);
int swp_boards_await(struct swp_plan *plan, struct boards *boards, int rank);

#endif
