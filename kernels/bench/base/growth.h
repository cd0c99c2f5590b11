/* Whether a process keeps more and more memory. */
#ifndef BENCH_GROWTH_H
#define BENCH_GROWTH_H

#include <stdint.h>

enum { GROWTH_LOOKS = 9 };

/* What of the process's memory is in use, when it was looked at. */
struct growth {
  int looks;
  int64_t heap_bytes[GROWTH_LOOKS]; /* allocated; all 0 where the C library does not tell */
  int64_t resident_bytes[GROWTH_LOOKS];
};

/* The first look, and each of the next eight, at even distances. Local. */
void growth_look(struct growth *growth);

/*
 * How much was in use at the last look beyond the first, where that is a leak: it became more from each look
 * to the next, and not mostly in the first half, as of pools that a library fills; else 0. Local.
 */
int64_t growth_leak_bytes(const struct growth *growth);

#endif
