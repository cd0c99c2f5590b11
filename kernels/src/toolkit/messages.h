/*
 * The messages of an exchange as they are: each from its sender to its receiver, in one stage. A message
 * whose items lie together is sent from where it is; others are packed first.
 */
#ifndef SWP_MESSAGES_H
#define SWP_MESSAGES_H

#include "schedule.h"

struct messages {
  int nrecvs, nmessages;      /* nmessages: receives and sends */
  struct transfer *transfers; /* of the receives, then of the sends */
  MPI_Request *requests;      /* as the transfers */
  const struct send **packed; /* of each send: what is packed for it */
  char *staging;              /* packed messages */
};

/* Plans those of the problem's messages that do not go by these slots, counted as stage 0 of the plan.
   swp_messages_free must be called. Local. Errors: SWP_ERR_MEMORY, SWP_ERR_MPI, SWP_ERR_TOO_LARGE. */
int swp_messages_plan(struct swp_plan *plan, const struct slots *slots, struct messages *messages);

void swp_messages_free(struct messages *messages);

/* Posts all receives and sends. Inline, as it is all that the fastest exchange does. Errors, of both:
 * SWP_ERR_MPI. */
static inline int swp_messages_start(struct swp_plan *plan, const struct messages *messages, const char *send,
                                     char *recv) {
  const struct transfer *t = messages->transfers, *sends = t + messages->nrecvs,
                        *end = t + messages->nmessages;
  MPI_Request *request = messages->requests;
  char *place = messages->staging; /* t->offset is 0 where a type over 2 GiB - 1 has it */
  int error = SWP_SUCCESS;
  for (; t < sends; t++)
    MPI_TRY(MPI_Irecv(recv + t->offset, t->count, t->type, t->peer, 0, plan->comm, request++));
  for (; t < end; t++) {
    const char *from = send + t->offset;
    if (t->place == PLACE_OUTGOING) {
      const struct send *message = messages->packed[t - sends];
      swp_runs_pack(message->runs, message->nruns, send, place);
      place += message->bytes;
      from = messages->staging + t->offset;
    }
    MPI_TRY(MPI_Isend(from, t->count, t->type, t->peer, 0, plan->comm, request++));
  }
done:
  return error;
}

static inline int swp_messages_advance(struct swp_plan *plan, const struct messages *messages, bool block,
                                       bool *done) {
  return swp_progress(plan, messages->nmessages, messages->requests, block, done);
}

#endif
