/*
 * Memory that the ranks of a node share: one arena for each communicator of an application, from which plans
 * take. It is made of anonymous files (memfd), which end with the last process that has them, however that
 * ends. Each rank reserves and first touches its own part, so that it is near to that rank.
 */
#ifndef SWP_ARENA_H
#define SWP_ARENA_H

#include <mpi.h>
#include <stdint.h>

/* What two ranks write lies so far apart: two lines of 64 bytes, which processors fetch together. A site can
   have it otherwise. */
enum { LINE_BYTES = SWP_LINE_BYTES };
_Static_assert(LINE_BYTES == 64 || LINE_BYTES == 128 || LINE_BYTES == 256, "no line of any processor");

struct arena;

/* A plan's memory. Zeroed: none. */
struct share {
  char *first;    /* rank 0's part */
  int64_t stride; /* from one rank's part to the next */
  int64_t bytes;  /* of each rank's part */
  struct segment *segment;
};

/* An empty arena, held once; NULL when memory runs out. Local, as the next two. */
struct arena *swp_arena_create(void);
struct arena *swp_arena_hold(struct arena *arena);

/* NULL is allowed. */
void swp_arena_release(struct arena *arena);

/*
 * Takes a zeroed part for each rank, of the most bytes that one asks for. Collective on a communicator of the
 * arena's ranks, which are all on one node. A rank may use another's part after a further agreement, as that
 * of the method's plan. Errors, agreed: SWP_ERR_NOT_APPLICABLE, with why such memory cannot be had here;
 * SWP_ERR_MEMORY; SWP_ERR_MPI.
 */
int swp_arena_take(struct arena *arena, MPI_Comm comm, int64_t bytes, struct share *share);

/* Gives it back when no rank uses it any more. Local; a share of none is allowed. */
void swp_arena_give(struct arena *arena, struct share *share);

static inline char *swp_share_of(const struct share *share, int rank) {
  return share->first + rank * share->stride;
}

#endif
