/* The methods that compete in one block, planned, with the results of planning. */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include "methods.h"
#include "operation.h"

/* One timed execution, over all ranks; kept on rank 0. */
struct sample {
  double seconds;
  int argmax_rank, round, position, late;
  double skew_s, canary_s;
  double phase_s[PHASES_MOST]; /* the operation's phases on their own, in the same round */
};

struct contender {
  const struct method *method;
  char spec[METHOD_SPEC_MAX];       /* canonical; "auto" stays */
  char selected[METHOD_SPEC_MAX];   /* what the plan uses */
  char described[512];              /* for "auto": why it was chosen, for people */
  swp_plan *plan;                   /* NULL: not applicable */
  char reason[512];                 /* then why */
  double plan_s;                    /* longest over ranks */
  struct swp_statistics statistics; /* plan_bytes: largest over ranks */
  int inner;                        /* executions per sample */
  struct sample *samples;           /* on rank 0 */
  int verified;
};

/*
 * Plans every method. Methods that turn out to be the same are taken once, so *count may be below nmethods.
 * Collective; the failure is agreed. contenders_free must be called in both cases.
 */
int contenders_plan(const struct workload *workload, const struct method *methods, int nmethods,
                    struct contender *contenders, int *count);

/* Collective. */
void contenders_free(struct contender *contenders, int count);

#endif
