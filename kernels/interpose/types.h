/* What MPI says of datatypes: for the preload and the profile. */
#ifndef SWP_TYPES_H
#define SWP_TYPES_H

#include <mpi.h>
#include <stdbool.h>

/* Finds whether MPI defines the type; false on an error. MPICH ends the job where it is asked for a type that
   was made with large counts, except by the function with large counts. */
bool types_named(MPI_Datatype type, bool *named);

#endif
