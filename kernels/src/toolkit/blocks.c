/* Memory in blocks, one for each rank, hypercubes of ranks, and how ranks with a block each gather all. */
#include "blocks.h"

#include "radix.h"

#include <string.h>

struct blocks swp_blocks_of_vector(const struct swp_plan *plan, const struct side *side, void *vector,
                                   int64_t items) {
  return (struct blocks){
      .buffer = vector, .type = side->type, .extent = side->extent, .n = plan->procs, .items = items};
}

struct blocks swp_blocks_of_ranks(const struct swp_plan *plan, void *recv) {
  const struct call *call = call_of(plan);
  struct blocks blocks =
      swp_blocks_of_vector(plan, &call->recv, recv, (int64_t)call->recv.count * plan->procs);
  if (swp_is_listed(plan->operation)) {
    blocks.counts = call->recv_counts;
    blocks.displs = call->displs;
  }
  return blocks;
}

struct blocks swp_blocks_sent(const struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  if (send == MPI_IN_PLACE)
    return swp_blocks_of_ranks(plan, recv);
  struct blocks blocks =
      swp_blocks_of_vector(plan, &call->send, (void *)send, (int64_t)call->send.count * plan->procs);
  blocks.counts = call->send_counts;
  blocks.displs = call->send_displs;
  return blocks;
}

int swp_blocks_pack(const struct swp_plan *plan, const struct blocks *blocks, const struct side *side,
                    char *bytes) {
  int error = SWP_SUCCESS;
  for (int i = 0; i < blocks->n; i++) {
    const int items = swp_blocks_items(blocks, i);
    TRY(swp_pack(plan, side, swp_blocks_at(blocks, i), items, bytes));
    bytes += items * side->item_bytes;
  }
done:
  return error;
}

int swp_blocks_unpack(const struct swp_plan *plan, const struct blocks *blocks, const struct side *side,
                      const char *bytes) {
  int error = SWP_SUCCESS;
  for (int i = 0; i < blocks->n; i++) {
    const int items = swp_blocks_items(blocks, i);
    TRY(swp_unpack(plan, side, bytes, items, swp_blocks_at(blocks, i)));
    bytes += items * side->item_bytes;
  }
done:
  return error;
}

void swp_blocks_transpose(const char *from, int rows, int columns, int64_t bytes, char *to) {
  for (int column = 0; column < columns; column++)
    for (int row = 0; row < rows; row++, to += bytes)
      memcpy(to, from + ((int64_t)row * columns + column) * bytes, (size_t)bytes);
}

int swp_blocks_place_own(const struct swp_plan *plan, const struct blocks *blocks, const void *send) {
  return send == MPI_IN_PLACE ? SWP_SUCCESS : swp_blocks_copy_own(plan, blocks, send);
}

int swp_blocks_copy_own(const struct swp_plan *plan, const struct blocks *blocks, const void *send) {
  const struct call *call = call_of(plan);
  return swp_copy(plan, &call->send, send, call->send.count, &call->recv, swp_blocks_at(blocks, plan->rank),
                  swp_blocks_items(blocks, plan->rank));
}

int swp_blocks_ring(struct swp_plan *plan, const struct blocks *blocks, int own) {
  int n = blocks->n, next = (plan->rank + 1) % n, previous = (plan->rank + n - 1) % n, error = SWP_SUCCESS;
  for (int step = 1; step < n; step++) {
    int sent = (own - step + 1 + n) % n, received = (own - step + n) % n;
    TRY(swp_send_receive(plan, swp_blocks_at(blocks, sent), swp_blocks_items(blocks, sent), blocks->type,
                         next, swp_blocks_at(blocks, received), swp_blocks_items(blocks, received),
                         blocks->type, previous));
  }
done:
  return error;
}

struct fold swp_fold(const struct swp_plan *plan, int root) {
  return swp_fold_of(plan, root, swp_radix_positions(plan->procs, 2));
}

struct fold swp_fold_of(const struct swp_plan *plan, int root, int size) {
  struct fold fold = {
      .procs = plan->procs, .root = root, .size = size, .pairs = plan->procs - size, .partner = -1};
  int index = (plan->rank - root + plan->procs) % plan->procs;
  if (index >= 2 * fold.pairs) {
    fold.position = index - fold.pairs;
  } else {
    fold.position = index % 2 == 0 ? index / 2 : -1;
    fold.partner = (index + (index % 2 == 0 ? 1 : -1) + root) % plan->procs;
  }
  return fold;
}

int swp_fold_in(struct swp_plan *plan, const struct fold *fold, const void *own, void **sum, void **other) {
  const struct side *side = &call_of(plan)->recv;
  int error = SWP_SUCCESS;
  if (fold->position < 0)
    return swp_send(plan, own, side->count, side->type, fold->partner);
  if (own != *sum)
    TRY(swp_copy(plan, side, own, side->count, side, *sum, side->count));
  if (fold->partner >= 0) {
    TRY(swp_receive(plan, *other, side->count, side->type, fold->partner));
    TRY(swp_join(plan, sum, other, 0, side->count, false));
  }
done:
  return error;
}

int swp_fold_out(struct swp_plan *plan, const struct fold *fold, const void *sum, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  int error = SWP_SUCCESS;
  if (fold->position < 0)
    return swp_receive(plan, recv, side->count, side->type, fold->partner);
  if (sum != recv)
    TRY(swp_copy(plan, side, sum, side->count, side, recv, side->count));
  if (fold->partner >= 0)
    TRY(swp_send(plan, recv, side->count, side->type, fold->partner));
done:
  return error;
}

int swp_blocks_hypercube(struct swp_plan *plan, const struct blocks *blocks, const struct fold *fold) {
  int error = SWP_SUCCESS;
  if (fold->position < 0)
    return swp_receive(plan, blocks->buffer, (int)blocks->items, blocks->type, fold->partner);
  for (int bit = 1; bit < fold->size; bit *= 2) {
    int own = fold->position & -bit, other = own ^ bit;
    int sent = swp_fold_first(fold, own), received = swp_fold_first(fold, other);
    int peer = swp_fold_rank(fold, fold->position ^ bit);
    TRY(swp_send_receive(
        plan, swp_blocks_at(blocks, sent), swp_blocks_run(blocks, sent, swp_fold_first(fold, own + bit)),
        blocks->type, peer, swp_blocks_at(blocks, received),
        swp_blocks_run(blocks, received, swp_fold_first(fold, other + bit)), blocks->type, peer));
  }
  if (fold->partner >= 0)
    TRY(swp_send(plan, blocks->buffer, (int)blocks->items, blocks->type, fold->partner));
done:
  return error;
}
