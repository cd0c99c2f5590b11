/* The time limit of a launch, shared by its sizes. */
#ifndef BENCH_BUDGET_H
#define BENCH_BUDGET_H

#include "session.h"

/* What a size needs, as foreseen on rank 0. */
struct need {
  int methods;     /* of its race */
  int rounds;      /* that a launch needs to count, or all that are wanted */
  double round_ns; /* time of a round of one method; 0: not known */
};

struct budget {
  int64_t end_ns;        /* of the launch on rank 0's clock; INT64_MAX: there is no limit */
  int64_t trials_end_ns; /* of the trials */
  struct need *needs;    /* by size */
  int nsizes;
  int64_t begin_ns;   /* of a size, then of its rounds */
  double overhead_ns; /* of the last size, beside its rounds, for each method of its race */
  double applicable;  /* the part of these that was planned */
  double ratio;       /* of its rounds to as many times the one method as were planned */
};

/*
 * Tries one method at each size, if several share a limit. Collective; the failure is agreed. budget_free
 * must be called in both cases.
 */
int budget_prepare(struct session *session, struct budget *budget);
void budget_free(struct budget *budget);

/* Called when a size begins, before anything is made for it. */
void budget_begin(struct budget *budget);

/*
 * Returns whether the index-th size is measured. Each size left gets the rounds that it needs, and an even
 * share of the rest. Where the time is too short for that, sizes are dropped, evenly over the range, as
 * rounds too few to count would be lost; the first is always measured. On rank 0.
 */
bool budget_keeps(const struct budget *budget, int index);

/* When the index-th size must end, with this many methods planned. On rank 0. */
int64_t budget_deadline_ns(struct budget *budget, int index, int methods);

/* Called when the size has had this many samples. */
void budget_spent(struct budget *budget, int index, int samples);

#endif
