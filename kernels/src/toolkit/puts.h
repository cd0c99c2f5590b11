/*
 * Messages to receivers that do not expect them, by one-sided communication: each rank has a slip of fixed
 * size for every other in its window, where that one puts a short message, or the size of a longer one that
 * is on its way (Geyko, Collom, Schafer, Bridges, Bienz, arXiv 2308.13869). O(P) memory, and looking through
 * the slips, but messages to receivers only.
 */
#ifndef SWP_PUTS_H
#define SWP_PUTS_H

#include "probing.h"
#include "window.h"

enum { SLIP_DATA_BYTES = 48 };

struct puts {
  MPI_Win window;
  struct slip *slips; /* in the window: two turns of one for each rank */
  struct slip *sent;  /* for each rank, until the next fence */
  uint64_t call;
  struct probing probing; /* of longer messages */
};

/* `puts` is zeroed, and its window MPI_WIN_NULL. Allocates all that calls need. Collective. `error` is an
   earlier error of this rank, with which `puts` may be NULL; it is agreed on. Errors: SWP_ERR_MEMORY,
   SWP_ERR_MPI, the earlier one. */
int swp_puts_plan(struct swp_plan *plan, int error, struct puts *puts);

/* Collective, if swp_puts_plan was. */
void swp_puts_free(struct puts *puts);

/* Sends the messages in the outbox and receives those sent to this rank. Collective. Errors: SWP_ERR_MEMORY,
   after which all ranks have gone through it nevertheless; SWP_ERR_MPI. */
int swp_puts_exchange(struct swp_plan *plan, struct puts *puts, const struct outbox *outbox,
                      struct inbox *inbox);

#endif
