/* The time limit of a launch, shared by its sizes. */
#ifndef BENCH_BUDGET_H
#define BENCH_BUDGET_H

#include "session.h"

struct budget {
  int64_t end_ns;    /* of the launch on rank 0's clock; INT64_MAX: there is no limit */
  int64_t *round_ns; /* what a round of one method takes at each size, on rank 0; 0: not known */
  int nsizes;
  int64_t begin_ns;    /* of a size, then of its rounds */
  int64_t overhead_ns; /* of the last size, beside its rounds */
  double methods;      /* how many times as long all its methods took as the one; 0: not known */
};

/*
 * Tries one method at each size, where several share a limit. Collective; the failure is agreed. budget_free
 * is due in both cases.
 */
int budget_prepare(struct session *session, struct budget *budget);
void budget_free(struct budget *budget);

/* A size begins, before anything is made for it. */
void budget_begin(struct budget *budget);

/*
 * When the index-th size is to end, whose so many methods are planned: each that is left first gets the
 * rounds that a launch must have to count, and all an even share of the rest. Where there is no such rest,
 * all get the same part of what they need. On rank 0.
 */
int64_t budget_deadline_ns(struct budget *budget, int index, int methods);

/* The size has had so many samples. */
void budget_spent(struct budget *budget, int index, int samples);

#endif
