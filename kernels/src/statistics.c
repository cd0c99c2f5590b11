/* The statistics of plans. */
#include "statistics.h"

#include "estimate.h"

#include <string.h>

bool swp_plan_off_node(const struct swp_plan *plan, int peer) {
  return swp_topology_node(plan->topology, peer) != swp_topology_node(plan->topology, plan->rank);
}

/* Of a rank that is not off the node. */
static bool on_socket(const struct swp_plan *plan, int peer) {
  const struct topology *topology = plan->topology;
  return swp_topology_has_sockets(topology) &&
         swp_topology_socket(topology, peer) == swp_topology_socket(topology, plan->rank);
}

void swp_plan_count(struct swp_plan *plan, int stage, int peer, int64_t bytes) {
  plan->stages[stage].messages++;
  plan->stages[stage].bytes += bytes;
  if (swp_plan_off_node(plan, peer)) {
    plan->off_node_messages++;
    plan->off_node_bytes += bytes;
  } else if (on_socket(plan, peer)) {
    plan->on_socket_messages++;
    plan->on_socket_bytes += bytes;
  }
  if (plan->estimate != NULL)
    swp_estimate_send(plan, stage, peer, bytes);
}

void swp_plan_count_receive(struct swp_plan *plan, int stage, int peer, int64_t bytes) {
  if (plan->estimate != NULL)
    swp_estimate_receive(plan, stage, peer, bytes);
}

/* From sums and maxima of the same values: messages and bytes; those off the node; those on a socket. */
enum { TRAFFIC = 6 };

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

int swp_statistics_find(struct swp_plan *plan) {
  const struct problem *problem = &plan->problem;
  struct swp_statistics *statistics = &plan->problem_statistics;
  enum { BUFFER = TRAFFIC, DIFFERENCE = TRAFFIC, VALUES };
  int64_t mine[VALUES] = {problem->nsends, problem->send_bytes}, max[VALUES], sum[VALUES];
  int error = SWP_SUCCESS;
  for (int i = 0; i < problem->nsends; i++)
    if (swp_plan_off_node(plan, problem->sends[i].peer)) {
      mine[2]++;
      mine[3] += problem->sends[i].bytes;
    } else if (on_socket(plan, problem->sends[i].peer)) {
      mine[4]++;
      mine[5] += problem->sends[i].bytes;
    }
  mine[BUFFER] = problem->send_bytes + problem->recv_bytes;
  MPI_TRY(MPI_Allreduce(mine, max, VALUES, MPI_INT64_T, MPI_MAX, plan->comm));
  mine[DIFFERENCE] = (int64_t)(problem->send_hash - problem->recv_hash);
  MPI_TRY(MPI_Allreduce(mine, sum, VALUES, MPI_UINT64_T, MPI_SUM, plan->comm)); /* hashes wrap */
  if (sum[DIFFERENCE] != 0)
    return swp_fail(SWP_ERR_MISMATCH,
                    "exchange: the sends of all ranks are not the receives of all ranks; compare "
                    "ranks and item counts on both sides");
  set_statistics(plan, max, sum, statistics);
  statistics->stages = 1;
  statistics->buffer_bytes = max[BUFFER];
  plan->features.mmax = statistics->mmax;
  plan->features.mavg = statistics->mavg;
  plan->features.bytes = sum[0] > 0 ? sum[1] / sum[0] : 0;
done:
  return error;
}

/* Two reductions, however many stages there are. */
int swp_statistics_gather(struct swp_plan *plan) {
  struct swp_statistics *statistics = &plan->statistics;
  int nstages = plan->nstages, error = SWP_SUCCESS;
  enum { LAST = TRAFFIC, EXTRA };
  size_t length = 2 * (size_t)nstages + EXTRA;
  int64_t *mine = swp_allocate(length, sizeof *mine, NULL), *all = swp_allocate(length, sizeof *all, NULL);
  TRY(swp_agree(plan->comm, mine != NULL && all != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan)));
  int64_t *extra = mine + 2 * nstages, *result = all + 2 * nstages, max[EXTRA];
  for (int d = 0; d < nstages; d++) {
    extra[0] += mine[2 * d] = plan->stages[d].messages;
    extra[1] += mine[2 * d + 1] = plan->stages[d].bytes;
  }
  extra[2] = plan->off_node_messages;
  extra[3] = plan->off_node_bytes;
  extra[4] = plan->on_socket_messages;
  extra[5] = plan->on_socket_bytes;
  extra[LAST] = plan->forwarded_bytes + plan->problem.send_bytes + plan->problem.recv_bytes;
  MPI_TRY(MPI_Allreduce(mine, all, (int)length, MPI_INT64_T, MPI_MAX, plan->comm));
  for (int d = 0; d < nstages; d++) {
    plan->stages[d].messages_max = all[2 * d];
    plan->stages[d].bytes_max = all[2 * d + 1];
  }
  memcpy(max, result, sizeof max);
  extra[LAST] = plan->copied_bytes;
  MPI_TRY(MPI_Allreduce(mine, all, (int)length, MPI_INT64_T, MPI_SUM, plan->comm));
  for (int d = 0; d < nstages; d++) {
    plan->stages[d].messages_total = all[2 * d];
    plan->stages[d].bytes_total = all[2 * d + 1];
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
  statistics->plan_bytes = plan->account;
}

void swp_statistics_describe_place(struct swp_plan *plan) {
  describe_place(plan, &plan->problem_statistics);
  describe_place(plan, &plan->statistics);
}
