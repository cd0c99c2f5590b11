/* Collectives: where MPI reads buffers, and their execution. */
#ifndef SWP_COLLECTIVE_H
#define SWP_COLLECTIVE_H

#include "kinds.h"

/* The ranks on which MPI reads the counts and types of a side. */
enum reading { NOWHERE, EVERYWHERE, AT_ROOT };

/* A reduction has one side, which recv describes. */
enum reading swp_reads_send(enum swp_operation operation);
enum reading swp_reads_recv(enum swp_operation operation);

/* Returns whether a rank reads a side; root: it is the root, or there is none. */
static inline bool swp_is_read(enum reading reading, bool root) {
  return reading == EVERYWHERE || (reading == AT_ROOT && root);
}

/* Returns whether MPI_IN_PLACE may replace send; otherwise it may replace recv. */
bool swp_send_may_be_in_place(enum swp_operation operation, bool root);
bool swp_recv_may_be_in_place(enum swp_operation operation, bool root);

/* Returns whether this rank is the plan's root, or there is none. */
bool swp_is_root(const struct swp_plan *plan);

/* Returns whether a side has a type, and the bytes of the other ranks' blocks. */
bool swp_is_block(const struct swp_plan *plan, const struct side *side);

/* Sets the features of a reduction's operation, or of MPI_OP_NULL. Local. Errors: SWP_ERR_MPI. */
int swp_read_op(MPI_Op op, struct features *features);

#endif
