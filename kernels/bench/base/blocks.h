/* n things dealt to p ranks in contiguous blocks, the first n mod p of them one larger. */
#ifndef BENCH_BLOCKS_H
#define BENCH_BLOCKS_H

#include <stdint.h>

static inline int64_t block_first(int64_t n, int p, int rank) {
  const int64_t rest = n % p;
  return n / p * rank + (rank < rest ? rank : rest);
}

static inline int64_t block_size(int64_t n, int p, int rank) {
  return n / p + (rank < n % p);
}

static inline int block_owner(int64_t n, int p, int64_t index) {
  const int64_t size = n / p, rest = n % p;
  if (index < rest * (size + 1))
    return (int)(index / (size + 1));
  return (int)(rest + (index - rest * (size + 1)) / size);
}

#endif
