/* Random numbers that are the same on all ranks. */
#ifndef SWP_RANDOM_H
#define SWP_RANDOM_H

#include <stdint.h>

/* SplitMix64. */
static inline uint64_t swp_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

#endif
