/* Launches that go through methods by size. Collective on MPI_COMM_WORLD. */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

#include "options.h"

/* `swpbench run`: measures. 0, or -1 on every rank after one line with the reason. */
int run(const struct team *team, const struct options *options);

enum { SOAK_FAILED = 1 };

/* `swpbench soak`: executes methods very often, and looks for hangs, wrong bytes and leaks. Returns like run,
   SOAK_FAILED if a method failed. A method that hangs, or of which an execution returns an error, ends the
   job. */
int soak(const struct team *team, const struct options *options);

#endif
