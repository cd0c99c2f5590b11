/* The nodes that plans of the oracle see. */
#include "nodes.h"

#include "testing.h"

#include <stdlib.h>
#include <string.h>

struct swp_hints oracle_hints = SWP_HINTS_DEFAULT;

bool ranks_share_memory(MPI_Comm comm) {
  MPI_Comm here;
  int shared;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_compare(here, comm, &shared);
  MPI_Comm_free(&here);
  return shared != MPI_UNEQUAL;
}

bool needs_one_node(enum swp_operation operation, const char *method) {
  return strcmp(method, operation == SWP_EXCHANGE ? "lent" : "shared") == 0;
}

static bool needs_neighbors(const char *method) {
  return strstr(method, "node=shared") != NULL;
}

bool needs_nodes(const char *method) {
  return needs_neighbors(method) || strstr(method, "find=") != NULL;
}

static int lowest_on_machine(MPI_Comm comm, int rank) {
  MPI_Comm here;
  int lowest = rank;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here);
  MPI_Bcast(&lowest, 1, MPI_INT, 0, here);
  MPI_Comm_free(&here);
  return lowest;
}

int *nodes_of(MPI_Comm comm) {
  int rank, procs, mine, ppn = oracle_hints.ppn;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  if (ppn == 0)
    mine = lowest_on_machine(comm, rank);
  else if (oracle_hints.placement == SWP_PLACEMENT_BLOCK)
    mine = rank - rank % ppn;
  else
    mine = rank % ((procs + ppn - 1) / ppn);
  int *nodes = test_allocate((size_t)procs * sizeof *nodes);
  MPI_Allgather(&mine, 1, MPI_INT, nodes, 1, MPI_INT, comm);
  return nodes;
}

bool nodes_suffice(MPI_Comm comm, const char *method) {
  int procs, *nodes = nodes_of(comm);
  bool several = false, together = false;
  MPI_Comm_size(comm, &procs);
  for (int rank = 0; rank < procs; rank++) {
    several = several || nodes[rank] != nodes[0];
    together = together || nodes[rank] != rank;
  }
  free(nodes);
  return !needs_nodes(method) || (several && (together || !needs_neighbors(method)));
}
