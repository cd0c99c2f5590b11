/*
 * A call that moves items, as one of bytes, which is the same on every rank: algorithms of MPI libraries cut
 * and forward what one rank's type has, and are wrong where types differ between ranks.
 */
#ifndef SWP_VENDOR_BYTES_H
#define SWP_VENDOR_BYTES_H

#include "call.h"

/* What the call was before. */
struct items {
  struct call call;
  void *recv;
};

/* Room for what does not lie in memory as bytes, and for the counts of an allgatherv. */
int64_t swp_bytes_scratch_bytes(const struct swp_plan *plan);

/* Makes the plan's call, and the buffers, those of bytes; a reduction stays what it is. Errors: SWP_ERR_MPI.
 */
int swp_bytes_begin(struct swp_plan *plan, const void **send, void **recv, struct items *items);

/* Makes the call what it was, and without an error of it, which this gives, brings the bytes to the items.
   Errors: SWP_ERR_MPI. */
int swp_bytes_end(struct swp_plan *plan, const struct items *items, const void *bytes, int error);

#endif
