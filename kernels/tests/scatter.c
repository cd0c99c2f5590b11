/* A made-up machine of several nodes, which the library and the tests see. */
#include "scatter.h"

#include "testing.h"

static int scattered;

void scatter_nodes(int count) {
  scattered = count;
}

/* The call by which the library finds the machine's nodes. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
  int rank;
  if (scattered == 0 || type != MPI_COMM_TYPE_SHARED)
    return PMPI_Comm_split_type(comm, type, key, info, part);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return PMPI_Comm_split(comm, (int)(mix((uint64_t)rank, 9, 0, 0) % (uint64_t)scattered), key, part);
}
