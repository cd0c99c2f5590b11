#include "trial.h"

#include "call.h"
#include "collective.h"
#include "make.h"

int swp_trial_plan(const struct swp_plan *plan, const struct spec *spec, const struct estimate *estimate,
                   struct swp_plan **trial) {
  int error = SWP_SUCCESS;
  struct swp_plan *made = swp_plan_new(plan->operation);
  TRY(swp_agree(plan->comm,
                made != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory to try %s", spec->text)));
  made->is_trial = true;
  made->comm = plan->comm;
  made->rank = plan->rank;
  made->procs = plan->procs;
  made->hints = plan->hints;
  made->features = plan->features;
  swp_plan_place(made, swp_topology_hold(plan->topology));
  if (swp_is_collective(plan->operation)) {
    collective_plan_of(made)->call = *call_of(plan);
    TRY(swp_plan_collective(collective_plan_of(made), &(struct sources){.caller = spec}));
  } else {
    exchange_plan_of(made)->problem = exchange_plan_of(plan)->problem;
    exchange_plan_of(made)->estimate = estimate;
    TRY(swp_plan_by_method(made, spec));
  }
done:
  if (error != SWP_SUCCESS)
    swp_plan_free(&made);
  *trial = made;
  return error;
}

/* Zeroed memory for items, and the address from which the call counts them, of which the first is the
   `first`-th. */
static int make_buffer(const struct side *side, int64_t first, int64_t count, void **memory, void **buffer) {
  int64_t bytes = swp_side_room(side, count);
  *memory = swp_allocate((size_t)bytes, 1, NULL);
  if (*memory == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory to measure a collective on %lld bytes", (long long)bytes);
  *buffer = swp_item(side, swp_side_place(side, count, *memory), -first);
  return SWP_SUCCESS;
}

/* Finds the items from the first of listed blocks to the last; a block of nothing may lie anywhere. */
static void find_row(const int *counts, const int *displs, int procs, int64_t *first, int64_t *count) {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (int i = 0; i < procs; i++) {
    if (counts[i] == 0)
      continue;
    const int64_t behind = displs[i] + (int64_t)counts[i];
    begin = displs[i] < begin ? displs[i] : begin;
    end = behind > end ? behind : end;
  }
  *first = begin < end ? begin : 0;
  *count = begin < end ? end - begin : 0;
}

/* A side without a block stands for MPI_IN_PLACE: the caller's problem allows no other meaning. */
static bool sends_in_place(const struct swp_plan *plan) {
  const enum swp_operation operation = plan->operation;
  const bool root = swp_is_root(plan), reads_send = swp_reads_send(operation) != NOWHERE;
  const struct call *call = call_of(plan);
  return swp_is_read(swp_reads_send(operation), root) && swp_send_may_be_in_place(operation, root) &&
         !swp_is_block(plan, reads_send ? &call->send : &call->recv);
}

/* All ranks of an operation without a root, or none, pass MPI_IN_PLACE, whatever type one gives for what that
   replaces. */
int swp_buffers_agree(const struct swp_plan *plan, bool *in_place) {
  int error = SWP_SUCCESS, any = swp_is_collective(plan->operation) && sends_in_place(plan);
  if (swp_is_collective(plan->operation) && !swp_shapes[plan->operation].rooted)
    MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, plan->comm));
  *in_place = any != 0;
done:
  return error;
}

static int make_collective_buffers(const struct swp_plan *plan, bool in_place, struct buffers *buffers) {
  const enum swp_operation operation = plan->operation;
  const struct shape *shape = &swp_shapes[operation];
  const struct call *call = call_of(plan);
  const bool root = swp_is_root(plan), reads_send = swp_reads_send(operation) != NOWHERE;
  const struct side *send = reads_send ? &call->send : &call->recv;
  int64_t first = 0, count = (int64_t)call->recv.count * (swp_holds_all(shape->recv) ? plan->procs : 1);
  int64_t send_first = 0, sent = (int64_t)send->count * (swp_holds_all(shape->send) ? plan->procs : 1);
  int error = SWP_SUCCESS;
  if (swp_is_listed(operation))
    find_row(call->recv_counts, call->displs, plan->procs, &first, &count);
  if (call->send_counts != NULL)
    find_row(call->send_counts, call->send_displs, plan->procs, &send_first, &sent);
  if (in_place)
    buffers->send = MPI_IN_PLACE;
  else if (operation != SWP_BCAST && send->type != MPI_DATATYPE_NULL)
    TRY(make_buffer(send, send_first, sent, &buffers->send_memory, &buffers->send));
  if (swp_recv_may_be_in_place(operation, root) && !swp_is_block(plan, &call->recv))
    buffers->recv = MPI_IN_PLACE;
  else if (call->recv.type != MPI_DATATYPE_NULL)
    TRY(make_buffer(&call->recv, first, count, &buffers->recv_memory, &buffers->recv));
done:
  return error;
}

int swp_buffers_make(const struct swp_plan *plan, bool in_place, struct buffers *buffers) {
  int64_t send_bytes, recv_first, recv_bytes;
  *buffers = (struct buffers){0};
  if (swp_is_collective(plan->operation))
    return make_collective_buffers(plan, in_place, buffers);
  swp_problem_spans(exchange_plan_of(plan)->problem, &send_bytes, &recv_first, &recv_bytes);
  recv_bytes -= recv_first; /* often all of the application's own items */
  buffers->send = buffers->send_memory = swp_allocate((size_t)send_bytes, 1, NULL);
  buffers->recv_memory = swp_allocate((size_t)recv_bytes, 1, NULL);
  buffers->recv = (void *)((uintptr_t)buffers->recv_memory - (uintptr_t)recv_first);
  if (buffers->send != NULL && buffers->recv_memory != NULL)
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_MEMORY, "no memory to measure an exchange of %lld and %lld bytes",
                  (long long)send_bytes, (long long)recv_bytes);
}

void swp_buffers_free(struct buffers *buffers) {
  swp_release(buffers->send_memory);
  swp_release(buffers->recv_memory);
}

int swp_trial_execute(struct swp_plan *trial, const struct buffers *buffers) {
  return swp_is_collective(trial->operation) ? swp_collective_execute(trial, buffers->send, buffers->recv)
                                             : swp_exchange_execute(trial, buffers->send, buffers->recv);
}
