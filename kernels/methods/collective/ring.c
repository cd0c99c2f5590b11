/*
 * ring: every rank sends to the next and receives from the one before, procs - 1 times. An allgather passes
 * blocks around, a reduce_scatter_block partial results of blocks; an allreduce does both with the pieces of
 * its vector.
 */
#include "blocks.h"
#include "textbook.h"

static int ring_allgather(struct swp_plan *plan, const void *send, void *recv) {
  struct blocks blocks = swp_blocks_of_ranks(plan, recv);
  int error = swp_blocks_place_own(plan, &blocks, send);
  return error == SWP_SUCCESS ? swp_blocks_ring(plan, &blocks, plan->rank) : error;
}

/* ---- Reductions ---- */

/* Partial results are received in two places in turn; the largest piece is the first. */
static int64_t block_scratch_bytes(const struct swp_plan *plan) {
  return 2 * swp_recv_room(plan);
}
static int64_t piece_scratch_bytes(const struct swp_plan *plan) {
  const struct side *side = &call_of(plan)->recv;
  return 2 * swp_side_room(side, ((int64_t)side->count + plan->procs - 1) / plan->procs);
}

/* The rank's own block, reduced, to `result`, which in place may be where an operand is. */
static int reduce_scatter(struct swp_plan *plan, const struct blocks *operands, bool in_place, void *result) {
  const struct side *side = &call_of(plan)->recv;
  int procs = plan->procs, next = (plan->rank + 1) % procs, previous = (plan->rank + procs - 1) % procs;
  int most = swp_blocks_items(operands, 0), error = SWP_SUCCESS;
  char *scratch = scratch_of(plan);
  void *rooms[2] = {swp_side_place(side, most, scratch),
                    swp_side_place(side, most, scratch + swp_side_room(side, most))};
  const void *sum = swp_blocks_at(operands, previous);
  for (int step = 1; step < procs; step++) {
    int sent = (plan->rank - step + procs) % procs, received = (sent + procs - 1) % procs;
    int items = swp_blocks_items(operands, received);
    void *to = received == plan->rank && !in_place ? result : rooms[step % 2];
    TRY(swp_send_receive(plan, sum, swp_blocks_items(operands, sent), side->type, next, to, items, side->type,
                         previous));
    MPI_TRY(MPI_Reduce_local(swp_blocks_at(operands, received), to, items, side->type, call_of(plan)->op));
    sum = to;
  }
  int items = swp_blocks_items(operands, plan->rank);
  if (sum != result)
    TRY(swp_copy(plan, side, sum, items, side, result, items));
done:
  return error;
}

static int ring_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  struct blocks operands = swp_blocks_of_ranks(plan, send == MPI_IN_PLACE ? recv : (void *)send);
  return reduce_scatter(plan, &operands, send == MPI_IN_PLACE, recv);
}

static int ring_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  struct blocks pieces = swp_blocks_of_vector(plan, side, recv, side->count), operands = pieces;
  if (send != MPI_IN_PLACE)
    operands.buffer = (void *)send;
  int error = reduce_scatter(plan, &operands, send == MPI_IN_PLACE, swp_blocks_at(&pieces, plan->rank));
  return error == SWP_SUCCESS ? swp_blocks_ring(plan, &pieces, plan->rank) : error;
}

const struct method swp_collective_ring = {
    .name = "ring",
    .summary = "around a ring of ranks; allreduce as reduce-scatter and allgather",
    .source = "Hartmann, Kuehnemann, Rauber, Ruenger, Adaptive selection of communication methods, 2006",
    .estimate = swp_estimate_textbook,
    .procedures =
        {
            [SWP_ALLREDUCE] = {ring_allreduce, piece_scratch_bytes, swp_commutes},
            [SWP_ALLGATHER] = {ring_allgather},
            [SWP_ALLGATHERV] = {ring_allgather},
            [SWP_REDUCE_SCATTER_BLOCK] = {ring_reduce_scatter_block, block_scratch_bytes, swp_commutes},
        },
};
