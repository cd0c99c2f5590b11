/* The statistics of plans. */
#include "statistics.h"

#include <string.h>

static bool is_off_node(const struct swp_plan *plan, int peer) {
  return swp_topology_node(plan->topology, peer) != swp_topology_node(plan->topology, plan->rank);
}

/* Returns whether a rank of this node is on the same socket. */
static bool on_socket(const struct swp_plan *plan, int peer) {
  const struct topology *topology = plan->topology;
  return swp_topology_has_sockets(topology) &&
         swp_topology_socket(topology, peer) == swp_topology_socket(topology, plan->rank);
}

static void add_message(const struct swp_plan *plan, int peer, int64_t bytes, int64_t traffic[TRAFFIC]) {
  const int kind = is_off_node(plan, peer) ? 2 : on_socket(plan, peer) ? 4 : 0;
  traffic[0]++;
  traffic[1] += bytes;
  if (kind != 0) {
    traffic[kind]++;
    traffic[kind + 1] += bytes;
  }
}

void swp_plan_count(struct swp_plan *plan, int stage, int peer, int64_t bytes) {
  struct exchange_plan *exchange = exchange_plan_of(plan);
  exchange->stages[stage].messages++;
  exchange->stages[stage].bytes += bytes;
  add_message(plan, peer, bytes, exchange->traffic);
  if (exchange->estimate != NULL)
    swp_tally_send(exchange->estimate->model, is_off_node(plan, peer), bytes, &exchange->tallies[stage]);
}

void swp_plan_count_receive(struct swp_plan *plan, int stage, int peer, int64_t bytes) {
  struct exchange_plan *exchange = exchange_plan_of(plan);
  if (exchange->estimate != NULL)
    swp_tally_receive(exchange->estimate->model, is_off_node(plan, peer), bytes, &exchange->tallies[stage]);
}

/* Sets the statistics from sums and maxima of the same numbers. */
static void set_statistics(const struct swp_plan *plan, const int64_t max[TRAFFIC],
                           const int64_t sum[TRAFFIC], struct swp_statistics *statistics) {
  bool has_sockets = swp_topology_has_sockets(plan->topology);
  statistics->mmax = max[0];
  statistics->mavg = (double)sum[0] / plan->procs;
  statistics->vmax_bytes = max[1];
  statistics->vavg_bytes = (double)sum[1] / plan->procs;
  statistics->hop_bytes = sum[1];
  statistics->off_node_messages = sum[2];
  statistics->on_node_messages = sum[0] - sum[2];
  statistics->off_node_mmax = max[2];
  statistics->off_node_bytes = sum[3];
  statistics->on_node_bytes = sum[1] - sum[3];
  statistics->off_node_vmax_bytes = max[3];
  statistics->on_socket_messages = has_sockets ? sum[4] : -1;
  statistics->on_socket_bytes = has_sockets ? sum[5] : -1;
}

int swp_statistics_find(struct exchange_plan *exchange) {
  struct swp_plan *plan = &exchange->plan;
  const struct problem *problem = exchange->problem;
  struct swp_statistics *statistics = &plan->problem_statistics;
  enum { BUFFER = TRAFFIC, DIFFERENCE, COPIED, VALUES };
  int64_t mine[VALUES] = {0}, max[VALUES], sum[VALUES];
  int error = SWP_SUCCESS;
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    add_message(plan, send->peer, send->bytes, mine);
    mine[COPIED] += send->nruns > 1 ? send->bytes : 0; /* as `direct` packs */
  }
  mine[BUFFER] = problem->send_bytes + problem->recv_bytes;
  mine[DIFFERENCE] = (int64_t)(problem->send_hash - problem->recv_hash);
  MPI_TRY(MPI_Allreduce(mine, max, VALUES, MPI_INT64_T, MPI_MAX, plan->comm));
  MPI_TRY(MPI_Allreduce(mine, sum, VALUES, MPI_UINT64_T, MPI_SUM, plan->comm)); /* hashes wrap */
  if (sum[DIFFERENCE] != 0)
    return swp_fail(SWP_ERR_MISMATCH,
                    "exchange: the sends of all ranks do not match the receives of all ranks; compare "
                    "ranks and item counts on both sides");
  set_statistics(plan, max, sum, statistics);
  statistics->stages = 1;
  statistics->buffer_bytes = max[BUFFER];
  statistics->copied_bytes = sum[COPIED];
  plan->features.mmax = statistics->mmax;
  plan->features.mavg = statistics->mavg;
  plan->features.bytes = sum[0] > 0 ? sum[1] / sum[0] : 0;
done:
  return error;
}

/* Two reductions, however many stages there are. */
int swp_statistics_gather(struct exchange_plan *exchange) {
  struct swp_plan *plan = &exchange->plan;
  struct swp_statistics *statistics = &plan->statistics;
  int nstages = exchange->nstages, error = SWP_SUCCESS;
  enum { LAST = TRAFFIC, EXTRA };
  size_t length = 2 * (size_t)nstages + EXTRA;
  int64_t *mine = swp_allocate(length, sizeof *mine, NULL), *all = swp_allocate(length, sizeof *all, NULL);
  TRY(swp_agree(plan->comm, mine != NULL && all != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan)));
  int64_t *extra = mine + 2 * nstages, *result = all + 2 * nstages, max[EXTRA];
  for (int d = 0; d < nstages; d++) {
    mine[2 * d] = exchange->stages[d].messages;
    mine[2 * d + 1] = exchange->stages[d].bytes;
  }
  memcpy(extra, exchange->traffic, sizeof exchange->traffic);
  extra[LAST] = exchange->forwarded_bytes + exchange->problem->send_bytes + exchange->problem->recv_bytes;
  MPI_TRY(MPI_Allreduce(mine, all, (int)length, MPI_INT64_T, MPI_MAX, plan->comm));
  for (int d = 0; d < nstages; d++) {
    exchange->stages[d].messages_max = all[2 * d];
    exchange->stages[d].bytes_max = all[2 * d + 1];
  }
  memcpy(max, result, sizeof max);
  extra[LAST] = exchange->copied_bytes;
  MPI_TRY(MPI_Allreduce(mine, all, (int)length, MPI_INT64_T, MPI_SUM, plan->comm));
  for (int d = 0; d < nstages; d++) {
    exchange->stages[d].messages_total = all[2 * d];
    exchange->stages[d].bytes_total = all[2 * d + 1];
  }
  set_statistics(plan, max, result, statistics);
  statistics->stages = nstages;
  statistics->buffer_bytes = max[LAST];
  statistics->copied_bytes = result[LAST];
done:
  swp_release(mine);
  swp_release(all);
  return error;
}

static void describe_place(const struct swp_plan *plan, struct swp_statistics *statistics) {
  statistics->procs = plan->procs;
  statistics->nodes = plan->features.nodes;
  statistics->ppn = plan->features.ppn;
  statistics->sockets = plan->topology->sockets;
}

void swp_statistics_describe_place(struct swp_plan *plan) {
  describe_place(plan, &plan->problem_statistics);
  describe_place(plan, &plan->statistics);
}
