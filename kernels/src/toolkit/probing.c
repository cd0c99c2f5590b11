/* Functions that discovery methods that receive from unknown senders share. */
#include "probing.h"

int swp_probing_reserve(struct swp_plan *plan, struct probing *probing, int count) {
  if (count <= probing->capacity)
    return SWP_SUCCESS;
  swp_release_counted(probing->requests, (size_t)probing->capacity, sizeof *probing->requests,
                      &plan->account);
  probing->capacity = 0;
  probing->requests = swp_plan_allocate(plan, count, sizeof *probing->requests);
  if (probing->requests == NULL)
    return swp_fail(SWP_ERR_MEMORY, "%s: no memory for %d sends", plan->spec.text, count);
  probing->capacity = count;
  return SWP_SUCCESS;
}

int swp_probing_send(struct swp_plan *plan, struct probing *probing, const struct outbox *outbox,
                     int64_t above_bytes, bool synchronous) {
  int error = swp_probing_reserve(plan, probing, outbox->nsends);
  if (error != SWP_SUCCESS)
    return error;
  probing->count = 0;
  for (int i = 0; i < outbox->nsends; i++) {
    if (outbox->ranks[i] == plan->rank || outbox->bytes[i] <= above_bytes)
      continue;
    int bytes = (int)outbox->bytes[i];
    MPI_Request *request = &probing->requests[probing->count];
    if (synchronous)
      MPI_TRY(
          MPI_Issend(outbox->data[i], bytes, MPI_BYTE, outbox->ranks[i], probing->tag, plan->comm, request));
    else
      MPI_TRY(
          MPI_Isend(outbox->data[i], bytes, MPI_BYTE, outbox->ranks[i], probing->tag, plan->comm, request));
    probing->count++;
  }
done:
  return error;
}

/* Iprobe and Recv, not Improbe: the communicator is private and a plan is used by one thread at a time. */
int swp_probing_receive(struct swp_plan *plan, struct probing *probing, struct inbox *inbox, bool block,
                        bool *received) {
  int error = SWP_SUCCESS, found = 0, bytes;
  MPI_Status status;
  for (;;) {
    MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, probing->tag, plan->comm, &found, &status));
    if (found || !block)
      break;
    swp_plan_relax(plan);
  }
  if (found) {
    MPI_TRY(MPI_Get_count(&status, MPI_BYTE, &bytes));
    void *data = swp_inbox_add(inbox, status.MPI_SOURCE, bytes);
    if (data == NULL) {
      probing->failure = swp_fail(SWP_ERR_MEMORY, "%s: no memory for %d bytes from rank %d", plan->spec.text,
                                  bytes, status.MPI_SOURCE);
      TRY(swp_probing_discard(plan, &status));
    } else {
      MPI_TRY(
          MPI_Recv(data, bytes, MPI_BYTE, status.MPI_SOURCE, probing->tag, plan->comm, MPI_STATUS_IGNORE));
    }
  }
done:
  *received = found != 0;
  return error;
}

int swp_probing_finish(struct swp_plan *plan, struct probing *probing, struct inbox *inbox, int64_t count) {
  int error = SWP_SUCCESS;
  bool done;
  for (int64_t i = 0; i < count; i++)
    TRY(swp_probing_receive(plan, probing, inbox, true, &done));
  TRY(swp_progress(plan, probing->count, probing->requests, true, &done));
  probing->tag = (probing->tag + 1) % PROBING_TAGS;
  error = probing->failure;
  probing->failure = SWP_SUCCESS;
done:
  return error;
}

/* All bytes go to the same place. MPI forbids such types for receiving, as their order is not defined, but a
   truncated receive is worse: Open MPI 4 writes past its end. */
int swp_probing_discard(struct swp_plan *plan, const MPI_Status *status) {
  int error = SWP_SUCCESS, bytes;
  char nowhere;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_TRY(MPI_Get_count(status, MPI_BYTE, &bytes));
  MPI_TRY(MPI_Type_create_hvector(bytes, 1, 0, MPI_BYTE, &type));
  MPI_TRY(MPI_Type_commit(&type));
  MPI_TRY(MPI_Recv(&nowhere, 1, type, status->MPI_SOURCE, status->MPI_TAG, plan->comm, MPI_STATUS_IGNORE));
done:
  if (type != MPI_DATATYPE_NULL)
    MPI_Type_free(&type);
  return error;
}

void swp_probing_free(struct probing *probing) {
  swp_release(probing->requests);
}
