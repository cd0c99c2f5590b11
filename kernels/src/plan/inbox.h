/* What a discovery sends and receives, as methods see it. */
#ifndef SWP_INBOX_H
#define SWP_INBOX_H

#include "switchpoint.h"

/* What a rank sends. A message to itself is delivered before the method runs; methods pass over it. */
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

/* Orders the messages by source and fills what the caller sees. */
void swp_inbox_finish(struct inbox *inbox);

/* The inbox behind what the caller sees, and the other way. */
struct inbox *swp_inbox_of(swp_inbox *seen);
swp_inbox *swp_inbox_seen(struct inbox *inbox);

#endif
