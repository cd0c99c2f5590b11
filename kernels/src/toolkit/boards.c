/* Boards of a collective in memory that all ranks share. */
#include "boards.h"

void swp_boards_begin(struct boards *boards, int rank, int procs, uint64_t *finished) {
  *boards = (struct boards){
      .share = boards->share, .rank = rank, .procs = procs, .step = swp_calls_begin, .finished = finished};
  for (int i = 0; i < procs; i++)
    finished[i] = boards->step;
  for (int turn = 0; turn < BOARDS; turn++) {
    boards->written[turn] = boards->step;
    boards->reader[turn] = READ_BY_ALL;
  }
  swp_boards_finish(boards);
  for (int turn = 0; turn < BOARDS; turn++, boards->step++)
    swp_reach(&swp_board(boards, rank)->posted, swp_calls_begin);
  boards->step = swp_calls_begin + 1;
}

int swp_boards_await_readers(struct swp_plan *plan, struct boards *boards) {
  int error = SWP_SUCCESS, rank;
  while ((rank = swp_boards_missing(boards)) >= 0)
    TRY(swp_await(plan, swp_board_finished(boards, rank), boards->written[boards->step % BOARDS]));
done:
  return error;
}

int swp_boards_await(struct swp_plan *plan, struct boards *boards, int rank) {
  int error = SWP_SUCCESS;
  while (!swp_boards_posted(boards, rank))
    TRY(swp_await_slowly(plan, &swp_board(boards, rank)->posted, boards->step));
done:
  return error;
}
