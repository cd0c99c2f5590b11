/* star: the root exchanges a message with every other rank. */
#include "call.h"
#include "textbook.h"

/* ---- Blocks ---- */

static int64_t requests_scratch_bytes(const struct swp_plan *plan) {
  return plan->rank == plan->features.root ? plan->procs * (int64_t)sizeof(MPI_Request) : 0;
}

static int star_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  MPI_Request *requests = (MPI_Request *)scratch_of(plan);
  int root = plan->features.root, n = 0, error = SWP_SUCCESS;
  if (plan->rank != root)
    return swp_send(plan, send, call->send.count, call->send.type, root);
  for (int i = 1; i < plan->procs; i++) {
    int peer = (root + i) % plan->procs;
    MPI_TRY(MPI_Irecv(swp_item(side, recv, (int64_t)peer * side->count), side->count, side->type, peer,
                      COLLECTIVE_TAG, plan->comm, &requests[n++]));
  }
  if (send != MPI_IN_PLACE)
    TRY(swp_copy(plan, &call->send, send, call->send.count, side,
                 swp_item(side, recv, (int64_t)root * side->count), side->count));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

static int star_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->send;
  MPI_Request *requests = (MPI_Request *)scratch_of(plan);
  int root = plan->features.root, n = 0, error = SWP_SUCCESS;
  if (plan->rank != root)
    return swp_receive(plan, recv, call->recv.count, call->recv.type, root);
  for (int i = 1; i < plan->procs; i++) {
    int peer = (root + i) % plan->procs;
    MPI_TRY(MPI_Isend(swp_item(side, send, (int64_t)peer * side->count), side->count, side->type, peer,
                      COLLECTIVE_TAG, plan->comm, &requests[n++]));
  }
  if (recv != MPI_IN_PLACE)
    TRY(swp_copy(plan, side, swp_item(side, send, (int64_t)root * side->count), side->count, &call->recv,
                 recv, call->recv.count));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

/* ---- Reduction ---- */

enum { ROOMS = 3 };

/* The result, while the root's operand occupies its place, and two operands. */
static int64_t reduce_scratch_bytes(const struct swp_plan *plan) {
  return plan->rank == plan->features.root ? ROOMS * swp_recv_room(plan) : 0;
}

/* The rank whose operand is the index-th from the right: each is joined as the left one. */
static int operand_of(const struct swp_plan *plan, int index) {
  int last = plan->features.commutative ? plan->features.root : plan->procs - 1;
  return (last - index + plan->procs) % plan->procs;
}

/* Begins to receive the index-th operand, unless it is the root's own. */
static int begin_receive(const struct swp_plan *plan, int index, void *room, MPI_Request *request) {
  const struct side *side = &call_of(plan)->recv;
  int error = SWP_SUCCESS;
  *request = MPI_REQUEST_NULL;
  if (index < plan->procs && operand_of(plan, index) != plan->rank)
    MPI_TRY(MPI_Irecv(room, side->count, side->type, operand_of(plan, index), COLLECTIVE_TAG, plan->comm,
                      request));
done:
  return error;
}

/* While an operand is joined, the next one is received. */
static int reduce_at_root(struct swp_plan *plan, const void *own, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  bool own_is_last = operand_of(plan, 0) == plan->rank;
  void *rooms[ROOMS], *sum;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int error = SWP_SUCCESS;
  for (int i = 0; i < ROOMS; i++)
    rooms[i] = swp_recv_place(plan, i);
  sum = own == recv && !own_is_last ? rooms[2] : recv;
  TRY(begin_receive(plan, 0, sum, &requests[0]));
  for (int i = 0; i < plan->procs; i++) {
    TRY(begin_receive(plan, i + 1, rooms[(i + 1) % 2], &requests[(i + 1) % 2]));
    TRY(swp_complete(plan, 1, &requests[i % 2]));
    const void *operand = operand_of(plan, i) == plan->rank ? own : rooms[i % 2];
    if (i > 0)
      MPI_TRY(MPI_Reduce_local(operand, sum, side->count, side->type, call_of(plan)->op));
    else if (own_is_last && own != sum)
      TRY(swp_copy(plan, side, own, side->count, side, sum, side->count));
  }
  if (sum != recv)
    TRY(swp_copy(plan, side, sum, side->count, side, recv, side->count));
done:
  return error;
}

static int star_reduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  if (plan->rank == plan->features.root)
    return reduce_at_root(plan, send == MPI_IN_PLACE ? recv : send, recv);
  return swp_send(plan, send, side->count, side->type, plan->features.root);
}

const struct method swp_collective_star = {
    .name = "star",
    .summary = "the root exchanges a message with every other rank",
    .source = "Hartmann, Kuehnemann, Rauber, Ruenger, Adaptive selection of communication methods, 2006",
    .estimate = swp_estimate_textbook,
    .procedures =
        {
            [SWP_GATHER] = {star_gather, requests_scratch_bytes},
            [SWP_SCATTER] = {star_scatter, requests_scratch_bytes},
            [SWP_REDUCE] = {star_reduce, reduce_scratch_bytes},
        },
};
