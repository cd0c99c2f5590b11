/* Where the ranks of a communicator are. */
#ifndef SWP_TOPOLOGY_H
#define SWP_TOPOLOGY_H

#include <mpi.h>
#include <stdbool.h>

struct topology {
  int nodes;           /* groups of ranks that share memory */
  int ppn;             /* the most ranks on one node */
  bool oversubscribed; /* this node has more ranks than cores that they may use */
};

/* Collective on comm; found once per communicator and kept as an attribute of it.
   Errors, agreed: SWP_ERR_MEMORY, SWP_ERR_MPI. */
int swp_topology_find(MPI_Comm comm, struct topology *topology);

#endif
