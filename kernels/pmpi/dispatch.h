/* From a call of the application to a method. */
#ifndef SWP_DISPATCH_H
#define SWP_DISPATCH_H

#include "place.h"

/* MPI's code for an error of the library. */
int dispatch_mpi_error(int error);

/* The bytes of an item; -1: unknown. */
MPI_Count dispatch_size(struct place *place, MPI_Datatype type);

/* Of a buffer in whose place MPI_IN_PLACE stands, count and type have no meaning and may be anything. */
static inline MPI_Datatype dispatch_type(const void *buffer, MPI_Datatype type) {
  return buffer == MPI_IN_PLACE ? MPI_DATATYPE_NULL : type;
}

/* Whether the table has another method than the MPI library's own for a call of `most` items in the largest
   block (or the vector) and `total` in all, and the call makes sense: nonsense is the MPI library's to tell.
   Notes the choice in the place, and what is left to the MPI library in the report. */
bool dispatch_wanted(struct place *place, enum swp_operation operation, int64_t most, int64_t total,
                     MPI_Datatype type, int root, MPI_Op op);

/* Does the call, and puts into *result what the application gets. False, with nothing done, when it is to be
   left to the MPI library. Collective. */
bool dispatch(struct place *place, const struct swp_collective *problem, const void *send, void *recv,
              int *result);

#endif
