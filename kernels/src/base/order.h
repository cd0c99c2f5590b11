/* Comparisons of items by their first member, for qsort and bsearch, and of numbers. */
#ifndef SWP_ORDER_H
#define SWP_ORDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline int swp_by_int(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

static inline int swp_by_int64(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static inline int swp_by_double(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of n > 0 values. `sorted` is room for n, and then has them in order. */
static inline double swp_median(const double *values, double *sorted, int n) {
  memcpy(sorted, values, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, swp_by_double);
  return n % 2 != 0 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static inline double swp_greater(double a, double b) {
  return a > b ? a : b;
}

static inline int swp_fewer(int a, int b) {
  return a < b ? a : b;
}

#endif
