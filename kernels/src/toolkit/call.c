/* Functions that the methods of collectives share: items in memory and in messages. */
#include "call.h"

#include "allocate.h"

#include <limits.h>
#include <string.h>

enum { ALIGNMENT = 16 };

static MPI_Aint round_down(MPI_Aint offset) {
  return offset - ((offset % ALIGNMENT) + ALIGNMENT) % ALIGNMENT;
}

int64_t swp_side_room(const struct side *side, int64_t count) {
  MPI_Aint extent = side->extent < 0 ? -side->extent : side->extent;
  return count > 0 ? swp_round_up((count - 1) * extent + side->span, ALIGNMENT) + ALIGNMENT : 0;
}

void *swp_side_place(const struct side *side, int64_t count, char *scratch) {
  MPI_Aint low = side->low + (side->extent < 0 ? (count - 1) * side->extent : 0);
  return (void *)((uintptr_t)scratch - (uintptr_t)round_down(low));
}

int64_t swp_recv_room(const struct swp_plan *plan) {
  const struct side *side = &call_of(plan)->recv;
  return swp_side_room(side, side->count);
}

void *swp_recv_place(const struct swp_plan *plan, int index) {
  const struct side *side = &call_of(plan)->recv;
  return swp_side_place(side, side->count, scratch_of(plan) + index * swp_recv_room(plan));
}

/* A message of the rank to itself copies what neither memcpy nor MPI_Pack can. */
static int copy_by_message(const struct swp_plan *plan, const void *from, int count, MPI_Datatype type,
                           void *to, int to_count, MPI_Datatype to_type) {
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Sendrecv(from, count, type, plan->rank, COLLECTIVE_TAG, to, to_count, to_type, plan->rank,
                       COLLECTIVE_TAG, plan->comm, MPI_STATUS_IGNORE));
done:
  return error;
}

int swp_pack(const struct swp_plan *plan, const struct side *side, const void *buffer, int64_t count,
             char *bytes) {
  int error = SWP_SUCCESS, position = 0;
  int64_t size = count * side->item_bytes;
  if (side->dense) {
    memcpy(bytes, buffer, (size_t)size);
    return SWP_SUCCESS;
  }
  if (buffer != MPI_BOTTOM) /* which MPICH 4.0.2 refuses */
    MPI_TRY(MPI_Pack(buffer, (int)count, side->type, bytes, (int)size, &position, plan->comm));
  if (position < size) /* MPICH 4.0.2 packs only a part of types made when some 500 others exist */
    TRY(copy_by_message(plan, buffer, (int)count, side->type, bytes, (int)size, MPI_PACKED));
done:
  return error;
}

int swp_unpack(const struct swp_plan *plan, const struct side *side, const char *bytes, int64_t count,
               void *buffer) {
  int error = SWP_SUCCESS, position = 0;
  int64_t size = count * side->item_bytes;
  if (side->dense)
    memcpy(buffer, bytes, (size_t)size);
  else if (buffer == MPI_BOTTOM)
    TRY(copy_by_message(plan, bytes, (int)size, MPI_PACKED, buffer, (int)count, side->type));
  else
    MPI_TRY(MPI_Unpack(bytes, (int)size, &position, buffer, (int)count, side->type, plan->comm));
done:
  return error;
}

const char *swp_total_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
  return features->total_bytes <= INT_MAX ? NULL : "the blocks of all ranks are over 2 GiB - 1";
}

const char *swp_commutes(const struct spec *spec, const struct features *features) {
  (void)spec;
  return features->commutative ? NULL : "the operation does not commute";
}

const char *swp_total_commutes(const struct spec *spec, const struct features *features) {
  return features->commutative ? swp_total_applicable(spec, features) : swp_commutes(spec, features);
}

int swp_pack_own(const struct swp_plan *plan, const void *send, const void *recv, char *bytes) {
  const struct call *call = call_of(plan);
  const struct side *side = send == MPI_IN_PLACE ? &call->recv : &call->send;
  const void *own = send;
  if (send == MPI_IN_PLACE)
    own = swp_item(side, recv,
                   plan->operation == SWP_ALLGATHERV ? call->displs[plan->rank]
                                                     : (int64_t)plan->rank * side->count);
  return own == bytes || side->count == 0 ? SWP_SUCCESS : swp_pack(plan, side, own, side->count, bytes);
}

int64_t swp_find_row(const struct call *call, int procs) {
  return swp_find_row_of(&call->recv, call->recv_counts, call->displs, procs);
}

int64_t swp_find_row_of(const struct side *side, const int *counts, const int *displs, int procs) {
  int64_t begin = -1, end = 0;
  bool found = false;
  for (int i = 0; i < procs; i++) {
    if (counts[i] == 0)
      continue;
    if (found && displs[i] != end)
      return -1;
    if (!found)
      begin = displs[i];
    found = true;
    end = (int64_t)displs[i] + counts[i];
  }
  return side->dense ? begin : -1;
}

int swp_copy(const struct swp_plan *plan, const struct side *from_side, const void *from, int from_count,
             const struct side *to_side, void *to, int to_count) {
  if (!from_side->dense || !to_side->dense)
    return copy_by_message(plan, from, from_count, from_side->type, to, to_count, to_side->type);
  memcpy(to, from, (size_t)(from_count * from_side->item_bytes));
  return SWP_SUCCESS;
}

/* One by one: for several, MPI has the error code only in a status. */
int swp_complete(struct swp_plan *plan, int count, MPI_Request *requests) {
  int error = SWP_SUCCESS;
  bool complete;
  bool polls = plan->polls || swp_outstanding_any();
  for (int i = 0; i < count; i++) {
    if (polls)
      TRY(swp_progress(plan, 1, &requests[i], true, &complete));
    else
      MPI_TRY(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
  }
done:
  return error;
}

int swp_send(struct swp_plan *plan, const void *buffer, int count, MPI_Datatype type, int peer) {
  int error = SWP_SUCCESS;
  MPI_Request request;
  MPI_TRY(MPI_Isend(buffer, count, type, peer, COLLECTIVE_TAG, plan->comm, &request));
  TRY(swp_complete(plan, 1, &request));
done:
  return error;
}

int swp_receive(struct swp_plan *plan, void *buffer, int count, MPI_Datatype type, int peer) {
  int error = SWP_SUCCESS;
  MPI_Request request;
  MPI_TRY(MPI_Irecv(buffer, count, type, peer, COLLECTIVE_TAG, plan->comm, &request));
  TRY(swp_complete(plan, 1, &request));
done:
  return error;
}

int swp_send_receive(struct swp_plan *plan, const void *send, int send_count, MPI_Datatype send_type, int to,
                     void *recv, int recv_count, MPI_Datatype recv_type, int from) {
  int error = SWP_SUCCESS;
  MPI_Request requests[2];
  MPI_TRY(MPI_Irecv(recv, recv_count, recv_type, from, COLLECTIVE_TAG, plan->comm, &requests[0]));
  MPI_TRY(MPI_Isend(send, send_count, send_type, to, COLLECTIVE_TAG, plan->comm, &requests[1]));
  TRY(swp_complete(plan, 2, requests));
done:
  return error;
}

int swp_join(const struct swp_plan *plan, void **sum, void **other, int first, int items, bool before) {
  const struct call *call = call_of(plan);
  void *own = swp_item(&call->recv, *sum, first), *came = swp_item(&call->recv, *other, first);
  int error = SWP_SUCCESS;
  if (before || plan->features.commutative) {
    MPI_TRY(MPI_Reduce_local(came, own, items, call->recv.type, call->op));
  } else {
    MPI_TRY(MPI_Reduce_local(own, came, items, call->recv.type, call->op));
    void *joined = *other;
    *other = *sum;
    *sum = joined;
  }
done:
  return error;
}

/* ---- The bytes of a broadcast's vector ---- */

const char *swp_image_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
  return features->total_bytes <= INT_MAX ? NULL : "the vector is over 2 GiB - 1";
}

int64_t swp_image_scratch_bytes(const struct swp_plan *plan) {
  return call_of(plan)->recv.dense ? 0 : plan->features.total_bytes;
}

int swp_image_begin(const struct swp_plan *plan, const void *buffer, char **image) {
  const struct side *side = &call_of(plan)->recv;
  *image = side->dense ? (char *)buffer : scratch_of(plan);
  if (side->dense || plan->rank != plan->features.root)
    return SWP_SUCCESS;
  return swp_pack(plan, side, buffer, side->count, *image);
}

int swp_image_end(const struct swp_plan *plan, const char *image, void *buffer) {
  const struct side *side = &call_of(plan)->recv;
  if (side->dense || plan->rank == plan->features.root)
    return SWP_SUCCESS;
  return swp_unpack(plan, side, image, side->count, buffer);
}
