/* Sees the messages that this rank sends inside a call, collective ones included: under Open MPI 4 and 5. */
#ifndef BENCH_SENT_H
#define BENCH_SENT_H

#include <stdint.h>

/* Notes messages until sent_end. One at a time in a process. Local. */
void sent_begin(void);

/* A sum over the messages since sent_begin, by their receivers and bytes, in whatever order they were sent; 0
   if there were none, or none can be seen. Local. */
uint64_t sent_end(void);

#endif
