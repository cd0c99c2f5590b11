/* `swpbench soak`: executes methods very often, and looks for hangs, wrong bytes and leaks. */
#ifndef BENCH_SOAK_H
#define BENCH_SOAK_H

#include "options.h"

/* Collective on MPI_COMM_WORLD. 0, or -1 on every rank after the one line that says why, also where a method
   failed. A method that hangs, or of which an execution returns an error, ends the job. */
int soak(const struct team *team, const struct options *options);

#endif
