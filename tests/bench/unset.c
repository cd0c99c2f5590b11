/* Preloaded: control variables of the MPI library cannot be set, though it seems so. Every name of one of its
   algorithms then runs what the library chooses by itself. */
#include <mpi.h>

int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void *value) {
  (void)handle;
  (void)value;
  return MPI_SUCCESS;
}
