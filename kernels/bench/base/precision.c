#include "precision.h"

#include "order.h"

#include <math.h>
#include <stdlib.h>

static const double TOLERANCE = 0.025;
static const double TAIL = 0.025; /* of the 95 % interval, on each side */

/* The largest k for which fewer than k of n fair coins are heads with probability at most TAIL; 1 at least.
 */
static int interval_rank(int n) {
  double below = 0;
  int k = 0;
  for (; k < n; k++) {
    below += exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) - n * log(2.0));
    if (below > TAIL)
      break;
  }
  return k > 1 ? k : 1;
}

struct interval median_interval(const double *samples, int n) {
  return member_interval(samples, sizeof *samples, n);
}

struct interval member_interval(const double *first, size_t stride, int n) {
  double *sorted = malloc((size_t)n * sizeof *sorted);
  if (!sorted)
    return (struct interval){NAN, NAN, NAN};
  for (int i = 0; i < n; i++)
    sorted[i] = *(const double *)(const void *)((const char *)first + (size_t)i * stride);
  qsort(sorted, (size_t)n, sizeof *sorted, swp_by_double);
  const int k = interval_rank(n);
  const struct interval interval = {(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted[k - 1], sorted[n - k]};
  free(sorted);
  return interval;
}

/* The samples of a simulation are all alike. */
bool precision_look(int n) {
  return n == 20 || n == 40 || n == 80 || n == 160 || (SWP_SIMULATED && n == 1);
}

bool precise(struct interval interval) {
  return interval.low >= (1 - TOLERANCE) * interval.median &&
         interval.high <= (1 + TOLERANCE) * interval.median;
}
