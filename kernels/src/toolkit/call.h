/*
 * One call of a collective, as methods see it, and functions for executing it. Values equal on every rank are
 * in plan->features; everything here is this rank's own: types may differ between ranks, and so may their
 * sizes.
 */
#ifndef SWP_CALL_H
#define SWP_CALL_H

#include "kinds.h"

/* All messages of collectives carry it: two ranks send each other theirs in the same order. */
enum { COLLECTIVE_TAG = 0 };

/* The index-th item behind a buffer's first. A number is computed, as a buffer of a type with absolute
   addresses lies anywhere. */
static inline void *swp_item(const struct side *side, const void *buffer, int64_t index) {
  return (void *)((uintptr_t)buffer + (uintptr_t)(index * side->extent));
}

/* Room in scratch for `count` items with their gaps, and the buffer address at which they lie in it, aligned
   as in memory of malloc. */
int64_t swp_side_room(const struct side *side, int64_t count);
void *swp_side_place(const struct side *side, int64_t count, char *scratch);

/* Room for the items of recv, and the index-th of such rooms, which follow each other in scratch. */
int64_t swp_recv_room(const struct swp_plan *plan);
void *swp_recv_place(const struct swp_plan *plan, int index);

/* Copies items to consecutive bytes, and back; at most INT_MAX items and bytes. Such bytes travel as
   MPI_PACKED. Errors, of all below: SWP_ERR_MPI. */
int swp_pack(const struct swp_plan *plan, const struct side *side, const void *buffer, int64_t count,
             char *bytes);
int swp_unpack(const struct swp_plan *plan, const struct side *side, const char *bytes, int64_t count,
               void *buffer);

/* For procedures: the bytes of all ranks' blocks must be such a count, too; the operation must commute; both.
 */
const char *swp_total_applicable(const struct spec *spec, const struct features *features);
const char *swp_commutes(const struct spec *spec, const struct features *features);
const char *swp_total_commutes(const struct spec *spec, const struct features *features);

/* Packs the block that is this rank's share of a gather or allgather: of send, or, where that is
   MPI_IN_PLACE, from its place in recv, which `bytes` may be. */
int swp_pack_own(const struct swp_plan *plan, const void *send, const void *recv, char *bytes);

/* The first item in recv of listed blocks if these are contiguous bytes there, by rank; negative if they are
   not, or begin before recv. Likewise on either side. */
int64_t swp_find_row(const struct call *call, int procs);
int64_t swp_find_row_of(const struct side *side, const int *counts, const int *displs, int procs);

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

/* Joins this many items from the first-th on of *sum, and of *other, which came from the ranks before it or
   behind it, to *sum. Both are whole vectors; they may be exchanged. */
int swp_join(const struct swp_plan *plan, void **sum, void **other, int first, int items, bool before);

/*
 * The bytes of a broadcast's vector as they travel, to be cut anywhere: the buffer itself where they lie so
 * in memory on this rank, and else a packed copy in scratch.
 */
const char *swp_image_applicable(const struct spec *spec, const struct features *features);
int64_t swp_image_scratch_bytes(const struct swp_plan *plan);

/* Sets *image to the bytes, which at the root are those of the buffer. Errors: SWP_ERR_MPI. */
int swp_image_begin(const struct swp_plan *plan, const void *buffer, char **image);

/* Copies them to the buffer. Errors: SWP_ERR_MPI. */
int swp_image_end(const struct swp_plan *plan, const char *image, void *buffer);

#endif
