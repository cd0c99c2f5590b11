/* Functions that the methods over MPI's vector collectives share. */
#include "packed.h"

#include <limits.h>

/* Counts and offsets in items; both must fit MPI's int. */
static int place(int64_t bytes, int64_t offset, int64_t item_bytes, int *count, int *place_offset) {
  if (bytes / item_bytes > INT_MAX || offset / item_bytes > INT_MAX)
    return swp_fail(SWP_ERR_TOO_LARGE,
                    "a message of %lld bytes at byte %lld exceeds MPI's int count of items", (long long)bytes,
                    (long long)offset);
  *count = (int)(bytes / item_bytes);
  *place_offset = (int)(offset / item_bytes);
  return SWP_SUCCESS;
}

static int place_all(const struct problem *problem, struct packed *packed) {
  int error = SWP_SUCCESS;
  int64_t staged = 0;
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    TRY(place(send->bytes, packed->in_place ? send->runs[0].offset : staged, problem->item_bytes,
              &packed->send_counts[i], &packed->send_offsets[i]));
    staged += send->bytes;
  }
  for (int i = 0; i < problem->nrecvs; i++) {
    const struct receive *receive = &problem->recvs[i];
    TRY(place(receive->bytes, receive->offset, problem->item_bytes, &packed->recv_counts[i],
              &packed->recv_offsets[i]));
  }
done:
  return error;
}

int swp_packed_plan(struct swp_plan *plan, struct packed *packed) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int error = swp_plan_stages(plan, 1);
  if (error != SWP_SUCCESS)
    return error;
  packed->in_place = true;
  for (int i = 0; i < problem->nsends; i++) {
    swp_plan_count(plan, 0, problem->sends[i].peer, problem->sends[i].bytes);
    packed->in_place = packed->in_place && problem->sends[i].nruns == 1;
  }
  exchange_plan_of(plan)->copied_bytes = packed->in_place ? 0 : problem->send_bytes;
  packed->send_counts = swp_plan_allocate(plan, problem->nsends, sizeof(int));
  packed->send_offsets = swp_plan_allocate(plan, problem->nsends, sizeof(int));
  packed->recv_counts = swp_plan_allocate(plan, problem->nrecvs, sizeof(int));
  packed->recv_offsets = swp_plan_allocate(plan, problem->nrecvs, sizeof(int));
  packed->staging = swp_plan_allocate(plan, exchange_plan_of(plan)->copied_bytes, 1);
  if (packed->send_counts == NULL || packed->send_offsets == NULL || packed->recv_counts == NULL ||
      packed->recv_offsets == NULL || packed->staging == NULL)
    return swp_plan_no_memory(plan);
  if (problem->item_bytes > INT_MAX)
    return swp_fail(SWP_ERR_TOO_LARGE, "items of %lld bytes exceed MPI's int",
                    (long long)problem->item_bytes);
  MPI_TRY(MPI_Type_contiguous((int)problem->item_bytes, MPI_BYTE, &packed->item));
  MPI_TRY(MPI_Type_commit(&packed->item));
  TRY(place_all(problem, packed));
done:
  return error;
}

const char *swp_packed_send(const struct swp_plan *plan, const struct packed *packed, const char *send) {
  if (packed->in_place)
    return send;
  char *to = packed->staging;
  for (int i = 0; i < exchange_plan_of(plan)->problem->nsends; i++) {
    const struct send *message = &exchange_plan_of(plan)->problem->sends[i];
    swp_runs_pack(message->runs, message->nruns, send, to);
    to += message->bytes;
  }
  return packed->staging;
}

void swp_packed_free(struct packed *packed) {
  if (packed->item != MPI_DATATYPE_NULL)
    MPI_Type_free(&packed->item);
  swp_release(packed->send_counts);
  swp_release(packed->send_offsets);
  swp_release(packed->recv_counts);
  swp_release(packed->recv_offsets);
  swp_release(packed->staging);
}

int swp_packed_advance(struct swp_plan *plan, bool block, bool *done) {
  struct packed *packed = plan->method_state;
  return swp_progress(plan, 1, &packed->request, block, done);
}
