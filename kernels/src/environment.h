/*
 * Algorithms that the MPI library takes from the environment of its process only: when it starts, for good.
 */
#ifndef SWP_ENVIRONMENT_H
#define SWP_ENVIRONMENT_H

#include "method.h"

/* Whether this process started with the named algorithm for the operation. Local; needs no MPI. */
bool swp_environment_has(enum swp_operation operation, const char *name);

#endif
