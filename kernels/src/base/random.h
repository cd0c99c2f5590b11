/* Random numbers and hashes that are the same on all ranks. */
#ifndef SWP_RANDOM_H
#define SWP_RANDOM_H

#include <stdint.h>

/* The finaliser of SplitMix64, in which every bit of x affects every bit of the result. */
static inline uint64_t swp_mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* The next number of SplitMix64. */
static inline uint64_t swp_random(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15u;
  return swp_mix(*state);
}

/* Hashes (source, destination, bytes) to 64 bits, so that sums reveal messages without a partner. */
static inline uint64_t swp_message_hash(int source, int destination, int64_t bytes) {
  uint64_t ranks = (uint64_t)source << 32 | (uint32_t)destination;
  uint64_t message = swp_random(&ranks) ^ (uint64_t)bytes;
  return swp_random(&message);
}

#endif
