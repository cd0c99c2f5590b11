/*
 * rabenseifner: a reduce-scatter by halves, nearest positions of the hypercube first, which keeps the order
 * of ranks; then the pieces are gathered the same way back, by all ranks or to the root.
 */
#include "blocks.h"
#include "textbook.h"

/* Items [first, end) of the vector. */
struct range {
  int first, end;
};

/* The range that a position still reduces after this many steps: in each it keeps a half, the upper one if
   its bit is set. */
static struct range range_of(int items, int position, int steps) {
  struct range range = {0, items};
  for (int step = 0; step < steps; step++) {
    int middle = range.first + (range.end - range.first) / 2;
    if ((position >> step & 1) != 0)
      range.first = middle;
    else
      range.end = middle;
  }
  return range;
}

/* The partial result is in `sum`, the received one in `other`. */
struct reduction {
  struct fold fold;
  void *sum, *other;
};

/* The received result, and the partial result of ranks without a recv. */
static int64_t reduce_scratch_bytes(const struct swp_plan *plan) {
  return (plan->rank == plan->features.root ? 1 : 2) * swp_recv_room(plan);
}

/* Joins the range of the partial result with that of the ranks before, or behind. */
static int join(const struct swp_plan *plan, struct reduction *reduction, struct range range, bool before) {
  return swp_join(plan, &reduction->sum, &reduction->other, range.first, range.end - range.first, before);
}

static int exchange(struct swp_plan *plan, const struct reduction *reduction, struct range sent, void *to,
                    struct range received, int position) {
  const struct side *side = &call_of(plan)->recv;
  int peer = swp_fold_rank(&reduction->fold, position);
  return swp_send_receive(plan, swp_item(side, reduction->sum, sent.first), sent.end - sent.first, side->type,
                          peer, swp_item(side, to, received.first), received.end - received.first, side->type,
                          peer);
}

/* Reduces a position's own piece. Returns the number of steps. */
static int reduce_scatter(struct swp_plan *plan, struct reduction *reduction, int *steps) {
  const struct side *side = &call_of(plan)->recv;
  const struct fold *fold = &reduction->fold;
  int error = SWP_SUCCESS;
  for (*steps = 0; 1 << *steps < fold->size; ++*steps) {
    int position = fold->position ^ 1 << *steps;
    struct range kept = range_of(side->count, fold->position, *steps + 1);
    struct range given = range_of(side->count, position, *steps + 1);
    TRY(exchange(plan, reduction, given, reduction->other, kept, position));
    TRY(join(plan, reduction, kept, (fold->position >> *steps & 1) != 0));
  }
done:
  return error;
}

/* Lays out the vectors: the partial result, in `sum`, begins with the operand. */
static int begin(struct swp_plan *plan, struct reduction *reduction, const void *send, void *recv,
                 void *sum) {
  reduction->other = swp_recv_place(plan, 0);
  reduction->sum = sum;
  return swp_fold_in(plan, &reduction->fold, send == MPI_IN_PLACE ? recv : send, &reduction->sum,
                     &reduction->other);
}

static int rabenseifner_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  struct reduction reduction = {.fold = swp_fold(plan, 0)};
  const struct fold *fold = &reduction.fold;
  int steps, error = SWP_SUCCESS;
  TRY(begin(plan, &reduction, send, recv, recv));
  if (fold->position < 0)
    return swp_fold_out(plan, fold, recv, recv);
  TRY(reduce_scatter(plan, &reduction, &steps));
  struct range piece = range_of(side->count, fold->position, steps);
  if (reduction.sum != recv)
    TRY(swp_copy(plan, side, swp_item(side, reduction.sum, piece.first), piece.end - piece.first, side,
                 swp_item(side, recv, piece.first), piece.end - piece.first));
  reduction.sum = recv;
  while (steps-- > 0) {
    int position = fold->position ^ 1 << steps;
    TRY(exchange(plan, &reduction, range_of(side->count, fold->position, steps + 1), recv,
                 range_of(side->count, position, steps + 1), position));
  }
  TRY(swp_fold_out(plan, fold, recv, recv));
done:
  return error;
}

/* ---- Reduce ---- */

/* The pieces go to a position: a rank sends the pieces that it has gathered if its bit and the position's
   differ. */
static int gather(struct swp_plan *plan, const struct reduction *reduction, int steps, int top) {
  const struct side *side = &call_of(plan)->recv;
  const struct fold *fold = &reduction->fold;
  int error = SWP_SUCCESS;
  while (steps-- > 0) {
    int position = fold->position ^ 1 << steps, peer = swp_fold_rank(fold, position);
    bool sends = ((fold->position ^ top) >> steps & 1) != 0;
    struct range range = range_of(side->count, sends ? fold->position : position, steps + 1);
    void *at = swp_item(side, reduction->sum, range.first);
    if (sends)
      return swp_send(plan, at, range.end - range.first, side->type, peer);
    TRY(swp_receive(plan, at, range.end - range.first, side->type, peer));
  }
done:
  return error;
}

/* The position that stands for a rank. */
static int position_for(const struct fold *fold, int rank) {
  return rank < 2 * fold->pairs ? rank / 2 : rank - fold->pairs;
}

static int rabenseifner_reduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  struct reduction reduction = {.fold = swp_fold(plan, 0)};
  const struct fold *fold = &reduction.fold;
  bool root = plan->rank == plan->features.root;
  int top = position_for(fold, plan->features.root), steps, error = SWP_SUCCESS;
  TRY(begin(plan, &reduction, send, recv, root ? recv : swp_recv_place(plan, 1)));
  if (fold->position < 0)
    return root ? swp_receive(plan, recv, side->count, side->type, fold->partner) : SWP_SUCCESS;
  TRY(reduce_scatter(plan, &reduction, &steps));
  TRY(gather(plan, &reduction, steps, top));
  if (root && reduction.sum != recv)
    TRY(swp_copy(plan, side, reduction.sum, side->count, side, recv, side->count));
  else if (fold->partner == plan->features.root)
    TRY(swp_send(plan, reduction.sum, side->count, side->type, fold->partner));
done:
  return error;
}

const struct method swp_collective_rabenseifner = {
    .name = "rabenseifner",
    .summary = "reduce-scatter by halves, then the pieces are gathered",
    .source = "Rabenseifner, Optimization of collective reduction operations, 2004",
    .estimate = swp_estimate_textbook,
    .procedures =
        {
            [SWP_REDUCE] = {rabenseifner_reduce, reduce_scratch_bytes},
            [SWP_ALLREDUCE] = {rabenseifner_allreduce, swp_recv_room},
        },
};
