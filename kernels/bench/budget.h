/* The time limit of a launch, shared by its sizes. */
#ifndef BENCH_BUDGET_H
#define BENCH_BUDGET_H

#include "session.h"

struct budget {
  int64_t end_ns;    /* of the launch on rank 0's clock; INT64_MAX: there is no limit */
  int64_t *round_ns; /* what a round of one method takes at each size, on rank 0; 0: not known */
  int nsizes;
};

/*
 * Tries one method at each size, where several share a limit. Collective; the failure is agreed. budget_free
 * is due in both cases.
 */
int budget_prepare(struct session *session, struct budget *budget);
void budget_free(struct budget *budget);

/* When the index-th size is to end: what is left now is shared by it and those behind it, one half evenly,
   the other by what a round takes. On rank 0. */
int64_t budget_deadline_ns(const struct budget *budget, int index);

#endif
