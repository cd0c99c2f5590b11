/* Distinguishable payloads, and their comparison with the data received. */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include <stdint.h>

/* The values from which, with its rank and its number there, the bytes of an item derive. */
struct payload {
  uint64_t seed;
  uint64_t repetition;
  int64_t item_bytes;
};

/* Writes n items of `rank` one after the other: those listed, or the first n when items is NULL. */
void payload_write(const struct payload *payload, int rank, const int64_t *items, int64_t n, void *data);

/*
 * Compares n items from `source` with those that it wrote. 0, or -1 with failure_text() naming the first byte
 * that differs, its item and source.
 */
int payload_compare(const struct payload *payload, int source, const int64_t *items, int64_t n,
                    const void *data);

#endif
