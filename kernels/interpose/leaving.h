/*
 * Communicators that are being freed: callbacks of their attributes may still call collectives, and no
 * attribute that is set meanwhile is sure to be deleted.
 */
#ifndef SWP_LEAVING_H
#define SWP_LEAVING_H

#include <mpi.h>
#include <stdbool.h>

/* Frees the communicator by `leave`. */
int leaving_free(MPI_Comm *comm, int (*leave)(MPI_Comm *comm));

/* Returns whether this thread is freeing the communicator. */
bool leaving_has(MPI_Comm comm);

#endif
