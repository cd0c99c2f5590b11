/* Messages of the process to itself, which no receive of the application can meet. */
#ifndef SWP_SELF_H
#define SWP_SELF_H

#include <mpi.h>

enum { SELF_TAGS = 32767 }; /* for users of the communicator, from 0 on */

/* The library's own communicator of this process alone, made at the first call. Returns an MPI error code. */
int self_find(MPI_Comm *comm);

/* Copies items to items of another type by a message. Returns an MPI error code. */
int self_copy(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type);

/* Call it before MPI is finalised. */
void self_end(void);

#endif
