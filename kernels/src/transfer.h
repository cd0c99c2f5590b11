/* One message of an exchange plan: where its bytes lie, as MPI wants it. */
#ifndef SWP_TRANSFER_H
#define SWP_TRANSFER_H

#include "plan.h"

enum transfer_place {
  PLACE_USER,     /* the caller's send or receive buffer */
  PLACE_OUTGOING, /* the plan's own: packed for sending */
  PLACE_INCOMING  /* the plan's own: received, to be forwarded or unpacked */
};

struct transfer {
  int peer;
  int count;
  MPI_Datatype type; /* MPI_BYTE, or its own */
  int64_t offset;    /* in the buffer of `place` */
  enum transfer_place place;
};

/* A message that lies in a buffer as these runs. One run of less than 2 GiB is sent as bytes, anything else
   by a type: MPI may pack that, which is not counted among the bytes copied. Errors: as swp_runs_type. Free
   with swp_transfer_free. */
int swp_transfer_set(struct transfer *transfer, int peer, enum transfer_place place, const struct run *runs,
                     int64_t nruns);

void swp_transfer_free(struct transfer *transfer);

#endif
