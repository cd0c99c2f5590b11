/*
 * alltoallv: the dense collective of MPI, counts of zero where there is no neighbour. Its arrays are O(P).
 * Counts are in items, so that more fits MPI's int.
 */
#include "packed.h"

struct state {
  struct packed packed;
  int *send_counts, *send_offsets, *recv_counts, *recv_offsets; /* per rank, in items; of one allocation */
};

static void alltoallv_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_packed_free(&state->packed);
  swp_release(state->send_counts);
}

static int alltoallv_plan(struct swp_plan *plan) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state == NULL)
    return swp_plan_no_memory(plan);
  *state = (struct state){.packed = PACKED_NONE};
  int error = swp_packed_plan(plan, &state->packed);
  if (error != SWP_SUCCESS)
    return error;
  state->send_counts = swp_plan_allocate(plan, 4 * (int64_t)plan->procs, sizeof(int));
  if (state->send_counts == NULL)
    return swp_plan_no_memory(plan);
  state->send_offsets = state->send_counts + plan->procs;
  state->recv_counts = state->send_offsets + plan->procs;
  state->recv_offsets = state->recv_counts + plan->procs;
  for (int i = 0; i < problem->nsends; i++) {
    state->send_counts[problem->sends[i].peer] = state->packed.send_counts[i];
    state->send_offsets[problem->sends[i].peer] = state->packed.send_offsets[i];
  }
  for (int i = 0; i < problem->nrecvs; i++) {
    state->recv_counts[problem->recvs[i].peer] = state->packed.recv_counts[i];
    state->recv_offsets[problem->recvs[i].peer] = state->packed.recv_offsets[i];
  }
  return SWP_SUCCESS;
}

static int alltoallv_start(struct swp_plan *plan, const char *send, char *recv) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Ialltoallv(swp_packed_send(plan, &state->packed, send), state->send_counts, state->send_offsets,
                         state->packed.item, recv, state->recv_counts, state->recv_offsets,
                         state->packed.item, plan->comm, &state->packed.request));
done:
  return error;
}

const struct method swp_exchange_alltoallv = {
    .name = "alltoallv",
    .summary = "MPI_Ialltoallv over all ranks",
    .source = "the MPI standard",
    .plan = alltoallv_plan,
    .free = alltoallv_free,
    .estimated_as = "direct",
    .start = alltoallv_start,
    .advance = swp_packed_advance,
};
