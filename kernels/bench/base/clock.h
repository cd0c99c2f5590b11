/* CLOCK_MONOTONIC, which all ranks of a node share. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_NAME "CLOCK_MONOTONIC"

int64_t clock_ns(void);

/* Waits until that time and returns the time then. With `yields` others may use the core meanwhile. */
int64_t clock_wait(int64_t until_ns, bool yields);

/* The smallest step that two successive readings show. */
int64_t clock_tick_ns(void);

#endif
