/* The operations of reductions that MPI defines. */
#ifndef SWP_PREDEFINED_H
#define SWP_PREDEFINED_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

static inline bool swp_is_predefined(MPI_Op op) {
  const MPI_Op predefined[] = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
                               MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
  size_t i = 0;
  while (i < sizeof predefined / sizeof predefined[0] && op != predefined[i])
    i++;
  return i < sizeof predefined / sizeof predefined[0];
}

#endif
