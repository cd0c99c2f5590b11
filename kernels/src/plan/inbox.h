/* The messages that a discovery sends and receives, as methods see them. */
#ifndef SWP_INBOX_H
#define SWP_INBOX_H

#include "switchpoint.h"

/* The messages that a rank sends. One to itself is delivered before the method runs; methods skip it. */
struct outbox {
  int nsends;
  const int *ranks;
  const int64_t *bytes; /* at most INT_MAX */
  const void *const *data;
};

struct inbox;

/* Makes room for a message of `bytes` from `source`; NULL when memory runs out. Its place does not move
   until the inbox is reused. */
void *swp_inbox_add(struct inbox *inbox, int source, int64_t bytes);

/* An empty inbox, or NULL. */
struct inbox *swp_inbox_create(void);

/* NULL is allowed. */
void swp_inbox_destroy(struct inbox *inbox);

/* Empties an inbox for reuse; its memory stays. */
void swp_inbox_empty(struct inbox *inbox);

/* Sorts the messages by source and fills in what the caller sees. */
void swp_inbox_finish(struct inbox *inbox);

/* Convert what the caller sees to the inbox, and back. */
struct inbox *swp_inbox_of(swp_inbox *seen);
swp_inbox *swp_inbox_seen(struct inbox *inbox);

#endif
