#include "vendor_bytes.h"

static bool is_packed(const struct side *side) {
  return side->type != MPI_DATATYPE_NULL && !side->dense;
}

static int64_t send_items(const struct swp_plan *plan) {
  bool all = plan->operation == SWP_SCATTER || plan->operation == SWP_ALLTOALL;
  return (int64_t)plan->call->send.count * (all ? plan->procs : 1);
}

static int64_t recv_items(const struct swp_plan *plan, const struct side *side) {
  bool one = plan->operation == SWP_BCAST || plan->operation == SWP_SCATTER;
  return (int64_t)side->count * (one ? 1 : plan->procs);
}

/* ---- Scratch: the counts and places of an allgatherv, the bytes of recv, the bytes of send ---- */

static int64_t counts_bytes(const struct swp_plan *plan) {
  return plan->operation == SWP_ALLGATHERV ? 2 * (int64_t)plan->procs * (int64_t)sizeof(int) : 0;
}

/* The blocks of an allgatherv are bytes in recv where they lie in a row. */
static bool is_recv_packed(const struct swp_plan *plan) {
  if (plan->operation == SWP_ALLGATHERV)
    return swp_find_row(plan->call, plan->procs) < 0;
  return is_packed(&plan->call->recv);
}

static int64_t recv_bytes(const struct swp_plan *plan) {
  if (!is_recv_packed(plan))
    return 0;
  return plan->operation == SWP_ALLGATHERV
             ? plan->features.total_bytes
             : recv_items(plan, &plan->call->recv) * plan->call->recv.item_bytes;
}

static int64_t send_bytes(const struct swp_plan *plan) {
  return is_packed(&plan->call->send) ? send_items(plan) * plan->call->send.item_bytes : 0;
}

int64_t swp_bytes_scratch_bytes(const struct swp_plan *plan) {
  return counts_bytes(plan) + recv_bytes(plan) + send_bytes(plan);
}

/* ---- To bytes ---- */

/* What a collective reads from recv: the vector of a bcast, and in place the rank's block, or all blocks. */
static int pack_recv(const struct swp_plan *plan, const void *send, const void *recv, char *bytes,
                     int64_t own_place) {
  const struct side *side = &plan->call->recv;
  if (plan->operation == SWP_BCAST)
    return plan->rank == plan->features.root ? swp_pack(plan, side, recv, side->count, bytes) : SWP_SUCCESS;
  if (send != MPI_IN_PLACE)
    return SWP_SUCCESS;
  if (plan->operation == SWP_ALLTOALL)
    return swp_pack(plan, side, recv, recv_items(plan, side), bytes);
  return swp_pack_own(plan, send, recv, bytes + own_place);
}

static void count_blocks(const struct swp_plan *plan, int *counts) {
  const struct call *call = plan->call;
  int *places = counts + plan->procs, at = 0;
  for (int i = 0; i < plan->procs; i++) {
    counts[i] = (int)(call->recv_counts[i] * call->recv.item_bytes);
    places[i] = at;
    at += counts[i];
  }
}

static struct side bytes_side(int64_t bytes) {
  return (struct side){
      .count = (int)bytes, .type = MPI_BYTE, .item_bytes = 1, .extent = 1, .span = 1, .dense = true};
}

static bool is_reduction(const struct swp_plan *plan) {
  return plan->operation == SWP_REDUCE || plan->operation == SWP_ALLREDUCE ||
         plan->operation == SWP_REDUCE_SCATTER_BLOCK;
}

int swp_bytes_begin(struct swp_plan *plan, const void **send, void **recv, struct items *items) {
  struct call *call = plan->call;
  bool listed = plan->operation == SWP_ALLGATHERV;
  int *counts = (int *)(void *)call->scratch, error = SWP_SUCCESS;
  char *recv_image = call->scratch + counts_bytes(plan), *send_image = recv_image + recv_bytes(plan);
  int64_t own_bytes = plan->features.bytes, own_place = plan->rank * plan->features.bytes;
  if (is_reduction(plan))
    return SWP_SUCCESS;
  *items = (struct items){*call, *recv};
  if (listed) {
    count_blocks(plan, counts);
    own_bytes = counts[plan->rank];
    own_place = counts[plan->procs + plan->rank];
  }
  if (*recv != MPI_IN_PLACE && is_recv_packed(plan)) {
    TRY(pack_recv(plan, *send, *recv, recv_image, own_place));
    *recv = recv_image;
  } else if (listed) {
    *recv = swp_item(&call->recv, *recv, swp_find_row(call, plan->procs));
  }
  if (*send != MPI_IN_PLACE && is_packed(&call->send)) {
    TRY(swp_pack(plan, &call->send, *send, send_items(plan), send_image));
    *send = send_image;
  }
  call->send = call->recv = bytes_side(own_bytes);
  call->recv_counts = listed ? counts : NULL;
  call->displs = listed ? counts + plan->procs : NULL;
done:
  return error;
}

/* ---- To items ---- */

int swp_bytes_end(struct swp_plan *plan, const struct items *items, const void *bytes, int error) {
  const int *places = plan->call->displs;
  struct call *call = plan->call;
  const struct side *side = &call->recv;
  if (is_reduction(plan))
    return error;
  *call = items->call;
  bool is_source = plan->operation == SWP_BCAST && plan->rank == plan->features.root;
  if (error != SWP_SUCCESS || items->recv == MPI_IN_PLACE || !is_recv_packed(plan) || is_source)
    return error;
  if (plan->operation != SWP_ALLGATHERV)
    return swp_unpack(plan, side, bytes, recv_items(plan, side), items->recv);
  for (int i = 0; i < plan->procs; i++)
    TRY(swp_unpack(plan, side, (const char *)bytes + places[i], call->recv_counts[i],
                   swp_item(side, items->recv, call->displs[i])));
done:
  return error;
}
