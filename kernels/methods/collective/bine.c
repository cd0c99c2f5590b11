/*
 * bine: binomial negabinary trees (arXiv 2508.17311), and butterflies whose distances are sums of powers of
 * -2: 1, 1, 3, 5, 11, … Over the coordinates of a torus these are those of Swing (arXiv 2401.09356). Blocks
 * go far first, as long as they are few; a reduction goes the same way back. For other numbers of ranks than
 * powers of two, some pairs act as one (blocks.h).
 */
#include "blocks.h"
#include "textbook.h"
#include "tree.h"

#include <stdio.h>
#include <string.h>

enum { GRID, ALIKE = 4, ALIGNMENT = 16 };

static void bine_tree(const struct swp_plan *plan, int root, struct tree *tree) {
  swp_tree_bine(plan, root, !plan->features.commutative, tree);
}

/* ---- The butterfly ---- */

/* An exchange with the position that differs in one coordinate. */
struct step {
  int stride, size; /* of the coordinate; sizes are powers of two */
  int64_t distance; /* for an even coordinate, negative the other way */
  int index;        /* among the coordinate's steps, nearest first */
};

struct butterfly {
  struct fold fold;
  int nsteps;
  struct step steps[31]; /* nearest first; all dimensions in turn */
};

/* The distance of a rank after n steps is the sum of the powers of -2 up to that of the last one. */
static int64_t distance_of(int n) {
  return (1 - (n % 2 == 0 ? 1 : -1) * (1LL << n)) / 3;
}

static struct butterfly find_butterfly(const struct swp_plan *plan) {
  struct butterfly butterfly = {.fold = swp_fold(plan, 0)};
  const struct argument *grid = &plan->spec.arguments[GRID];
  const int one = butterfly.fold.size, ndims = grid->given ? (int)grid->value : 1;
  const int *sizes = grid->given ? grid->sizes : &one;
  for (int index = 0; 1LL << butterfly.nsteps < butterfly.fold.size; index++)
    for (int d = 0, stride = 1; d < ndims; stride *= sizes[d++])
      if (1LL << index < sizes[d])
        butterfly.steps[butterfly.nsteps++] = (struct step){stride, sizes[d], distance_of(index + 1), index};
  return butterfly;
}

static int coordinate_of(const struct step *step, int position) {
  return position / step->stride % step->size;
}

/* A coordinate this much further on, or back if it is odd. */
static int64_t moved(const struct step *step, int coordinate, int64_t distance) {
  return (coordinate + (coordinate % 2 == 0 ? distance : -distance)) & (step->size - 1);
}

static int peer_of(const struct step *step, int position) {
  const int coordinate = coordinate_of(step, position);
  return position + (int)(moved(step, coordinate, step->distance) - coordinate) * step->stride;
}

/*
 * The place of a position's blocks: those that a position has after the n farthest steps follow each other,
 * as they have the same upper bits. The farthest step joins an even coordinate with an odd one; others join
 * two whose halves, of the even one of each such pair, differ in one bit.
 */
static int slot_of(const struct butterfly *butterfly, int position) {
  int slot = 0;
  for (int i = 0; i < butterfly->nsteps; i++) {
    const struct step *step = &butterfly->steps[i];
    const int coordinate = coordinate_of(step, position);
    int steps = 0;
    while (1LL << steps < step->size)
      steps++;
    int64_t even = coordinate % 2 == 0 ? coordinate : moved(step, coordinate, distance_of(steps));
    int64_t bit = step->index == steps - 1 ? coordinate : even >> (step->index + 1);
    slot |= (int)(bit & 1) << (butterfly->nsteps - 1 - i);
  }
  return slot;
}

/* The slots that a position has before this step of an allgather. */
static int bit_of(const struct butterfly *butterfly, int step) {
  return 1 << (butterfly->nsteps - 1 - step);
}

static int peer_rank(const struct butterfly *butterfly, int step) {
  return swp_fold_rank(&butterfly->fold, peer_of(&butterfly->steps[step], butterfly->fold.position));
}

/* ---- Blocks by slots ---- */

/* In scratch, before anything else: the first item of each slot, and the slot of each position. */
struct order {
  int *begin, *slot;
};

static int64_t order_bytes(const struct swp_plan *plan) {
  return (2 * (int64_t)plan->procs + 1) * (int64_t)sizeof(int);
}

static struct order find_order(const struct swp_plan *plan, const struct butterfly *butterfly) {
  const struct fold *fold = &butterfly->fold;
  struct order order = {(int *)(void *)scratch_of(plan), (int *)(void *)scratch_of(plan) + fold->size + 1};
  order.begin[0] = 0;
  for (int i = 0; i < fold->size; i++) {
    order.slot[i] = slot_of(butterfly, i);
    order.begin[order.slot[i] + 1] =
        (swp_fold_first(fold, i + 1) - swp_fold_first(fold, i)) * call_of(plan)->recv.count;
  }
  for (int i = 0; i < fold->size; i++)
    order.begin[i + 1] += order.begin[i];
  return order;
}

/* The blocks that a position stands for: in memory by rank, and by slot; and their items. */
struct pieces {
  void *by_rank, *by_slot;
  int items;
};

static struct pieces pieces_at(const struct blocks *by_rank, const struct blocks *by_slot,
                               const struct butterfly *butterfly, const struct order *order, int position) {
  const int first = swp_fold_first(&butterfly->fold, position), slot = order->slot[position];
  return (struct pieces){swp_blocks_at(by_rank, first), swp_blocks_at(by_slot, slot),
                         swp_blocks_run(by_slot, slot, slot + 1)};
}

/* ---- Allgather ---- */

static int64_t allgather_scratch_bytes(const struct swp_plan *plan) {
  return order_bytes(plan) + plan->features.total_bytes;
}

/* A position has its own slot, and twice as many after each step. */
static int gather_slots(struct swp_plan *plan, const struct butterfly *butterfly, int slot,
                        const struct blocks *slots, MPI_Datatype type, int item_count) {
  int error = SWP_SUCCESS;
  for (int i = butterfly->nsteps - 1; i >= 0; i--) {
    const int bit = bit_of(butterfly, i), peer = peer_rank(butterfly, i);
    const int own = slot & -bit, other = own ^ bit;
    TRY(swp_send_receive(plan, swp_blocks_at(slots, own), swp_blocks_run(slots, own, own + bit) * item_count,
                         type, peer, swp_blocks_at(slots, other),
                         swp_blocks_run(slots, other, other + bit) * item_count, type, peer));
  }
done:
  return error;
}

static int bine_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  const struct butterfly butterfly = find_butterfly(plan);
  const struct fold *fold = &butterfly.fold;
  struct blocks blocks = swp_blocks_of_ranks(plan, recv), packed = blocks;
  int error = SWP_SUCCESS;
  TRY(swp_blocks_place_own(plan, &blocks, send));
  if (fold->position < 0) {
    TRY(swp_send(plan, swp_blocks_at(&blocks, plan->rank), side->count, side->type, fold->partner));
    return swp_receive(plan, recv, (int)blocks.items, side->type, fold->partner);
  }
  if (fold->partner >= 0)
    TRY(swp_receive(plan, swp_blocks_at(&blocks, fold->partner), side->count, side->type, fold->partner));
  const struct order order = find_order(plan, &butterfly);
  packed.buffer = scratch_of(plan) + order_bytes(plan);
  packed.extent = side->item_bytes;
  packed.displs = order.begin;
  struct pieces own = pieces_at(&blocks, &packed, &butterfly, &order, fold->position);
  TRY(swp_pack(plan, side, own.by_rank, own.items, own.by_slot));
  TRY(gather_slots(plan, &butterfly, order.slot[fold->position], &packed, MPI_PACKED, (int)side->item_bytes));
  for (int i = 0; i < fold->size; i++) {
    struct pieces came = pieces_at(&blocks, &packed, &butterfly, &order, i);
    if (i != fold->position)
      TRY(swp_unpack(plan, side, came.by_slot, came.items, came.by_rank));
  }
  if (fold->partner >= 0)
    TRY(swp_send(plan, recv, (int)blocks.items, side->type, fold->partner));
done:
  return error;
}

/* ---- Reductions ---- */

/* The way back: reduces the items of this rank's slot, and gives away half of the others in each step. */
static int reduce_slots(struct swp_plan *plan, const struct butterfly *butterfly, int slot,
                        const struct blocks *slots, void *came) {
  MPI_Datatype type = call_of(plan)->recv.type;
  int error = SWP_SUCCESS;
  for (int i = 0; i < butterfly->nsteps; i++) {
    const int bit = bit_of(butterfly, i), peer = peer_rank(butterfly, i);
    const int own = slot & -bit, given = own ^ bit, items = swp_blocks_run(slots, own, own + bit);
    TRY(swp_send_receive(plan, swp_blocks_at(slots, given), swp_blocks_run(slots, given, given + bit), type,
                         peer, came, items, type, peer));
    MPI_TRY(MPI_Reduce_local(came, swp_blocks_at(slots, own), items, type, call_of(plan)->op));
  }
done:
  return error;
}

/* A vector is cut for the slots, so nothing is sorted. */
static int bine_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  const struct butterfly butterfly = find_butterfly(plan);
  const struct fold *fold = &butterfly.fold;
  struct blocks slots = swp_blocks_of_vector(plan, side, recv, side->count);
  void *sum = recv, *came = swp_recv_place(plan, 0);
  int error = SWP_SUCCESS;
  slots.n = fold->size;
  TRY(swp_fold_in(plan, fold, send == MPI_IN_PLACE ? recv : send, &sum, &came));
  if (fold->position >= 0) {
    const int slot = slot_of(&butterfly, fold->position);
    TRY(reduce_slots(plan, &butterfly, slot, &slots, came));
    TRY(gather_slots(plan, &butterfly, slot, &slots, side->type, 1));
  }
  TRY(swp_fold_out(plan, fold, sum, recv));
done:
  return error;
}

/* Blocks of all ranks, twice: a partial result, and the one received. Places in them are aligned. */
static int64_t blocks_room(const struct swp_plan *plan) {
  return swp_side_room(&call_of(plan)->recv, (int64_t)call_of(plan)->recv.count * plan->procs);
}

static int64_t halving_scratch_bytes(const struct swp_plan *plan) {
  return order_bytes(plan) + ALIGNMENT + 2 * blocks_room(plan);
}

static int bine_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  const struct butterfly butterfly = find_butterfly(plan);
  const struct fold *fold = &butterfly.fold;
  const struct blocks operands = swp_blocks_of_ranks(plan, send == MPI_IN_PLACE ? recv : (void *)send);
  const int all = (int)operands.items;
  struct blocks sum = operands, came = operands;
  char *rooms = scratch_of(plan) + (order_bytes(plan) / ALIGNMENT + 1) * ALIGNMENT;
  int error = SWP_SUCCESS;
  if (fold->position < 0) {
    TRY(swp_send(plan, operands.buffer, all, side->type, fold->partner));
    return swp_receive(plan, recv, side->count, side->type, fold->partner);
  }
  const struct order order = find_order(plan, &butterfly);
  sum.buffer = swp_side_place(side, all, rooms);
  sum.displs = order.begin;
  came.buffer = swp_side_place(side, all, rooms + blocks_room(plan));
  if (fold->partner >= 0)
    TRY(swp_receive(plan, came.buffer, all, side->type, fold->partner));
  for (int i = 0; i < fold->size; i++) {
    const struct pieces own = pieces_at(&operands, &sum, &butterfly, &order, i);
    const struct pieces partners = pieces_at(&came, &sum, &butterfly, &order, i);
    TRY(swp_copy(plan, side, own.by_rank, own.items, side, own.by_slot, own.items));
    if (fold->partner >= 0)
      MPI_TRY(MPI_Reduce_local(partners.by_rank, own.by_slot, own.items, side->type, call_of(plan)->op));
  }
  const int slot = order.slot[fold->position];
  TRY(reduce_slots(plan, &butterfly, slot, &sum, came.buffer));
  const char *own = swp_blocks_at(&sum, slot);
  TRY(swp_copy(plan, side, own, side->count, side, recv, side->count));
  if (fold->partner >= 0)
    TRY(swp_send(plan, own + side->count * side->extent, side->count, side->type, fold->partner));
done:
  return error;
}

/* ---- Alltoall ---- */

/* All blocks, twice, and those that a step receives: half of them. */
static int64_t alltoall_scratch_bytes(const struct swp_plan *plan) {
  return (2 * plan->procs + plan->procs / 2) * plan->features.bytes;
}

/* The rank whose block is the index-th of those that have come here after all steps. */
static int origin_of(const struct butterfly *butterfly, int index) {
  int position = butterfly->fold.position;
  for (int i = butterfly->nsteps; i-- > 0;)
    if ((index >> i & 1) != 0)
      position = peer_of(&butterfly->steps[i], position);
  return position;
}

/* Blocks lie by the slots of their receivers, and for each by where they came from: those that this rank had
   before the peer's. In each step those for the peer's half of the slots go. */
static int bine_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *from = send == MPI_IN_PLACE ? &call->recv : &call->send, *to = &call->recv;
  const void *source = send == MPI_IN_PLACE ? recv : send;
  const struct butterfly butterfly = find_butterfly(plan);
  const int slot = slot_of(&butterfly, plan->rank);
  const int64_t block = plan->features.bytes, all = plan->procs * block;
  char *blocks = scratch_of(plan), *next = blocks + all, *came = next + all;
  int error = SWP_SUCCESS;
  for (int i = 0; i < plan->procs; i++)
    TRY(swp_pack(plan, from, swp_item(from, source, (int64_t)i * from->count), from->count,
                 blocks + slot_of(&butterfly, i) * block));
  for (int i = 0; i < butterfly.nsteps; i++) {
    const int half = bit_of(&butterfly, i), peer = peer_rank(&butterfly, i);
    const size_t bytes = (size_t)block << i; /* for each receiver */
    char *own = blocks + ((slot & half) != 0 ? half : 0) * (int64_t)bytes;
    char *given = blocks + ((slot & half) != 0 ? 0 : half) * (int64_t)bytes;
    TRY(swp_send_receive(plan, given, (int)(all / 2), MPI_PACKED, peer, came, (int)(all / 2), MPI_PACKED,
                         peer));
    for (int k = 0; k < half; k++) {
      memcpy(next + 2 * (size_t)k * bytes, own + (size_t)k * bytes, bytes);
      memcpy(next + (2 * (size_t)k + 1) * bytes, came + (size_t)k * bytes, bytes);
    }
    char *joined = next;
    next = blocks;
    blocks = joined;
  }
  for (int i = 0; i < plan->procs; i++)
    TRY(swp_unpack(plan, to, blocks + i * block, to->count,
                   swp_item(to, recv, (int64_t)origin_of(&butterfly, i) * to->count)));
done:
  return error;
}

/* ---- Which calls ---- */

static bool is_power_of_two(int number) {
  return number > 0 && (number & (number - 1)) == 0;
}

static const char *bine_applicable(const struct spec *spec, const struct features *features) {
  const struct argument *grid = &spec->arguments[GRID];
  int64_t product = 1;
  if (!grid->given)
    return NULL;
  for (int d = 0; d < grid->value; d++) {
    if (!is_power_of_two(grid->sizes[d]) || product > features->procs)
      return "the sizes of the grid must be powers of two that multiply to the number of ranks";
    product *= grid->sizes[d];
  }
  return product == features->procs ? NULL : "the sizes of the grid must multiply to the number of ranks";
}

static const char *tree_applicable(const struct spec *spec, const struct features *features) {
  (void)features;
  return spec->arguments[GRID].given ? "its trees have no grid" : NULL;
}

static const char *blocks_applicable(const struct spec *spec, const struct features *features) {
  const char *why = tree_applicable(spec, features);
  return why != NULL ? why : swp_total_applicable(spec, features);
}

static const char *alltoall_applicable(const struct spec *spec, const struct features *features) {
  if (!is_power_of_two(features->procs))
    return "the number of ranks is no power of two";
  return swp_total_applicable(spec, features);
}

/* There is no variant where distances are as in binomial, nor with a grid: nothing here knows of a torus. */
static bool bine_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  if (operation == SWP_ALLTOALL && !is_power_of_two(procs))
    return false;
  return index == 0 && procs > ALIKE && snprintf(text, length, "bine") > 0;
}

const struct method swp_collective_bine = {
    .name = "bine",
    .summary = "along binomial negabinary trees and butterflies, which keep data near",
    .source = "De Sensi et al., Bine trees, SC 2025; of a grid: Swing, NSDI 2024",
    .usage = "grid=AxBx... (powers of two; not of trees: bcast, gather, scatter, reduce)",
    .parameters = {[GRID] = {.name = "grid", .type = PARAMETER_GRID, .low = 1, .high = 1 << 30}},
    .variant = bine_variant,
    .applicable = bine_applicable,
    .estimate = swp_estimate_textbook,
    .tree = bine_tree,
    .procedures =
        {
            [SWP_BCAST] = {swp_tree_bcast, NULL, tree_applicable},
            [SWP_GATHER] = {swp_tree_gather, swp_tree_gather_scratch_bytes, blocks_applicable},
            [SWP_SCATTER] = {swp_tree_scatter, swp_tree_scatter_scratch_bytes, blocks_applicable},
            [SWP_REDUCE] = {swp_tree_reduce, swp_tree_reduce_scratch_bytes, tree_applicable},
            [SWP_ALLREDUCE] = {bine_allreduce, swp_recv_room, swp_commutes},
            [SWP_ALLGATHER] = {bine_allgather, allgather_scratch_bytes, swp_total_applicable},
            [SWP_ALLTOALL] = {bine_alltoall, alltoall_scratch_bytes, alltoall_applicable},
            [SWP_REDUCE_SCATTER_BLOCK] = {bine_reduce_scatter_block, halving_scratch_bytes,
                                          swp_total_commutes},
        },
};
