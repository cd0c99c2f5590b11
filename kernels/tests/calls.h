/*
 * Random calls of collectives for tests: each rank makes its own side of the same call, with datatypes of its
 * own where MPI allows that, and can say what MPI itself does with it.
 */
#ifndef CALLS_H
#define CALLS_H

#include "switchpoint.h"

#include <stdbool.h>

enum { CALL_MARGIN = 64 };

struct call_buffer {
  unsigned char *memory, *expected; /* with guards of CALL_MARGIN bytes around */
  size_t bytes;
  void *buffer; /* in memory */
};

/* What a method is given: the same, or MPI_BOTTOM with types that have the buffers' addresses. */
struct call_given {
  struct swp_collective problem;
  const void *send;
  void *recv;
};

struct test_call {
  struct swp_collective problem;
  const void *send; /* a buffer, MPI_IN_PLACE, or, where MPI ignores it, NULL or MPI_IN_PLACE */
  void *recv;
  struct call_given given;
  struct call_buffer send_buffer, recv_buffer;
  int *counts, *displs, *send_counts, *send_displs;
  double entered_s, left_s; /* by a clock of the machine, set by tests that execute a barrier */
  char text[160];
};

/* Makes types and operations. Collective on nothing; between MPI_Init and MPI_Finalize. */
void calls_begin(void);
void calls_end(void);

/* From one item of a type to the next. */
MPI_Aint call_extent(MPI_Datatype type);

/*
 * How much of what MPI allows a call may use; MPI's own functions are not up to all of it.
 * Tame: where ranks of an allgatherv differ in their types, MPICH 4.0.2 truncates messages, and those of
 * Open MPI 4.1.4 choose different algorithms and hang; Open MPI's alltoall is wrong with different types, and
 * its alltoallv; MPICH's reduce_scatter_block writes past its memory for a type that begins below 0, and its
 * reduce crashes in place where the root is not rank 0 and the vector longer than 2 KiB.
 */
enum call_range { CALL_ANY, CALL_TAME };

/* The call of this seed, the same on every rank of comm but for what may differ. Blocks of at most
   `most_units` times six elements. To be freed. Local. */
struct test_call call_make(MPI_Comm comm, enum swp_operation operation, uint64_t seed, int most_units,
                           enum call_range range);

/* The first seed from one on that draws a reduction whose operands have an order, of some items, in place or
   not. */
uint64_t call_ordered_seed(uint64_t from, enum swp_operation operation, int most_units, enum call_range range,
                           bool in_place);

/* The time by a clock that all processes of the machine share. */
double call_clock_s(void);

/* Executes it by MPI in the buffers' copies, and expects those in the buffers, gaps and guards included. Of a
   barrier it expects that no rank has left it before every rank had entered it. Collective. */
void call_check(const struct test_call *call, MPI_Comm comm);

void call_free(struct test_call *call);

#endif
