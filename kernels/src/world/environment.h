/*
 * The MPI library's own algorithms for collectives, as a process is started with them: the method
 * vendor:environment=NAME. What sets them is public (switchpoint.h).
 */
#ifndef SWP_ENVIRONMENT_H
#define SWP_ENVIRONMENT_H

#include "operations.h"

/* Returns whether this process started with the named algorithm for the operation in its environment, from
   which some libraries take theirs, for good. Local; needs no MPI. */
bool swp_environment_has(enum swp_operation operation, const char *name);

#endif
