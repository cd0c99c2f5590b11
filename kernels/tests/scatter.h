/* A machine of several nodes, made up, for a program that links this. */
#ifndef SCATTER_H
#define SCATTER_H

#include <stdbool.h>

/* From now on the machine seems to have so many nodes, with ranks of MPI_COMM_WORLD on them in no order. */
void scatter_nodes(int count);

bool nodes_are_scattered(void);

#endif
