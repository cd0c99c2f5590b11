/* Functions that the methods over MPI's vector collectives share: consecutive send data, int counts and
   offsets. */
#ifndef SWP_PACKED_H
#define SWP_PACKED_H

#include "kinds.h"

struct packed {
  MPI_Datatype item;
  int *send_counts, *send_offsets; /* per send of the problem, in items */
  int *recv_counts, *recv_offsets; /* per receive */
  bool in_place;                   /* every message is contiguous: the caller's buffer is used as it is */
  char *staging;
  MPI_Request request; /* of the collective under way */
};

/* The value before swp_packed_plan, which swp_packed_free accepts. */
#define PACKED_NONE ((struct packed){.item = MPI_DATATYPE_NULL})

/* Plans one stage of the problem's messages. Errors: SWP_ERR_MEMORY, SWP_ERR_MPI, SWP_ERR_TOO_LARGE. */
int swp_packed_plan(struct swp_plan *plan, struct packed *packed);

/* The buffer to send from; packs when needed. */
const char *swp_packed_send(const struct swp_plan *plan, const struct packed *packed, const char *send);

void swp_packed_free(struct packed *packed);

/* `advance` of a method whose state begins with one. */
int swp_packed_advance(struct swp_plan *plan, bool block, bool *done);

#endif
