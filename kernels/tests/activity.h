/* Counts, by MPI's profiling interface and the linker's --wrap, what the library really does. */
#ifndef ACTIVITY_H
#define ACTIVITY_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct activity {
  int64_t messages, bytes;                   /* started by point-to-point calls, to other ranks */
  int64_t off_node_messages, off_node_bytes; /* those of them to ranks of another node */
  int64_t one_sided;                         /* calls of MPI_Put and MPI_Fetch_and_op */
  int64_t collectives;                       /* calls of those by which discoveries find senders */
  int64_t allocations;                       /* by the library's own code */
  int64_t copied_bytes;                      /* by memcpy and memmove in the library's own code */
};

/* Counted from now on. Of each rank: its node, and where to add the bytes that this one sends to it; NULL if
   nobody asks. */
void activity_start(const int *nodes, int64_t *bytes_to);

/* The counts since then. */
struct activity activity_stop(void);

/* A count over all ranks. */
int64_t reduced(int64_t value, MPI_Op op);

#endif
