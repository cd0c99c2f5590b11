/* An exchange between all ranks that is right until one of them spoils it. */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "switchpoint.h"

/* The problem points to the arrays after it, so an attempt is not copied. */
struct attempt {
  struct swp_exchange problem;
  const char *method;
  struct swp_hints hints;
  int send_ranks[2], recv_ranks[2];
  int64_t send_offsets[3], send_items[4], recv_offsets[3];
};

/* Items 0, 1, 2 of 8 bytes to the next rank of MPI_COMM_WORLD and 0 to oneself, directly. */
void attempt_make(struct attempt *attempt);

/* Collective. Returns the error, of which it expects that all ranks got it. */
int attempt_plan(const struct attempt *attempt, swp_plan **plan);

#endif
