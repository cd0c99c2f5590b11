/* From a call of the application to a method. */
#ifndef SWP_DISPATCH_H
#define SWP_DISPATCH_H

#include "place.h"
#include "report.h"

/* MPI's code for an error of the library. */
int dispatch_mpi_error(int error);

/* The bytes of an item; -1: unknown. */
MPI_Count dispatch_size(struct place *place, MPI_Datatype type);

/* Whether the table has a method of its own for the call; counts it for the report. */
bool dispatch_select(struct place *place, enum swp_operation operation, int64_t bytes, int64_t most_bytes,
                     int64_t total_bytes, int root, MPI_Op op);

/* Whether the table has another method than the MPI library's own for a call of `most` items in the largest
   block (or the vector) and `total` in all, and the call makes sense: nonsense is the MPI library's to tell.
 */
static inline bool dispatch_wanted(struct place *place, enum swp_operation operation, int64_t most,
                                   int64_t total, MPI_Datatype type, int root, MPI_Op op) {
  if (most < 0 || (unsigned)root >= (unsigned)place->procs || type == MPI_DATATYPE_NULL)
    return false;
  MPI_Count size = type == place->named_type ? place->named_bytes : dispatch_size(place, type);
  if (size < 0)
    return false;
  int64_t bytes = operation == SWP_ALLGATHERV ? total * size / place->procs : most * size;
  return (report_on || swp_selector_asks(place->selectors->list[operation - FIRST_OPERATION], bytes)) &&
         dispatch_select(place, operation, bytes, most * size, total * size, root, op);
}

/* Does the call, and puts into *result what the application gets. False, with nothing done, when it is to be
   left to the MPI library. Collective. */
bool dispatch(struct place *place, const struct swp_collective *problem, const void *send, void *recv,
              int *result);

#endif
