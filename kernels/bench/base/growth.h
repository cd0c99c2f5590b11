/* Detects a process that keeps more and more memory. */
#ifndef BENCH_GROWTH_H
#define BENCH_GROWTH_H

#include <stdint.h>

enum { GROWTH_READINGS = 9 };

/* The process's memory in use, at each reading. */
struct growth {
  int readings;
  int64_t heap_bytes[GROWTH_READINGS]; /* allocated; all 0 if the C library does not report it */
  int64_t resident_bytes[GROWTH_READINGS];
};

/* The first reading, and each of the next eight, at even distances. Local. */
void growth_read(struct growth *growth);

/*
 * The growth from the first reading to the last if it is a leak: memory grew from each reading to the next,
 * and not mostly in the first half, as with pools that a library fills; otherwise 0. Local.
 */
int64_t growth_leak_bytes(const struct growth *growth);

#endif
