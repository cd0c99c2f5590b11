/*
 * What a rank gives to an irregular collective, or gets from it: blocks of integers, in memory with gaps.
 * Values are a function of a seed, and of the ranks that send and receive.
 */
#ifndef SIDES_H
#define SIDES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { LAYOUTS = 6 };

struct side {
  int n;
  int *ranks;  /* n: to whom, or from whom; the caller's */
  int *counts; /* of items */
  int count;   /* the caller's, for functions that take one for all blocks */
  bool shared; /* one block of `count` items is for all ranks */
  bool mixed;  /* types and displacements in bytes are as those of an alltoallw: each block has its own */
  /* Where the blocks are; displacements in items, those called places in bytes. */
  int *displs, *places;
  MPI_Count *large_counts;
  MPI_Aint *large_displs, *large_places;
  MPI_Datatype *types, type;
  int *at, *strides; /* of the first integer, and from one item to the next */
  int length, *memory;
};

/* Makes the types, and frees them. */
void sides_begin(void);
void sides_end(void);

/* Makes room for the counts of n blocks. */
void side_begin(struct side *side, int n);

/* Lays out blocks as counts, `shared` and `mixed` say: by a type with no gap or some, and `backward`, from
   the last to the first with gaps between them. */
void side_lay(struct side *side, int layout, bool backward);

/* An item of a block. */
int *side_item(const struct side *side, int block, int index);

/* Gives a block the values that rank `from` sends to rank `to`. */
void side_fill(const struct side *side, int block, uint64_t seed, int from, int to);

/* Expects the values of a block, and makes its memory as before. */
void side_check(const struct side *side, int block, uint64_t seed, int from, int to);

/* Expects that nothing else was written. */
void side_check_gaps(const struct side *side);

/* Frees all but the ranks. */
void side_end(struct side *side);

#endif
