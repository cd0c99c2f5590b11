/*
 * bruck: ceil(log2 P) steps for any number of ranks P. Blocks lie packed in the order in which they are met:
 * for an allgather from the rank's own one on, for an alltoall by the distance that they have to go.
 */
#include "blocks.h"
#include "textbook.h"

#include <string.h>

/* ---- Allgather ---- */

static int64_t allgather_scratch_bytes(const struct swp_plan *plan) {
  return plan->features.total_bytes;
}

/* Bytes of this many blocks, beginning with a rank's. */
static int run_bytes(const struct swp_plan *plan, const struct blocks *blocks, int first, int count) {
  int64_t items = 0;
  for (int i = 0; i < count; i++)
    items += swp_blocks_items(blocks, (first + i) % plan->procs);
  return (int)(items * call_of(plan)->recv.item_bytes);
}

static int bruck_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  struct blocks blocks = swp_blocks_of_ranks(plan, recv);
  int procs = plan->procs, rank = plan->rank, error = SWP_SUCCESS;
  int own_bytes = run_bytes(plan, &blocks, rank, 1), bytes = own_bytes;
  TRY(swp_blocks_place_own(plan, &blocks, send));
  TRY(swp_pack(plan, &call->recv, swp_blocks_at(&blocks, rank), swp_blocks_items(&blocks, rank),
               scratch_of(plan)));
  for (int distance = 1; distance < procs; distance *= 2) {
    int count = distance < procs - distance ? distance : procs - distance;
    int came = run_bytes(plan, &blocks, (rank + distance) % procs, count);
    TRY(swp_send_receive(plan, scratch_of(plan), run_bytes(plan, &blocks, rank, count), MPI_PACKED,
                         (rank - distance + procs) % procs, scratch_of(plan) + bytes, came, MPI_PACKED,
                         (rank + distance) % procs));
    bytes += came;
  }
  bytes = own_bytes;
  for (int i = 1; i < procs; i++) {
    int block = (rank + i) % procs;
    TRY(swp_unpack(plan, &call->recv, scratch_of(plan) + bytes, swp_blocks_items(&blocks, block),
                   swp_blocks_at(&blocks, block)));
    bytes += run_bytes(plan, &blocks, block, 1);
  }
done:
  return error;
}

/* ---- Alltoall ---- */

/* All blocks, and those that a step sends and receives: at most half of them. */
static int64_t alltoall_scratch_bytes(const struct swp_plan *plan) {
  return (plan->procs + 2 * (plan->procs / 2)) * plan->features.bytes;
}

/* Sends on the blocks whose distance has the bit `distance`; received blocks take their places. */
static int forward(struct swp_plan *plan, int distance) {
  int procs = plan->procs, count = 0, error = SWP_SUCCESS;
  size_t block = (size_t)plan->features.bytes;
  char *blocks = scratch_of(plan), *out = blocks + (size_t)procs * block;
  char *in = out + (size_t)(procs / 2) * block;
  for (int i = distance; i < procs; i++)
    if ((i & distance) != 0)
      memcpy(out + (size_t)count++ * block, blocks + (size_t)i * block, block);
  TRY(swp_send_receive(plan, out, count * (int)block, MPI_PACKED, (plan->rank + distance) % procs, in,
                       count * (int)block, MPI_PACKED, (plan->rank - distance + procs) % procs));
  count = 0;
  for (int i = distance; i < procs; i++)
    if ((i & distance) != 0)
      memcpy(blocks + (size_t)i * block, in + (size_t)count++ * block, block);
done:
  return error;
}

static int bruck_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *from = send == MPI_IN_PLACE ? &call->recv : &call->send, *to = &call->recv;
  const void *source = send == MPI_IN_PLACE ? recv : send;
  int procs = plan->procs, rank = plan->rank, error = SWP_SUCCESS;
  int64_t block = plan->features.bytes;
  for (int i = 0; i < procs; i++)
    TRY(swp_pack(plan, from, swp_item(from, source, (int64_t)((rank + i) % procs) * from->count), from->count,
                 scratch_of(plan) + i * block));
  for (int distance = 1; distance < procs; distance *= 2)
    TRY(forward(plan, distance));
  for (int i = 0; i < procs; i++)
    TRY(swp_unpack(plan, to, scratch_of(plan) + i * block, to->count,
                   swp_item(to, recv, (int64_t)((rank - i + procs) % procs) * to->count)));
done:
  return error;
}

const struct method swp_collective_bruck = {
    .name = "bruck",
    .summary = "ceil(log2 P) steps that forward packed blocks, for any number of ranks",
    .source =
        "Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient algorithms for all-to-all communications, 1997",
    .estimate = swp_estimate_textbook,
    .procedures =
        {
            [SWP_ALLGATHER] = {bruck_allgather, allgather_scratch_bytes, swp_total_applicable},
            [SWP_ALLGATHERV] = {bruck_allgather, allgather_scratch_bytes, swp_total_applicable},
            [SWP_ALLTOALL] = {bruck_alltoall, alltoall_scratch_bytes, swp_total_applicable},
        },
};
