/* discovery: a sparse exchange in which no rank knows its senders. */
#include "error.h"
#include "operation.h"

#include <limits.h>
#include <string.h>

static int size(struct workload *workload) {
  const struct lists *sends = &workload->pattern->sends;
  workload->send_bytes = sends->offsets[sends->n] * workload->payload.item_bytes;
  workload->messages = allocate((size_t)sends->n * sizeof *workload->messages);
  workload->message_bytes = allocate((size_t)sends->n * sizeof *workload->message_bytes);
  for (int i = 0; i < sends->n; i++)
    workload->message_bytes[i] = (sends->offsets[i + 1] - sends->offsets[i]) * workload->payload.item_bytes;
  return 0;
}

static int plan(const struct workload *workload, const char *method, swp_plan **plan) {
  return swp_discovery_plan(workload->team->comm, method, &workload->hints, plan);
}

static void prepare(struct workload *workload) {
  const struct lists *sends = &workload->pattern->sends;
  payload_write(&workload->payload, workload->team->rank, sends->items, sends->offsets[sends->n],
                workload->send);
  const swp_inbox *inbox = workload->inbox;
  for (int i = 0; inbox && i < inbox->nsources; i++)
    memset(inbox->data[i], 0, (size_t)inbox->bytes[i]);
}

static int execute(struct workload *workload, swp_plan *plan) {
  const struct lists *sends = &workload->pattern->sends;
  return swp_discovery_execute(plan, sends->n, sends->ranks, workload->message_bytes, workload->messages,
                               &workload->inbox);
}

static int verify(const struct workload *workload) {
  const struct lists *recvs = &workload->pattern->recvs;
  const swp_inbox *inbox = workload->inbox;
  for (int i = 0; i < recvs->n; i++) {
    const int64_t first = recvs->offsets[i], n = recvs->offsets[i + 1] - first;
    const int64_t bytes = n * workload->payload.item_bytes;
    if (i >= inbox->nsources || inbox->sources[i] != recvs->ranks[i])
      return failure_set("wrong delivery: message %d of %d should come from rank %d, but %s %d", i, recvs->n,
                         recvs->ranks[i], i < inbox->nsources ? "came from" : "the number delivered is",
                         i < inbox->nsources ? inbox->sources[i] : inbox->nsources);
    if (inbox->bytes[i] != bytes)
      return failure_set("wrong delivery: the message from rank %d has %lld bytes, expected %lld",
                         recvs->ranks[i], (long long)inbox->bytes[i], (long long)bytes);
    if (payload_compare(&workload->payload, recvs->ranks[i], recvs->items + first, n, inbox->data[i]))
      return -1;
  }
  if (inbox->nsources > recvs->n)
    return failure_set("wrong delivery: %d messages, expected %d", inbox->nsources, recvs->n);
  return 0;
}

const struct operation operation_discovery = {
    .name = "discovery",
    .operation = SWP_DISCOVERY,
    .message_bytes_most = INT_MAX,
    .size = size,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .verify = verify,
};
