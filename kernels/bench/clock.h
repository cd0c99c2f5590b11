/* CLOCK_MONOTONIC, which all ranks of a node share. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>

#define CLOCK_NAME "CLOCK_MONOTONIC"

int64_t clock_ns(void);

/* The smallest step that two successive readings show. */
int64_t clock_tick_ns(void);

#endif
