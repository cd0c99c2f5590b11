#include "rng.h"

#include "random.h"

#include <string.h>

uint64_t hash_pair(uint64_t a, uint64_t b) {
  return swp_mix(swp_random(&a) + b);
}

uint64_t rng_next(struct rng *rng) {
  return swp_random(&rng->state);
}

int64_t rng_below(struct rng *rng, int64_t n) {
  const uint64_t bound = (uint64_t)n;
  const uint64_t unfair = -bound % bound; /* 2^64 mod n: the values that would favour small results */
  uint64_t x;
  do
    x = rng_next(rng);
  while (x < unfair);
  return (int64_t)(x % bound);
}

void rng_permutation(struct rng *rng, int n, int *order) {
  for (int i = 0; i < n; i++) {
    const int j = (int)rng_below(rng, i + 1);
    order[i] = order[j];
    order[j] = i;
  }
}

/* The place of x in the increasing list, or where it belongs. */
static int place(const int *list, int n, int x) {
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (list[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* R. Floyd's sampling: step i draws from 0 .. n-k+i, and takes the last of these on a repeat. */
void rng_sample(struct rng *rng, int n, int k, int *chosen) {
  for (int i = 0; i < k; i++) {
    const int last = n - k + i;
    int x = (int)rng_below(rng, (int64_t)last + 1);
    int at = place(chosen, i, x);
    if (at < i && chosen[at] == x) {
      x = last;
      at = i;
    }
    memmove(chosen + at + 1, chosen + at, (size_t)(i - at) * sizeof *chosen);
    chosen[at] = x;
  }
}
