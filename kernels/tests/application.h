/* How an application that knows nothing of Switchpoint calls collectives: by counts of int, or large ones. */
#ifndef APPLICATION_H
#define APPLICATION_H

#include "calls.h"

#include <stdbool.h>

/* Returns a copy of the communicator with the promise of fixed counts. */
MPI_Comm application_promise(MPI_Comm comm);

/* Makes the call, with large counts if the MPI has them, and returns MPI's error. */
int application_call(const struct test_call *call, MPI_Comm comm, bool large);

#ifdef SWP_HAVE_LARGE_COUNTS
/* The lists of a side, or none. */
struct lists {
  MPI_Count *counts;
  MPI_Aint *displs;
};

struct lists application_widen(const int *counts, const int *displs, MPI_Comm comm);
#endif

#endif
