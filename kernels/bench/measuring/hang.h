/* Ends a launch in which a rank makes no progress, by a signal of a timer: beside a thread, as soaks have it,
   malloc would take locks, which would be measured. */
#ifndef BENCH_HANG_H
#define BENCH_HANG_H

#include <stdint.h>

/* Preparation has no signs of life: it may take this many times the limit. */
enum { PREPARATION_LIMITS = 10 };

/*
 * From now on this rank must give a sign of life at least every limit_s seconds of the job's time; otherwise
 * it writes what it was doing, and ends the job. 0: never; nor does a simulation. It uses the signal
 * SIGVTALRM. Local.
 */
void hang_watch(int rank, double limit_s);

/*
 * A sign of life, with what this rank does next: with which method, or NULL, and at which size, or 0. With
 * `doing` NULL it is not watched: it waits for others, which are. Local.
 */
void hang_next(const char *doing, const char *method, int64_t size_bytes);

/* A sign of life of a rank that still does the same. Local. */
void hang_beat(void);

#endif
