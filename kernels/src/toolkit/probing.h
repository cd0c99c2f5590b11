/* Functions that discovery methods that receive from unknown senders share. */
#ifndef SWP_PROBING_H
#define SWP_PROBING_H

#include "inbox.h"
#include "plan.h"

/* Requests of the sends under way, and the tag of this call. Two tags take turns, because a fast rank's next
   call can otherwise be matched by a slow rank's wildcard probe. */
struct probing {
  int tag;
  int count, capacity;
  MPI_Request *requests;
  int failure; /* of this call: memory ran out for a message */
};

enum { PROBING_TAGS = 2, CONTROL_TAG = PROBING_TAGS, BULLETIN_TAG };

/* Makes room for this many sends. Errors: SWP_ERR_MEMORY. */
int swp_probing_reserve(struct swp_plan *plan, struct probing *probing, int count);

enum { ANY_BYTES = -1 };

/* Starts a send of each message of more than `above_bytes` but one to oneself; with synchronous, it completes
   when it is received. */
int swp_probing_send(struct swp_plan *plan, struct probing *probing, const struct outbox *outbox,
                     int64_t above_bytes, bool synchronous);

/* Receives one message of this call into the inbox; with block, waits for it. *received says whether it did.
   A message for which there is no memory is dropped, so that its sender need not wait, and sets the call's
   failure. */
int swp_probing_receive(struct swp_plan *plan, struct probing *probing, struct inbox *inbox, bool block,
                        bool *received);

/* Receives `count` messages and completes the sends; the next call uses the other tag. Returns the call's
   failure. */
int swp_probing_finish(struct swp_plan *plan, struct probing *probing, struct inbox *inbox, int64_t count);

/* Takes a message that was probed, and drops it: its sender need not wait. Errors: SWP_ERR_MPI. */
int swp_probing_discard(struct swp_plan *plan, const MPI_Status *status);

void swp_probing_free(struct probing *probing);

#endif
