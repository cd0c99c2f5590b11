/* Calls of collectives by boards, step by step. */
#include "board_steps.h"

#include "call.h"

#include <string.h>

enum { LEAST_PIECE_BYTES = 32 }; /* of the largest predefined type */

const char *swp_boards_cannot(const struct features *features, int ranks, bool reduces) {
  if (reduces && !features->predefined)
    return "the operation or its type is not predefined";
  return ranks <= BOARD_BYTES / LEAST_PIECE_BYTES ? NULL : "a board has no room for so many ranks";
}

/* Returns whether others read what this rank posts. */
static bool has_readers(const struct boards *boards, const struct roles *roles) {
  return roles->writes && boards->procs > 1 && !(roles->one_reads && boards->rank == roles->root);
}

static int reader_of(const struct roles *roles) {
  return roles->one_reads ? roles->root : READ_BY_ALL;
}

/* Waits until this rank may write so many bytes to its board. */
static int open_board(struct swp_plan *plan, struct boards *boards, int64_t bytes) {
  int error = swp_boards_await_readers(plan, boards);
  if (error == SWP_SUCCESS)
    swp_claim(swp_board(boards, boards->rank)->data, bytes);
  return error;
}

static void end_step(struct boards *boards) {
  swp_boards_finish(boards);
  boards->step++;
}

/* ---- Moving bytes ---- */

/* The piece of a step: this many bytes of each block, from `first` on. */
struct bytes {
  const struct roles *roles;
  const struct images *images;
  int64_t block_bytes, first, count;
};

static int64_t place_of(const struct bytes *bytes, const struct spans *spans, int64_t block) {
  return (spans->places != NULL ? spans->places[block] : block * bytes->block_bytes) + bytes->first;
}

/* The bytes of a block's piece, of which a short block has none. */
static size_t piece_of(const struct bytes *bytes, const struct spans *spans, int64_t block) {
  if (spans->bytes == NULL)
    return (size_t)bytes->count;
  const int64_t rest = spans->bytes[block] - bytes->first;
  return rest <= 0 ? 0 : (size_t)(rest < bytes->count ? rest : bytes->count);
}

static int post_bytes(struct swp_plan *plan, struct boards *boards, const struct bytes *bytes) {
  const struct roles *roles = bytes->roles;
  const struct images *images = bytes->images;
  char *data = swp_board(boards, boards->rank)->data;
  int error = open_board(plan, boards, roles->out_blocks * bytes->count);
  if (error != SWP_SUCCESS)
    return error;
  for (int to = 0; to < roles->out_blocks; to++)
    if (roles->out_blocks == 1 || to != boards->rank)
      memcpy(data + to * bytes->count, images->out + place_of(bytes, &images->out_spans, to),
             piece_of(bytes, &images->out_spans, to));
  swp_boards_post(boards, reader_of(roles));
  return SWP_SUCCESS;
}

/* Reads a rank's piece for this one; its own without the board. */
static int fetch_bytes(struct swp_plan *plan, struct boards *boards, const struct bytes *bytes, int from) {
  const struct roles *roles = bytes->roles;
  const struct images *images = bytes->images;
  const int64_t place = roles->out_blocks > 1 ? boards->rank : 0, block = roles->in_blocks > 1 ? from : 0;
  char *to = images->in + place_of(bytes, &images->in_spans, block);
  const char *data;
  int error = SWP_SUCCESS;
  if (from == boards->rank)
    data = images->out + place_of(bytes, &images->out_spans, place);
  else {
    TRY(swp_boards_await(plan, boards, from));
    data = swp_board(boards, from)->data + place * bytes->count;
  }
  if (to != data)
    memcpy(to, data, piece_of(bytes, &images->in_spans, block));
done:
  return error;
}

static int move_piece(struct swp_plan *plan, struct boards *boards, const struct bytes *bytes) {
  const struct roles *roles = bytes->roles;
  int error = SWP_SUCCESS;
  if (has_readers(boards, roles))
    TRY(post_bytes(plan, boards, bytes));
  if (roles->reads && roles->one_writes)
    TRY(fetch_bytes(plan, boards, bytes, roles->root));
  else
    for (int i = 0; roles->reads && i < boards->procs; i++)
      TRY(fetch_bytes(plan, boards, bytes, (boards->rank + i) % boards->procs));
  end_step(boards);
done:
  return error;
}

int swp_boards_move(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                    const struct images *images, int64_t block_bytes) {
  const int64_t most = BOARD_BYTES / roles->out_blocks;
  struct bytes bytes = {.roles = roles, .images = images, .block_bytes = block_bytes};
  int error = SWP_SUCCESS;
  for (; bytes.first < block_bytes; bytes.first += most) {
    bytes.count = block_bytes - bytes.first < most ? block_bytes - bytes.first : most;
    TRY(move_piece(plan, boards, &bytes));
  }
done:
  return error;
}

/* ---- Reducing items ---- */

/* The piece of a step: this many items of each block, from `first` on. */
struct items {
  const struct side *side;
  MPI_Op op;
  const void *out; /* this rank's operands: where recv is, in place */
  void *recv;
  bool in_place;
  int64_t first;
  int count;
};

static int64_t stride_of(const struct items *items) {
  return items->count * items->side->extent;
}

/* An operand of this rank. */
static const void *operand_at(const struct items *items, int64_t block) {
  return swp_item(items->side, items->out, block * items->side->count + items->first);
}

/* Posts also what this rank itself folds: in place, the result comes where that is. */
static int post_items(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                      const struct items *items) {
  char *data = swp_board(boards, boards->rank)->data;
  const size_t bytes = (size_t)(stride_of(items) - items->side->extent + items->side->span);
  int error = open_board(plan, boards, roles->out_blocks * stride_of(items));
  if (error != SWP_SUCCESS)
    return error;
  for (int to = 0; to < roles->out_blocks; to++)
    memcpy(data + to * stride_of(items), operand_at(items, to), bytes);
  swp_boards_post(boards, reader_of(roles));
  return SWP_SUCCESS;
}

/* What a rank folds: so many items of every operand, from `place` in the boards' data on. */
struct operands {
  int64_t place;
  int count;
  const void *own; /* this rank's; NULL: on its board */
  void *sum;
};

static int fold(struct swp_plan *plan, struct boards *boards, const struct items *items,
                const struct operands *operands) {
  const struct side *side = items->side;
  const int count = operands->count;
  int error = SWP_SUCCESS;
  for (int rank = boards->procs - 1; rank >= 0; rank--) {
    const void *operand = operands->own;
    if (rank != boards->rank || operand == NULL) {
      TRY(swp_boards_await(plan, boards, rank));
      operand = swp_board(boards, rank)->data + operands->place;
    }
    if (rank == boards->procs - 1)
      TRY(swp_copy(plan, side, operand, count, side, operands->sum, count));
    else
      MPI_TRY(MPI_Reduce_local(operand, operands->sum, count, side->type, items->op));
  }
done:
  return error;
}

/* Reduces in one step: a reader folds all that it gets. */
static int reduce_whole(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                        const struct items *items) {
  const int64_t block = roles->out_blocks > 1 ? boards->rank : 0;
  const struct operands all = {.place = block * stride_of(items),
                               .count = items->count,
                               .own = items->in_place ? NULL : operand_at(items, block),
                               .sum = roles->reads ? swp_item(items->side, items->recv, items->first) : NULL};
  int error = SWP_SUCCESS;
  if (has_readers(boards, roles) || items->in_place)
    TRY(post_items(plan, boards, roles, items));
  if (roles->reads)
    TRY(fold(plan, boards, items, &all));
  end_step(boards);
done:
  return error;
}

/* The first item of a rank's slice, which ends where the next rank's begins. */
static int slice_begin(const struct boards *boards, const struct items *items, int rank) {
  return (int)((int64_t)items->count * rank / boards->procs);
}

static int post_slice(struct swp_plan *plan, struct boards *boards, const void *sums, int64_t bytes) {
  int error = open_board(plan, boards, bytes);
  if (error != SWP_SUCCESS)
    return error;
  memcpy(swp_board(boards, boards->rank)->data, sums, (size_t)bytes);
  swp_boards_post(boards, READ_BY_ALL);
  return SWP_SUCCESS;
}

/* Copies the sums of a rank's slice to where they belong; this rank has its own. */
static int fetch_slice(struct swp_plan *plan, struct boards *boards, const struct items *items, int from,
                       const void *own) {
  const struct side *side = items->side;
  const int first = slice_begin(boards, items, from), count = slice_begin(boards, items, from + 1) - first;
  const void *sums = own;
  int error = SWP_SUCCESS;
  if (from != boards->rank) {
    TRY(swp_boards_await(plan, boards, from));
    sums = swp_board(boards, from)->data;
  }
  TRY(swp_copy(plan, side, sums, count, side, swp_item(side, items->recv, items->first + first), count));
done:
  return error;
}

/* Reduces in two steps: each rank folds its slice, on its own board, and all fetch the sums. */
static int reduce_slices(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                         const struct items *items) {
  const struct side *side = items->side;
  const int first = slice_begin(boards, items, boards->rank);
  const int count = slice_begin(boards, items, boards->rank + 1) - first;
  const struct operands slice = {.place = first * side->extent,
                                 .count = count,
                                 .own = swp_item(side, items->out, items->first + first),
                                 .sum = swp_board(boards, boards->rank)->data + first * side->extent};
  int error = SWP_SUCCESS;
  TRY(post_items(plan, boards, roles, items));
  TRY(fold(plan, boards, items, &slice));
  end_step(boards);
  TRY(post_slice(plan, boards, slice.sum, count * side->extent));
  for (int i = 0; i < boards->procs; i++)
    TRY(fetch_slice(plan, boards, items, (boards->rank + i) % boards->procs, slice.sum));
  end_step(boards);
done:
  return error;
}

/* Returns whether all ranks get all sums. */
static bool is_for_all(const struct roles *roles) {
  return !roles->one_reads && roles->out_blocks == 1;
}

int swp_boards_reduce(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                      const struct side *side, MPI_Op op, const void *send, void *recv) {
  const bool in_place = send == MPI_IN_PLACE;
  const int most = (int)(BOARD_BYTES / (roles->out_blocks * side->extent));
  struct items items = {
      .side = side, .op = op, .out = in_place ? recv : send, .recv = recv, .in_place = in_place};
  int error = SWP_SUCCESS;
  for (; items.first < side->count; items.first += most) {
    items.count = side->count - items.first < most ? (int)(side->count - items.first) : most;
    if (is_for_all(roles) && swp_boards_by_slices(boards->procs, (double)stride_of(&items)))
      TRY(reduce_slices(plan, boards, roles, &items));
    else
      TRY(reduce_whole(plan, boards, roles, &items));
  }
done:
  return error;
}

/* ---- Meeting ---- */

/* Nothing on a board is written again, so no reader is waited for. */
int swp_boards_meet(struct swp_plan *plan, struct boards *boards) {
  int error = SWP_SUCCESS;
  swp_boards_post(boards, READ_BY_ALL);
  for (int i = 1; i < boards->procs; i++)
    TRY(swp_boards_await(plan, boards, (boards->rank + i) % boards->procs));
  end_step(boards);
done:
  return error;
}
