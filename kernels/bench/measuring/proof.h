/*
 * Proof that the MPI library runs the algorithms that contenders `vendor:algorithm=NAME` name: writable
 * variables may have no effect, and a library runs another algorithm if one cannot do a call.
 */
#ifndef BENCH_PROOF_H
#define BENCH_PROOF_H

#include "contender.h"

/*
 * Takes the plan, with the reason, from each such contender that the library refuses to run, or whose calls
 * were not observed to differ from those of such a contender before it, or of any algorithm. Those that an
 * earlier launch has proved are only called as often as the library needs to settle on an algorithm.
 * Collective.
 */
void proof_check(const struct workload *workload, struct contender *contenders, int count, bool proved);

#endif
