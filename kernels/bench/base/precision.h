/* The precision of a median: order-statistic intervals, and the looks at which they are taken. */
#ifndef BENCH_PRECISION_H
#define BENCH_PRECISION_H

#include <stdbool.h>
#include <stddef.h>

struct interval {
  double median, low, high; /* low and high bound the median with 95 % confidence */
};

/* The interval of n >= 1 samples in any order; below 6 samples there is none: the least and the greatest. */
struct interval median_interval(const double *samples, int n);

/* The same of a member of structures: the first member, the size of the structure, the number of structures.
 */
struct interval member_interval(const double *first, size_t stride, int n);

/* Returns whether the precision is checked after n samples: at 20, 40, 80, 160. */
bool precision_look(int n);

/* Returns whether both ends lie within 2.5 % of the median. */
bool precise(struct interval interval);

#endif
