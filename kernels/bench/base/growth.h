/* Detects a process that keeps more and more memory. */
#ifndef BENCH_GROWTH_H
#define BENCH_GROWTH_H

#include <stdint.h>

enum { GROWTH_LOOKS = 9 };

/* The process's memory in use, at each look. */
struct growth {
  int looks;
  int64_t heap_bytes[GROWTH_LOOKS]; /* allocated; all 0 if the C library does not report it */
  int64_t resident_bytes[GROWTH_LOOKS];
};

/* The first look, and each of the next eight, at even distances. Local. */
void growth_look(struct growth *growth);

/*
 * The growth from the first look to the last if it is a leak: memory grew from each look to the next, and not
 * mostly in the first half, as with pools that a library fills; otherwise 0. Local.
 */
int64_t growth_leak_bytes(const struct growth *growth);

#endif
