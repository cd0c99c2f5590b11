/* exchange: sparse point-to-point; receivers know their senders. */
#include "operation.h"

#include <string.h>

static int size(struct workload *workload) {
  const struct pattern *pattern = workload->pattern;
  workload->send_bytes = pattern->nitems * workload->payload.item_bytes;
  workload->recv_bytes = pattern->recvs.offsets[pattern->recvs.n] * workload->payload.item_bytes;
  return 0;
}

struct swp_exchange exchange_problem(const struct workload *workload) {
  const struct pattern *pattern = workload->pattern;
  return (struct swp_exchange){
      .item_bytes = workload->payload.item_bytes,
      .nitems = pattern->nitems,
      .nsends = pattern->sends.n,
      .send_ranks = pattern->sends.ranks,
      .send_offsets = pattern->sends.offsets,
      .send_items = pattern->opaque ? NULL : pattern->sends.items,
      .nrecvs = pattern->recvs.n,
      .recv_ranks = pattern->recvs.ranks,
      .recv_offsets = pattern->recvs.offsets,
  };
}

int exchange_plan(const struct workload *workload, const char *method, swp_plan **plan) {
  const struct swp_exchange problem = exchange_problem(workload);
  return swp_exchange_plan(workload->team->comm, &problem, method, &workload->hints, plan);
}

static void prepare(struct workload *workload) {
  payload_write(&workload->payload, workload->team->rank, NULL, workload->pattern->nitems, workload->send);
  memset(workload->recv, 0, (size_t)workload->recv_bytes);
}

int exchange_execute(struct workload *workload, swp_plan *plan) {
  return swp_exchange_execute(plan, workload->send, workload->recv);
}

static int verify(const struct workload *workload) {
  const struct lists *recvs = &workload->pattern->recvs;
  for (int i = 0; i < recvs->n; i++) {
    const int64_t first = recvs->offsets[i];
    if (payload_compare(&workload->payload, recvs->ranks[i], recvs->items + first,
                        recvs->offsets[i + 1] - first, workload->recv + first * workload->payload.item_bytes))
      return -1;
  }
  return 0;
}

const struct operation operation_exchange = {
    .name = "exchange",
    .operation = SWP_EXCHANGE,
    .size = size,
    .plan = exchange_plan,
    .prepare = prepare,
    .execute = exchange_execute,
    .verify = verify,
};
