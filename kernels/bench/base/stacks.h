/*
 * Finds the functions that run inside a blocking call, library internals without symbols included: a timer
 * interrupts it, and the stack is read.
 */
#ifndef BENCH_STACKS_H
#define BENCH_STACKS_H

#include <stdbool.h>

enum { STACK_FUNCTIONS = 128 };

/* Functions by address, and in how many of the stacks each was. */
struct stacks {
  int count, nfunctions;
  bool full; /* there were more functions */
  void *functions[STACK_FUNCTIONS];
  int seen[STACK_FUNCTIONS];
};

/* Reads a stack every so many microseconds until stacks_end. One at a time in a process, which must have no
   other use for SIGALRM. */
void stacks_begin(struct stacks *stacks, int every_us);
void stacks_end(void);

/* Returns in how many of the stacks a function was. */
int stacks_seen(const struct stacks *stacks, const void *function);

/* Returns whether some function is in most stacks of each of `observations` here, and in none of those there.
 */
bool stacks_distinguish(const struct stacks *here, const struct stacks *there, int observations);

#endif
