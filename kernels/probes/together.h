/* Probes of all ranks at once. */
#ifndef PROBES_TOGETHER_H
#define PROBES_TOGETHER_H

#include "sync.h"

/* Seconds of MPI_Ibarrier with its wait from a common start, on every rank those of the slowest. Collective.
 */
void together_barriers(struct sync *sync, int samples, double *seconds);

/* Likewise of MPI_Win_fence on an idle window, of the first kind that holds what ranks put and add there;
   false: there is no such kind. Collective. */
bool together_fences(struct sync *sync, int samples, double *seconds);

#endif
