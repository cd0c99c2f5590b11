/* One message of an exchange plan: where its bytes lie, as MPI wants it. */
#include "transfer.h"

#include <limits.h>

int swp_transfer_set(struct transfer *transfer, int peer, enum transfer_place place, const struct run *runs,
                     int64_t nruns) {
  if (nruns == 1 && runs[0].bytes <= INT_MAX) {
    *transfer = (struct transfer){peer, (int)runs[0].bytes, MPI_BYTE, runs[0].offset, place};
    return SWP_SUCCESS;
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int error = swp_runs_type(runs, nruns, &type);
  if (error == SWP_SUCCESS)
    *transfer = (struct transfer){peer, 1, type, 0, place};
  return error;
}

void swp_transfer_free(struct transfer *transfer) {
  if (transfer->count > 0 && transfer->type != MPI_BYTE)
    MPI_Type_free(&transfer->type);
}
