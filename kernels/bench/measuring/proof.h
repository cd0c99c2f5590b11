/*
 * Whether the MPI library runs the algorithms that contenders `vendor:algorithm=NAME` name: variables that a
 * library lets write may have no effect, and it runs another algorithm where one cannot do a call.
 */
#ifndef BENCH_PROOF_H
#define BENCH_PROOF_H

#include "contender.h"

/*
 * Takes the plan, with the reason, from each such contender that the library refuses to run, or whose calls
 * are not seen to run anything else than those of such a contender before it, or of any algorithm.
 * Collective.
 */
void proof_check(const struct workload *workload, struct contender *contenders, int count);

#endif
