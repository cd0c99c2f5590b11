/*
 * Messages to receivers that do not expect them, in memory that the ranks share: each rank owns a bulletin,
 * where it writes the size of its message to each other, and small messages themselves; every rank reads all
 * bulletins. Large messages are sent by MPI, with receives of the right size. A rank has two bulletins, which
 * take turns. It writes that of call n + 2 only when all have begun call n + 1, as they have then read all of
 * call n. kernels/tests/protocols/bulletins.pml is a model of this.
 */
#ifndef SWP_BULLETINS_H
#define SWP_BULLETINS_H

#include "inbox.h"
#include "sharing.h"

struct bulletins {
  struct sharers sharers;
  struct share share; /* the two bulletins of each */
  int64_t data_offset, bulletin_bytes;
  uint64_t call;
  MPI_Request *requests; /* of large messages, sent and received */
};

/* Takes the memory of all ranks, or of each node's, whose communicator is `comm`. Collective on it. `error`
   is an earlier error of this rank, with which `bulletins` may be NULL. Errors: as swp_arena_take. */
int swp_bulletins_take(struct swp_plan *plan, bool on_node, MPI_Comm comm, int error,
                       struct bulletins *bulletins);

/* NULL is allowed. */
void swp_bulletins_give(struct bulletins *bulletins);

/* Sends the messages in the outbox to other sharers, and receives those sent to this rank. Collective on the
   sharers. Errors: SWP_ERR_MEMORY, after which all of them have gone through it nevertheless; SWP_ERR_MPI. */
int swp_bulletins_exchange(struct swp_plan *plan, struct bulletins *bulletins, const struct outbox *outbox,
                           struct inbox *inbox);

#endif
