/* The messages of an exchange as they are. */
#include "messages.h"

void swp_messages_free(struct messages *messages) {
  for (int i = 0; messages->transfers != NULL && i < messages->nmessages; i++)
    swp_transfer_free(&messages->transfers[i]);
  swp_release(messages->transfers);
  swp_release(messages->requests);
  swp_release(messages->packed);
  swp_release(messages->staging);
}

static int plan_receive(struct swp_plan *plan, const struct receive *receive, struct transfer *transfer) {
  const struct run run = {receive->offset, receive->bytes};
  swp_plan_count_receive(plan, 0, receive->peer, receive->bytes);
  return swp_transfer_set(transfer, receive->peer, PLACE_USER, &run, 1);
}

static int plan_send(struct swp_plan *plan, const struct send *send, int64_t *staged,
                     struct transfer *transfer) {
  const struct run packed = {*staged, send->bytes};
  const bool together = send->nruns == 1;
  swp_plan_count(plan, 0, send->peer, send->bytes);
  *staged += together ? 0 : send->bytes;
  return swp_transfer_set(transfer, send->peer, together ? PLACE_USER : PLACE_OUTGOING,
                          together ? send->runs : &packed, 1);
}

static int add_messages(struct swp_plan *plan, const struct slots *slots, struct messages *messages,
                        int64_t *staged) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int error = SWP_SUCCESS;
  for (int i = 0; i < problem->nrecvs; i++)
    if (!swp_slots_fit(plan, slots, problem->recvs[i].peer, problem->recvs[i].bytes))
      TRY(plan_receive(plan, &problem->recvs[i], &messages->transfers[messages->nmessages++]));
  messages->nrecvs = messages->nmessages;
  for (int i = 0; i < problem->nsends; i++)
    if (!swp_slots_fit(plan, slots, problem->sends[i].peer, problem->sends[i].bytes)) {
      messages->packed[messages->nmessages - messages->nrecvs] = &problem->sends[i];
      TRY(plan_send(plan, &problem->sends[i], staged, &messages->transfers[messages->nmessages++]));
    }
done:
  return error;
}

int swp_messages_plan(struct swp_plan *plan, const struct slots *slots, struct messages *messages) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  const int64_t most = (int64_t)problem->nrecvs + problem->nsends;
  int64_t staged = 0;
  messages->transfers = swp_plan_allocate(plan, most, sizeof *messages->transfers);
  messages->requests = swp_plan_allocate(plan, most, sizeof *messages->requests);
  messages->packed = swp_plan_allocate(plan, problem->nsends, sizeof *messages->packed);
  if (messages->transfers == NULL || messages->requests == NULL || messages->packed == NULL)
    return swp_plan_no_memory(plan);
  int error = add_messages(plan, slots, messages, &staged);
  if (error != SWP_SUCCESS)
    return error;
  exchange_plan_of(plan)->copied_bytes += staged;
  messages->staging = swp_plan_allocate(plan, staged, 1);
  return messages->staging != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
}
