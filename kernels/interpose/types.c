#include "types.h"

bool types_named(MPI_Datatype type, bool *named) {
  int combiner;
#ifdef SWP_HAVE_LARGE_COUNTS
  MPI_Count integers, addresses, counts, types;
  int error = PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
#else
  int integers, addresses, types;
  int error = PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
#endif
  *named = error == MPI_SUCCESS && combiner == MPI_COMBINER_NAMED;
  return error == MPI_SUCCESS;
}
