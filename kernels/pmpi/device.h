/* Memory of accelerators. */
#ifndef SWP_DEVICE_H
#define SWP_DEVICE_H

#include <mpi.h>
#include <stdbool.h>

/* Returns whether the process of any rank has the run-time system of an accelerator, so that its buffers may
   be memory that only the MPI library can read. The same on all ranks. Collective. */
bool device_somewhere(MPI_Comm comm);

#endif
