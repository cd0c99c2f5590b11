/* Collective algorithms with a radix. Their times on P ranks, by m, the block of a rank or the whole vector:
   the equations of tuner/models/algorithms.py, which name their sources. */
#ifndef SWP_RADIX_H
#define SWP_RADIX_H

#include "group.h"

/* The radix of a spec, which is the method's first parameter. */
static inline int swp_radix_of(const struct spec *spec) {
  return (int)spec->arguments[0].value;
}

/* ⌈log P⌉ to the base of the radix. */
int swp_radix_levels(const struct group *group, int radix);

/* How many of the ranks act, alone or in pairs: a power of the radix, times the values of one more digit. */
int swp_radix_positions(int procs, int radix);

typedef double radix_formula(const struct group *group, double m, int radix);
radix_formula swp_radix_knomial_bcast_s, swp_radix_knomial_blocks_s, swp_radix_knomial_reduce_s;
radix_formula swp_radix_knomial_barrier_s, swp_radix_bruck_barrier_s;
radix_formula swp_radix_multiplying_allreduce_s, swp_radix_multiplying_allgather_s;
radix_formula swp_radix_bruck_allgather_s, swp_radix_bruck_alltoall_s;
double swp_radix_uneven_bruck_s(const struct group *group, double m, int radix,
                                int global); /* global 0: all ranks as one node */

/* `estimate` by such a formula. */
int swp_estimate_radix(const struct swp_plan *plan, const struct estimate *estimate, radix_formula *its,
                       double *seconds);

#endif
