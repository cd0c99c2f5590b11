/*
 * The clocks of several machines, as one: each rank's is related to rank 0's by a line, as clocks differ by
 * an offset and drift apart. Machines learn it from each other down a binomial tree, in lg(machines) steps
 * (Hunold and Carpen-Amarie, "Hierarchical Clock Synchronization in MPI", CLUSTER 2018: HCA3); the ranks of a
 * machine share its clock, and so the line.
 */
#ifndef BENCH_CLOCKS_H
#define BENCH_CLOCKS_H

#include "team.h"

#include <stdint.h>

/* How far another clock was ahead of this rank's when that showed own_ns, to within half the round trip. */
struct clock_reading {
  int64_t own_ns, ahead_ns, trip_ns;
};

/* The reference's time minus this rank's: ahead_ns where this rank's clock shows own_ns, and drift more for
   each nanosecond that has passed since. */
struct clock_line {
  int64_t own_ns, ahead_ns;
  double drift;
};

enum { CLOCK_READINGS = 32 };

struct clocks {
  const struct team *team;
  struct clock_line line;                        /* to rank 0's clock; the identity on one machine */
  struct clock_reading readings[CLOCK_READINGS]; /* of a machine's first rank: the latest, a ring */
  int64_t nreadings;                             /* so far */
};

/* The result of a check of the lines, for the worst machine. */
struct clock_check {
  double error_s; /* bound on the error of the common time */
  bool agrees;    /* and that is at most the time of two messages, there and back */
};

/* The line through the latest of n readings. Its drift is trusted only as far as the time between them
   supports: at first it is 0. Local. */
struct clock_line clock_line_fit(const struct clock_reading *readings, int n, int latest);

int64_t clock_line_at(const struct clock_line *line, int64_t own_ns);

/* Creates clocks that all count as equal to rank 0's until they are synchronised. */
struct clocks clocks_create(const struct team *team);

/* Compares the clocks anew; the drift follows from earlier calls too. Collective. */
void clocks_learn(struct clocks *clocks);

/* Compares every machine's common time with rank 0's clock, for the remaining difference. Collective; the
   same on every rank. */
struct clock_check clocks_check(const struct clocks *clocks);

/* Rank 0's time when this rank's clock shows own_ns, and back. Local. */
int64_t clocks_common(const struct clocks *clocks, int64_t own_ns);
int64_t clocks_own(const struct clocks *clocks, int64_t common_ns);

#endif
