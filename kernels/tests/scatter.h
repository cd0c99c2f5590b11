/* A machine of several nodes, made up, for a program that links this. */
#ifndef SCATTER_H
#define SCATTER_H

/* From now on the machine seems to have so many nodes, with ranks of MPI_COMM_WORLD on them in no order. */
void scatter_nodes(int count);

#endif
