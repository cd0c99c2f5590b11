/*
 * bruck of two levels: an allgather whose radix is the number of ranks on a node, which share the messages of
 * a step. The rank with local number l gets what the node so many steps away has, and then the ranks of the
 * node share what they got (Bienz, Gautam, Kharel, arXiv 2206.03564). Blocks lie packed by the distance of
 * their node, and local number.
 */
#include "bruck.h"

#include "parts.h"
#include "sharing.h"
#include "textbook.h"

const char *swp_levels_applicable(const struct features *features) {
  const char *why = swp_nodes_applicable(features);
  if (why == NULL && features->operation != SWP_ALLGATHER)
    return "levels=2 is for allgather";
  if (why == NULL && features->procs != features->nodes * features->ppn)
    return "nodes have different numbers of ranks";
  return why;
}

int swp_levels_plan(struct swp_plan *plan) {
  struct levels *levels = plan->method_state = swp_plan_allocate(plan, 1, sizeof *levels);
  if (levels != NULL)
    levels->node = MPI_COMM_NULL;
  int error = swp_agree(plan->comm, levels != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan));
  return error == SWP_SUCCESS ? swp_part_take_node(plan, &levels->node) : error;
}

void swp_levels_free(struct swp_plan *plan) {
  struct levels *levels = plan->method_state;
  if (levels != NULL)
    swp_part_give(plan, &levels->node);
}

/* ---- Execution ---- */

/* The lists before the blocks: the bytes that each rank of the node has got in a step, and their places. */
static int64_t lists_bytes(const struct swp_plan *plan) {
  return swp_round_up(2 * plan->features.ppn * (int64_t)sizeof(int), LINE_BYTES);
}

int64_t swp_levels_scratch_bytes(const struct swp_plan *plan) {
  return lists_bytes(plan) + plan->features.total_bytes;
}

/* The number of nodes whose data the rank of a local number gets where each node has those of `have`. */
static int count_got(int nodes, int have, int local) {
  const int64_t rest = nodes - (int64_t)local * have;
  return local == 0 || rest <= 0 ? 0 : (int)(rest < have ? rest : have);
}

/* Receives what the node has that is `have` times the local number farther, and sends likewise. */
static int cross(struct swp_plan *plan, char *blocks, int have, int node_bytes) {
  const struct topology *topology = plan->topology;
  const int nodes = plan->features.nodes, node = swp_topology_node(topology, plan->rank);
  const int local = swp_topology_local(topology, plan->rank), count = count_got(nodes, have, local);
  if (count == 0)
    return SWP_SUCCESS;
  const int distance = local * have, bytes = count * node_bytes;
  return swp_send_receive(plan, blocks, bytes, MPI_PACKED,
                          swp_topology_rank(topology, (node - distance + nodes) % nodes, local),
                          blocks + (int64_t)distance * node_bytes, bytes, MPI_PACKED,
                          swp_topology_rank(topology, (node + distance) % nodes, local));
}

/* Gives all ranks of the node what each has received. */
static int share(const struct swp_plan *plan, char *blocks, int have, int node_bytes) {
  const struct levels *levels = plan->method_state;
  const int ppn = plan->features.ppn;
  int *bytes = (int *)(void *)scratch_of(plan), *places = bytes + ppn, error = SWP_SUCCESS;
  for (int local = 0; local < ppn; local++) {
    bytes[local] = count_got(plan->features.nodes, have, local) * node_bytes;
    places[local] = bytes[local] > 0 ? local * have * node_bytes : 0;
  }
  MPI_TRY(PMPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, blocks, bytes, places, MPI_BYTE, levels->node));
done:
  return error;
}

int swp_levels_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct levels *levels = plan->method_state;
  const struct topology *topology = plan->topology;
  const struct side *side = &call_of(plan)->recv;
  const int nodes = plan->features.nodes, ppn = plan->features.ppn, block = (int)plan->features.bytes;
  const int node = swp_topology_node(topology, plan->rank);
  char *blocks = scratch_of(plan) + lists_bytes(plan);
  int error = SWP_SUCCESS;
  TRY(swp_pack_own(plan, send, recv, blocks + (int64_t)swp_topology_local(topology, plan->rank) * block));
  MPI_TRY(PMPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, blocks, block, MPI_BYTE, levels->node));
  for (int64_t have = 1; have < nodes; have *= ppn) {
    TRY(cross(plan, blocks, (int)have, ppn * block));
    TRY(share(plan, blocks, (int)have, ppn * block));
  }
  for (int rank = 0; rank < plan->procs; rank++) {
    const int64_t distance = (swp_topology_node(topology, rank) - node + nodes) % nodes;
    const char *from = blocks + (distance * ppn + swp_topology_local(topology, rank)) * block;
    TRY(swp_unpack(plan, side, from, side->count, swp_item(side, recv, (int64_t)rank * side->count)));
  }
done:
  return error;
}

/* ---- The model ---- */

double swp_levels_s(const struct group *group, double m) {
  const int ppn = group->ppn, nodes = group->procs / ppn;
  const struct group node = swp_group_part(group, ppn, ppn);
  if (ppn == 1 || group->procs % ppn != 0)
    return -1;
  double seconds = swp_textbook_least_s(SWP_ALLGATHER, &node, m) + group->procs * m * group->copy_s_per_byte;
  for (int64_t have = 1; have < nodes; have *= ppn) {
    const int64_t then = have * ppn < nodes ? have * ppn : nodes;
    seconds += swp_message_s(group, count_got(nodes, (int)have, 1) * ppn * m) +
               swp_textbook_least_s(SWP_ALLGATHER, &node, (double)(then - have) * m);
  }
  return seconds;
}
