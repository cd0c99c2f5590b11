/* pairwise: a rank exchanges blocks with one other rank at a time. */
#include "blocks.h"
#include "textbook.h"

#include <limits.h>

/* ---- Alltoall ---- */

/* The limit of blocks that are exchanged in place. It always applies, as no rank knows which others are in
   place. */
static const char *alltoall_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
  return features->most_bytes <= INT_MAX ? NULL : "the block of a rank is over 2 GiB - 1";
}

/* Room for a block that is sent in place, and for one that arrives packed and is unpacked here: MPICH 4.0.2
   truncates such messages of over 8 KiB if it receives them in a type of several basic ones. */
static int64_t alltoall_scratch_bytes(const struct swp_plan *plan) {
  return (call_of(plan)->recv.dense ? 1 : 2) * plan->features.most_bytes;
}

/* Exchanges blocks, of which one without bytes is no message. */
static int swap(struct swp_plan *plan, int peer, const void *own, int own_count, void *block, int count) {
  const struct side *from = &call_of(plan)->send, *to = &call_of(plan)->recv;
  const bool sends = own_count * from->item_bytes > 0, receives = count * to->item_bytes > 0;
  if (sends && receives)
    return swp_send_receive(plan, own, own_count, from->type, peer, block, count, to->type, peer);
  if (sends)
    return swp_send(plan, own, own_count, from->type, peer);
  return receives ? swp_receive(plan, block, count, to->type, peer) : SWP_SUCCESS;
}

/* Replaces a block by its counterpart, which has as many bytes. */
static int swap_in_place(struct swp_plan *plan, int peer, void *block, int count) {
  const struct side *side = &call_of(plan)->recv;
  const int bytes = (int)(count * side->item_bytes);
  char *out = scratch_of(plan), *in = side->dense ? block : out + plan->features.most_bytes;
  int error = SWP_SUCCESS;
  if (bytes == 0)
    return SWP_SUCCESS;
  TRY(swp_pack(plan, side, block, count, out));
  TRY(swp_send_receive(plan, out, bytes, MPI_PACKED, peer, in, bytes, MPI_PACKED, peer));
  if (!side->dense)
    TRY(swp_unpack(plan, side, in, count, block));
done:
  return error;
}

/* Both of a pair in the same step, so that a block can be replaced by its counterpart; a rank rests in the
   step in which it would be its own. */
static int pairwise_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct blocks all = swp_blocks_of_ranks(plan, recv), sent = swp_blocks_sent(plan, send, recv);
  int error = SWP_SUCCESS;
  if (send != MPI_IN_PLACE)
    TRY(swp_blocks_copy_own(plan, &all, swp_blocks_at(&sent, plan->rank)));
  for (int step = 0; step < plan->procs; step++) {
    int peer = (step - plan->rank + plan->procs) % plan->procs, count = swp_blocks_items(&all, peer);
    void *block = swp_blocks_at(&all, peer);
    if (peer == plan->rank)
      continue;
    if (send == MPI_IN_PLACE)
      TRY(swap_in_place(plan, peer, block, count));
    else
      TRY(swap(plan, peer, swp_blocks_at(&sent, peer), swp_blocks_items(&sent, peer), block, count));
  }
done:
  return error;
}

/* ---- Reduce_scatter_block ---- */

enum { ROOMS = 3 };

static int64_t reduction_scratch_bytes(const struct swp_plan *plan) {
  return ROOMS * swp_recv_room(plan);
}

/*
 * Operands are received from the ranks before this one, then from the last rank down to the next one. Each is
 * joined as the left operand, the second group into a sum of its own: this keeps the order of ranks.
 */
static int pairwise_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  const void *operands = send == MPI_IN_PLACE ? recv : send;
  int procs = plan->procs, count = side->count, error = SWP_SUCCESS;
  void *rooms[ROOMS];
  for (int i = 0; i < ROOMS; i++)
    rooms[i] = swp_recv_place(plan, i);
  void *sum = send == MPI_IN_PLACE ? rooms[1] : recv;
  TRY(swp_copy(plan, side, swp_item(side, operands, (int64_t)plan->rank * count), count, side, sum, count));
  for (int step = 1; step < procs; step++) {
    int to = (plan->rank + step) % procs, from = (plan->rank - step + procs) % procs;
    bool begins = from == procs - 1;
    TRY(swp_send_receive(plan, swp_item(side, operands, (int64_t)to * count), count, side->type, to,
                         rooms[begins ? 2 : 0], count, side->type, from));
    if (!begins)
      MPI_TRY(MPI_Reduce_local(rooms[0], from < plan->rank ? sum : rooms[2], count, side->type, call->op));
  }
  if (plan->rank != procs - 1) {
    MPI_TRY(MPI_Reduce_local(sum, rooms[2], count, side->type, call->op));
    sum = rooms[2];
  }
  if (sum != recv)
    TRY(swp_copy(plan, side, sum, count, side, recv, count));
done:
  return error;
}

const struct method swp_collective_pairwise = {
    .name = "pairwise",
    .summary = "each rank exchanges blocks with one other rank in each of procs - 1 steps",
    .source = "Thakur, Rabenseifner, Gropp, Optimization of collective communication in MPICH, 2005",
    .estimate = swp_estimate_textbook,
    .procedures =
        {
            [SWP_ALLTOALL] = {pairwise_alltoall, alltoall_scratch_bytes, alltoall_applicable},
            [SWP_ALLTOALLV] = {pairwise_alltoall, alltoall_scratch_bytes, alltoall_applicable},
            [SWP_REDUCE_SCATTER_BLOCK] = {pairwise_reduce_scatter_block, reduction_scratch_bytes},
        },
};
