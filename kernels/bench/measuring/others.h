/* What other processes do on the cores of the ranks: the time in which these were not idle, less that of the
   ranks. */
#ifndef BENCH_OTHERS_H
#define BENCH_OTHERS_H

#include "team.h"

/* Takes a first reading. Collective. */
void others_begin(const struct team *team);

/*
 * The share of the cores' time that others took since the last begin, on the machine where it is largest;
 * since an earlier one if that was less than half a second ago. Less what may be rounding. -1 where a machine
 * does not say it, and in the first half second where ranks outnumber cores. On every rank. Collective.
 */
double others_share(const struct team *team);

#endif
