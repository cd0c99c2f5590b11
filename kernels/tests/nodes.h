/* The nodes that plans of the oracle see: the machine's or imposed ones. */
#ifndef NODES_H
#define NODES_H

#include "switchpoint.h"

#include <stdbool.h>

/* The hints of every plan of the oracle. */
extern struct swp_hints oracle_hints;

/* Returns whether all ranks are on one node of the machine. Collective. */
bool ranks_share_memory(MPI_Comm comm);

/* Returns whether a method of an exchange or discovery is only for several nodes, and whether it is
   applicable to those that plans see. The second is collective. */
bool needs_nodes(const char *method);
bool nodes_suffice(MPI_Comm comm, const char *method);

/* Returns whether a method of an exchange or discovery is only for ranks that all share memory. */
bool needs_one_node(enum swp_operation operation, const char *method);

/* The lowest rank on the node of each rank, to be freed. Collective. */
int *nodes_of(MPI_Comm comm);

#endif
