/* Store-and-forward: the schedule that planning makes and execution follows. */
#ifndef SWP_STFW_H
#define SWP_STFW_H

#include "grid.h"
#include "transfer.h"

/* A copy between the plan's buffers and the caller's. */
struct piece {
  enum transfer_place from;
  int64_t from_offset, to_offset, bytes;
};

struct stfw_stage {
  int nrecvs, nsends;
  struct transfer *recvs, *sends;
  int64_t npacks, nunpacks;
  struct piece *packs;   /* to the outgoing buffer, before the sends */
  struct piece *unpacks; /* from the incoming to the caller's buffer, after the receives */
  MPI_Request *requests; /* receives, then sends */
};

struct stfw {
  struct grid grid;
  struct stfw_stage *stages; /* grid.ndims */
  char *incoming, *outgoing;
  int64_t incoming_bytes, outgoing_bytes;

  /* The execution under way. */
  int stage;
  const char *send;
  char *recv;
};

/* Routes every message of the problem and fills the stages. Collective; errors are agreed but for those of
   the last stage. What was made is freed by swp_stfw_stages_free in any case. */
int swp_stfw_schedule(struct swp_plan *plan, struct stfw *stfw);

void swp_stfw_stages_free(struct stfw *stfw);

#endif
