/* From a call of the application to a method. */
#ifndef SWP_DISPATCH_H
#define SWP_DISPATCH_H

#include "place.h"
#include "report.h"

/* MPI's code for an error of the library. */
int dispatch_mpi_error(int error);

/* The bytes of an item; -1: unknown. */
MPI_Count dispatch_size(struct place *place, MPI_Datatype type);

/* Where MPI_IN_PLACE replaces a buffer, count and type are ignored and may be anything. */
static inline MPI_Datatype dispatch_type(const void *buffer, MPI_Datatype type) {
  return buffer == MPI_IN_PLACE ? MPI_DATATYPE_NULL : type;
}

/* Counts a call that is left to the MPI library because of its arguments; false. */
static inline bool dispatch_invalid(enum swp_operation operation) {
  if (report_on)
    report_passed(operation, "a rule", "an argument that MPI does not allow, or blocks over 2 GiB", 0);
  return false;
}

/* Returns whether the table has a method other than the MPI library's own for a call of `most` items in the
   largest block (or the vector) and `total` in all, and the call is valid: invalid ones are left to the MPI
   library, as are blocks over INT_MAX bytes and those without any. All ranks answer alike, as the bytes are
   equal on all, where counts differ with types. Notes the choice in the place, and calls left to the MPI
   library in the report. */
bool dispatch_wanted(struct place *place, enum swp_operation operation, int64_t most, int64_t total,
                     MPI_Datatype type, int root, MPI_Op op);

/* The same for a call of which these are known, except for its validity. */
bool dispatch_chosen(struct place *place, enum swp_operation operation, const struct swp_facts *facts);

/* Does the call, and sets *result to the application's return code. False, with nothing done, if it is left
   to the MPI library. Collective. */
bool dispatch(struct place *place, const struct swp_collective *problem, const void *send, void *recv,
              int *result);

#endif
