/* Seeded random numbers (SplitMix64), the same on every rank and every machine. */
#ifndef BENCH_RNG_H
#define BENCH_RNG_H

#include <stdint.h>

struct rng {
  uint64_t state;
};

/* A well-mixed function of both values; chained, it makes one key of several numbers. */
uint64_t hash_pair(uint64_t a, uint64_t b);

uint64_t rng_next(struct rng *rng);

/* Uniform in 0 .. n-1, n at least 1. */
int64_t rng_below(struct rng *rng, int64_t n);

/* A uniform random order of 0 .. n-1. */
void rng_permutation(struct rng *rng, int n, int *order);

/* k distinct numbers out of 0 .. n-1, increasing, in O(k) memory. */
void rng_sample(struct rng *rng, int n, int k, int *chosen);

#endif
