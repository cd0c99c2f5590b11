/* `swpbench run`: one launch. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "options.h"

/* Collective on MPI_COMM_WORLD. 0, or -1 on every rank after the one line that says why. */
int run(const struct team *team, const struct options *options);

#endif
