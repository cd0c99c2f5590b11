/* swpbench probe: measures the parameters of models, between pairs of ranks and in memory. */
#ifndef PROBES_PARAMETERS_H
#define PROBES_PARAMETERS_H

#include "options.h"

/* Collective. 0, or -1 on every rank after the failure was printed. */
int probe(const struct team *team, const struct options *options);

#endif
