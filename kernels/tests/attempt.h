/* An exchange between all ranks that is right until one of them spoils it. */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "switchpoint.h"

#include <stddef.h>

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

/* What one rank can get wrong of an attempt, with the error of all ranks, and the ranks that it takes. The
   macros make its function and its row from a list of X(name, what the rank does to `a`, error, ranks). */
struct mistake {
  const char *name;
  void (*spoil)(struct attempt *attempt);
  int error, ranks;
};
#define MISTAKE_FUNCTION(name, change, error, ranks)                                                         \
  static void name(struct attempt *a) {                                                                      \
    (void)a;                                                                                                 \
    change;                                                                                                  \
  }
#define MISTAKE_ROW(name, change, error, ranks) {#name, name, error, ranks},

/* Collective. Expects that each mistake of the culprit gives all ranks its error from `plan`, and no plan. */
void attempt_mistakes(size_t count, const struct mistake *mistakes, int culprit,
                      int plan(const struct attempt *attempt, swp_plan **plan));

#endif
