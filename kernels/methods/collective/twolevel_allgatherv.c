/* Allgatherv by nodes: blocks lie by node and local number, without gaps. */
#include "twolevel.h"

/* In scratch: the places of the blocks, by rank; the bytes and places of the nodes and of this node's ranks,
   and the blocks, when they do not lie in recv. */
static int64_t places_bytes(const struct swp_plan *plan) {
  return ((int64_t)plan->procs + 2 * plan->features.nodes + 2 * plan->features.ppn) * (int64_t)sizeof(int);
}

static int64_t find_blocks(const struct swp_plan *plan) {
  const struct twolevel *state = plan->method_state;
  return state->in_order ? swp_find_row(call_of(plan), plan->procs) : -1;
}

int64_t swp_twolevel_allgatherv_scratch_bytes(const struct swp_plan *plan) {
  return places_bytes(plan) + (find_blocks(plan) >= 0 ? 0 : plan->features.total_bytes);
}

struct counts {
  int *bytes, *places;
};

static void count_nodes(const struct swp_plan *plan, int *places, struct counts nodes, struct counts ranks) {
  const struct twolevel *state = plan->method_state;
  const struct call *call = call_of(plan);
  int at = 0;
  for (int node = 0; node < plan->features.nodes; node++) {
    nodes.places[node] = at;
    for (int local = 0; local < swp_topology_node_size(plan->topology, node); local++) {
      int rank = swp_topology_rank(plan->topology, node, local);
      int bytes = (int)(call->recv_counts[rank] * call->recv.item_bytes);
      places[rank] = at;
      at += bytes;
      if (node == state->number) {
        ranks.bytes[local] = bytes;
        ranks.places[local] = places[rank];
      }
    }
    nodes.bytes[node] = at - nodes.places[node];
  }
}

int swp_twolevel_allgatherv(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct call *call = call_of(plan);
  int *places = (int *)(void *)scratch_of(plan), error = SWP_SUCCESS;
  struct counts nodes = {places + plan->procs, places + plan->procs + plan->features.nodes};
  int *rank_bytes = nodes.places + plan->features.nodes;
  struct counts ranks = {rank_bytes, rank_bytes + plan->features.ppn};
  int64_t row = find_blocks(plan);
  char *blocks = row >= 0 ? swp_item(&call->recv, recv, row) : scratch_of(plan) + places_bytes(plan);
  count_nodes(plan, places, nodes, ranks);
  TRY(swp_pack_own(plan, send, recv, blocks + places[plan->rank]));
  MPI_TRY(state->local == 0 ? PMPI_Gatherv(MPI_IN_PLACE, 0, MPI_BYTE, blocks, ranks.bytes, ranks.places,
                                           MPI_BYTE, 0, state->node)
                            : PMPI_Gatherv(blocks + places[plan->rank], ranks.bytes[state->local], MPI_BYTE,
                                           NULL, NULL, NULL, MPI_BYTE, 0, state->node));
  if (state->local == 0)
    MPI_TRY(PMPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, blocks, nodes.bytes, nodes.places, MPI_BYTE,
                            state->peers));
  MPI_TRY(PMPI_Bcast(blocks, (int)plan->features.total_bytes, MPI_BYTE, 0, state->node));
  for (int i = 0; row < 0 && i < plan->procs; i++)
    TRY(swp_unpack(plan, &call->recv, blocks + places[i], call->recv_counts[i],
                   swp_item(&call->recv, recv, call->displs[i])));
done:
  return error;
}
