/* Agreement: after it, every rank goes the same way. */
#include "plan.h"

#include <string.h>

int swp_agree(MPI_Comm comm, int error) {
  int rank, procs;
  if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS || MPI_Comm_size(comm, &procs) != MPI_SUCCESS)
    return swp_fail(SWP_ERR_MPI, "not a usable communicator");
  /* The worst error wins, and of equal ones the lowest rank. */
  int64_t mine = (int64_t)error << 32 | (procs - 1 - rank), worst = mine;
  int mpi_error = MPI_Allreduce(&mine, &worst, 1, MPI_INT64_T, MPI_MAX, comm);
  if (mpi_error != MPI_SUCCESS)
    return swp_fail_mpi(mpi_error, "MPI_Allreduce");
  int agreed = (int)(worst >> 32), first = procs - 1 - (int)(worst & 0xffffffff);
  if (agreed == SWP_SUCCESS)
    return SWP_SUCCESS;
  char text[ERROR_TEXT_BYTES] = "";
  if (rank == first)
    strncpy(text, swp_error_message(), sizeof text - 1);
  mpi_error = MPI_Bcast(text, (int)sizeof text, MPI_CHAR, first, comm);
  if (mpi_error != MPI_SUCCESS)
    return swp_fail_mpi(mpi_error, "MPI_Bcast");
  /* A text that was agreed on before names its rank already. */
  if (strncmp(text, "rank ", 5) == 0)
    return swp_fail(agreed, "%s", text);
  return swp_fail(agreed, "rank %d: %.*s", first, ERROR_TEXT_BYTES - 20, text);
}

/* FNV-1a. */
int64_t swp_text_hash(const char *text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; text != NULL && *text != '\0'; text++)
    hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return (int64_t)(hash >> 2);
}
