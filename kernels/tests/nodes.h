/* The nodes that plans of the oracle see: the machine's, imposed ones, or a machine's made up. */
#ifndef NODES_H
#define NODES_H

#include "switchpoint.h"

#include <stdbool.h>

/* Of every plan of the oracle. */
extern struct swp_hints oracle_hints;

/* From now on the machine seems to have so many nodes, with ranks of MPI_COMM_WORLD on them in no order. */
void scatter_nodes(int count);

bool nodes_are_scattered(void);

/* The lowest rank on the node of each rank, to be freed. Collective. */
int *nodes_of(MPI_Comm comm);

#endif
