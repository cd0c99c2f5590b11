/* Messages that do not depend on the methods, and so show what else is at work on the nodes and between them.
 */
#ifndef BENCH_CANARY_H
#define BENCH_CANARY_H

#include "team.h"

/* The seconds of an 8-byte ping-pong of ranks 0 and 1, on rank 0; 0 with one rank, and on the others.
 * Collective. */
double canary_s(const struct team *team);

/* The seconds of a ping-pong of 64 KiB of each rank with the one half of all ranks further, all at once, of
   the slowest pair on two nodes; 0 where none is. On every rank. Collective. */
double canary_crossing_s(const struct team *team);

#endif
