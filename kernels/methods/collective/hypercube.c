/*
 * hypercube: an exchange along each of log2 P dimensions. Allreduce and allgather double what a rank has
 * (recursive doubling); reduce_scatter_block halves what it still has to reduce (recursive halving). For
 * other numbers of ranks, some pairs act as one (blocks.h).
 */
#include "blocks.h"
#include "textbook.h"

static int hypercube_allgather(struct swp_plan *plan, const void *send, void *recv) {
  struct blocks blocks = swp_blocks_of_ranks(plan, recv);
  struct fold fold = swp_fold(plan, 0);
  int count = call_of(plan)->recv.count, error = SWP_SUCCESS;
  TRY(swp_blocks_place_own(plan, &blocks, send));
  if (fold.position < 0)
    TRY(swp_send(plan, swp_blocks_at(&blocks, plan->rank), count, blocks.type, fold.partner));
  else if (fold.partner >= 0)
    TRY(swp_receive(plan, swp_blocks_at(&blocks, fold.partner), count, blocks.type, fold.partner));
  TRY(swp_blocks_hypercube(plan, &blocks, &fold));
done:
  return error;
}

/* ---- Allreduce ---- */

static int hypercube_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  struct fold fold = swp_fold(plan, 0);
  void *sum = recv, *other = swp_recv_place(plan, 0);
  int error = SWP_SUCCESS;
  TRY(swp_fold_in(plan, &fold, send == MPI_IN_PLACE ? recv : send, &sum, &other));
  for (int bit = 1; fold.position >= 0 && bit < fold.size; bit *= 2) {
    int peer = swp_fold_rank(&fold, fold.position ^ bit);
    TRY(swp_send_receive(plan, sum, side->count, side->type, peer, other, side->count, side->type, peer));
    TRY(swp_join(plan, &sum, &other, 0, side->count, (fold.position & bit) != 0));
  }
  TRY(swp_fold_out(plan, &fold, sum, recv));
done:
  return error;
}

/* ---- Reduce_scatter_block ---- */

/* Blocks of all ranks, twice: a partial result, and the one received. */
static int64_t halving_scratch_bytes(const struct swp_plan *plan) {
  return 2 * swp_side_room(&call_of(plan)->recv, (int64_t)call_of(plan)->recv.count * plan->procs);
}

/* A partial result, and room for the next one. The first is the operand, which stays unchanged. */
struct halves {
  struct blocks sum, rooms[2];
  int next;
};

/* Joins the blocks received in the room for the next result with those of the partial result. */
static int join_blocks(const struct swp_plan *plan, struct halves *halves, int from, int items) {
  struct blocks *room = &halves->rooms[halves->next];
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Reduce_local(swp_blocks_at(&halves->sum, from), swp_blocks_at(room, from), items, room->type,
                           call_of(plan)->op));
  halves->sum = *room;
  halves->next = 1 - halves->next;
done:
  return error;
}

/* Gives away and joins halves along the dimensions, the widest first, until only the blocks are left for
   which the position stands. */
static int halve(struct swp_plan *plan, const struct fold *fold, struct halves *halves) {
  int error = SWP_SUCCESS;
  for (int bit = fold->size / 2; bit > 0; bit /= 2) {
    const struct blocks *sum = &halves->sum, *room = &halves->rooms[halves->next];
    int kept = fold->position & -bit, given = kept ^ bit, peer = swp_fold_rank(fold, fold->position ^ bit);
    int from = swp_fold_first(fold, kept), given_from = swp_fold_first(fold, given);
    int items = swp_blocks_run(sum, from, swp_fold_first(fold, kept + bit));
    TRY(swp_send_receive(plan, swp_blocks_at(sum, given_from),
                         swp_blocks_run(sum, given_from, swp_fold_first(fold, given + bit)), sum->type, peer,
                         swp_blocks_at(room, from), items, room->type, peer));
    TRY(join_blocks(plan, halves, from, items));
  }
done:
  return error;
}

static int hypercube_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  struct fold fold = swp_fold(plan, 0);
  struct halves halves = {.sum = swp_blocks_of_ranks(plan, send == MPI_IN_PLACE ? recv : (void *)send)};
  int all = (int)halves.sum.items, error = SWP_SUCCESS;
  for (int i = 0; i < 2; i++) {
    halves.rooms[i] = halves.sum;
    halves.rooms[i].buffer =
        swp_side_place(side, all, scratch_of(plan) + (i == 0 ? 0 : swp_side_room(side, all)));
  }
  if (fold.position < 0) {
    TRY(swp_send(plan, halves.sum.buffer, all, side->type, fold.partner));
    return swp_receive(plan, recv, side->count, side->type, fold.partner);
  }
  if (fold.partner >= 0) {
    TRY(swp_receive(plan, halves.rooms[0].buffer, all, side->type, fold.partner));
    TRY(join_blocks(plan, &halves, 0, all));
  }
  TRY(halve(plan, &fold, &halves));
  const void *own = swp_blocks_at(&halves.sum, plan->rank);
  if (own != recv)
    TRY(swp_copy(plan, side, own, side->count, side, recv, side->count));
  if (fold.partner >= 0)
    TRY(swp_send(plan, swp_blocks_at(&halves.sum, fold.partner), side->count, side->type, fold.partner));
done:
  return error;
}

const struct method swp_collective_hypercube = {
    .name = "hypercube",
    .summary = "along the dimensions of a hypercube: recursive doubling and halving",
    .source = "Hartmann, Kuehnemann, Rauber, Ruenger, Adaptive selection of communication methods, 2006",
    .estimate = swp_estimate_textbook,
    .procedures =
        {
            [SWP_ALLREDUCE] = {hypercube_allreduce, swp_recv_room},
            [SWP_ALLGATHER] = {hypercube_allgather, NULL, swp_total_applicable},
            [SWP_REDUCE_SCATTER_BLOCK] = {hypercube_reduce_scatter_block, halving_scratch_bytes,
                                          swp_total_commutes},
        },
};
