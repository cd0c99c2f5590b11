/* The nodes of a communicator's ranks, found without communication. */
#ifndef SWP_LAYOUT_H
#define SWP_LAYOUT_H

#include "switchpoint.h"

#include <stdbool.h>

/* Learns the node of every rank of MPI_COMM_WORLD. Collective on it. False: no memory, or MPI failed. */
bool layout_begin(void);
void layout_end(void);

/* The layout of an intracommunicator: local when all its ranks are in this process's MPI_COMM_WORLD, and
   collective when one is not (*strangers), which is the same on all ranks. False: no memory, or MPI failed.
 */
bool layout_find(MPI_Comm comm, struct swp_layout *layout, bool *strangers);

#endif
