/*
 * One call of a collective, as methods see it, and what they may use to do it. What is equal on every rank is
 * in plan->features; all here is this rank's own: types may differ between ranks, and so may their sizes.
 */
#ifndef SWP_CALL_H
#define SWP_CALL_H

#include "plan.h"

/* Items of one type. Absent, with the null type, where MPI ignores the side on this rank, and in the place of
   MPI_IN_PLACE. */
struct side {
  int count; /* of a block; of the vector where there are no blocks */
  MPI_Datatype type;
  int64_t item_bytes; /* as they travel, without gaps */
  MPI_Aint extent;    /* from one item to the next in memory */
  MPI_Aint low, span; /* the bytes of an item in memory: from where, and how many */
  bool dense;         /* in memory as they travel */
};

struct call {
  struct side send, recv;          /* bcast and reductions: recv alone tells of both buffers */
  const int *recv_counts, *displs; /* allgatherv: in items of recv, by rank; recv.count is the rank's own */
  MPI_Op op;
  char *scratch; /* as many bytes as the procedure asked for, at least; aligned to 64 */

  /* The plan's: */
  int64_t scratch_bytes;
  int *memory; /* of the counts, for two calls */
};

/* All messages of collectives carry it: two ranks send each other theirs in the same order. */
enum { COLLECTIVE_TAG = 0 };

/* The index-th item behind a buffer's first. */
static inline void *swp_item(const struct side *side, const void *buffer, int64_t index) {
  return (char *)buffer + index * side->extent;
}

/* Room in scratch for `count` items with their gaps, and the buffer address at which they lie in it, aligned
   as in memory of malloc. */
int64_t swp_side_room(const struct side *side, int64_t count);
void *swp_side_place(const struct side *side, int64_t count, char *scratch);

/* Copies items to consecutive bytes, and back; at most INT_MAX items and bytes. Such bytes travel as
   MPI_PACKED. Errors, of all below: SWP_ERR_MPI. */
int swp_pack(const struct swp_plan *plan, const struct side *side, const void *buffer, int64_t count,
             char *bytes);
int swp_unpack(const struct swp_plan *plan, const struct side *side, const char *bytes, int64_t count,
               void *buffer);

/* For procedures: the bytes of all ranks' blocks must be such a count, too. */
const char *swp_total_applicable(const struct spec *spec, const struct features *features);

/* Packs the block that is this rank's share of a gather or allgather: of send, or, where that is
   MPI_IN_PLACE, from its place in recv, which `bytes` may be. */
int swp_pack_own(const struct swp_plan *plan, const void *send, const void *recv, char *bytes);

/* Of an allgatherv, the first item in recv of the blocks that are bytes in a row there, by rank; negative
   when they are not, or begin before it. */
int64_t swp_find_row(const struct call *call, int procs);

/* Copies items into items of another type with the same content. */
int swp_copy(const struct swp_plan *plan, const struct side *from_side, const void *from, int from_count,
             const struct side *to_side, void *to, int to_count);

/* Messages on the plan's communicator, waited for as swp_progress does. */
int swp_send(struct swp_plan *plan, const void *buffer, int count, MPI_Datatype type, int peer);
int swp_receive(struct swp_plan *plan, void *buffer, int count, MPI_Datatype type, int peer);
int swp_send_receive(struct swp_plan *plan, const void *send, int send_count, MPI_Datatype send_type, int to,
                     void *recv, int recv_count, MPI_Datatype recv_type, int from);

/* Waits for nonblocking ones. */
int swp_complete(struct swp_plan *plan, int count, MPI_Request *requests);

#endif
