/* Racing the candidates of an exchange or a collective on its own problem: SWP_MEASURE. */
#ifndef SWP_RACE_H
#define SWP_RACE_H

#include "choices.h"

/* The method that is fastest from this many executions on, planning included. */
struct stretch {
  int64_t from;
  struct spec spec;
};

struct outcome {
  bool decided; /* else there were too few rounds to decide */
  int count;    /* of stretches; the first begins at 0 */
  struct stretch *stretches;
  char evidence[EVIDENCE_BYTES];
};

/*
 * Plans the default and every other applicable method, executes them on buffers of its own in rounds of
 * random order until the budget of the hints is spent, and finds which one to use from how many executions
 * on. The default stays unless another is clearly faster. Collective on plan->comm; the outcome is the same
 * on every rank; swp_outcome_release must be called in any case. Errors, agreed: SWP_ERR_MEMORY, _METHOD,
 * _MPI.
 */
int swp_race(struct swp_plan *plan, struct outcome *outcome);

/* Returns the method for this many executions; 0: unknown, assumed to be many. */
const struct spec *swp_outcome_for(const struct outcome *outcome, int64_t executions);

void swp_outcome_release(struct outcome *outcome);

#endif
