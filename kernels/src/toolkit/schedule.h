/*
 * Messages in stages, each of which begins when the one before is complete. Methods that forward make the
 * schedule at planning; executing it moves payload only and allocates nothing.
 */
#ifndef SWP_SCHEDULE_H
#define SWP_SCHEDULE_H

#include "slots.h"

enum transfer_place {
  PLACE_USER,     /* the caller's send or receive buffer */
  PLACE_OUTGOING, /* the plan's own: packed for sending */
  PLACE_INCOMING  /* the plan's own: received, to be forwarded or unpacked */
};

/* One message of an exchange plan: where its bytes lie, as MPI wants it. */
struct transfer {
  int peer;
  int count;
  MPI_Datatype type; /* MPI_BYTE, or its own */
  int64_t offset;    /* in the buffer of `place` */
  enum transfer_place place;
};

/* A message that lies in a buffer as these runs. One run of less than 2 GiB is sent as bytes, anything else
   by a type: MPI may pack that, which is not counted among the bytes copied. Errors: as swp_runs_type. Free
   with swp_transfer_free. */
int swp_transfer_set(struct transfer *transfer, int peer, enum transfer_place place, const struct run *runs,
                     int64_t nruns);

void swp_transfer_free(struct transfer *transfer);

/* A copy: to the outgoing buffer before a send, or from the incoming to the caller's after the receives. */
struct piece {
  enum transfer_place from;
  int64_t from_offset, to_offset, bytes;
};

struct scheduled_send {
  struct transfer transfer;
  int64_t npieces; /* copied right before it */
};

/* A message by slots: its channel has its runs, in the buffer of `place`. */
struct handover {
  enum transfer_place place;
  int64_t channel; /* its number */
  struct run *runs;
};

struct schedule_stage {
  struct array recvs;                 /* of struct transfer; none of them is posted later than at the start */
  struct array sends;                 /* of struct scheduled_send */
  struct array packs;                 /* of struct piece: those of the first send, of the second, … */
  struct array unpacks;               /* of struct piece: after the receives of this stage */
  MPI_Request *requests;              /* receives, then sends */
  struct array handovers[DIRECTIONS]; /* of struct handover */
  int64_t handover_bytes;             /* of both directions */
};

struct schedule {
  int nstages;
  struct schedule_stage *stages;
  char *incoming, *outgoing;
  int64_t incoming_bytes, outgoing_bytes; /* set while planning */
  struct slots slots;                     /* none until the method begins them */

  /* The execution under way. */
  int stage;
  int64_t ndone[DIRECTIONS]; /* handovers of the stage */
  const char *send;
  char *recv;
};

/* Makes a schedule of empty stages the state of the plan's method, also for the plan's statistics. Errors, of
   these all but the last: SWP_ERR_MEMORY, SWP_ERR_MPI, SWP_ERR_TOO_LARGE. */
int swp_schedule_begin(struct swp_plan *plan, int nstages, struct schedule **schedule);

/* Adds a message that lies as these runs in the buffer of `place`, and before it copies to the outgoing
   buffer. Pieces that continue each other are joined. Counted in the plan's statistics. */
int swp_schedule_send(struct swp_plan *plan, struct schedule *schedule, int stage, int peer,
                      enum transfer_place place, const struct run *runs, int64_t nruns,
                      const struct piece *pieces, int64_t npieces);

int swp_schedule_receive(struct swp_plan *plan, struct schedule *schedule, int stage, int peer,
                         enum transfer_place place, const struct run *runs, int64_t nruns);

/* Adds a message that lies as these runs in the buffer of `place`, if it can go by the schedule's slots; else
   *added is false. It is not counted among the plan's messages, but among the bytes copied. Local. Errors:
   SWP_ERR_MEMORY. */
int swp_schedule_handover(struct swp_plan *plan, struct schedule *schedule, int stage,
                          enum direction direction, int peer, enum transfer_place place,
                          const struct run *runs, int64_t nruns, bool *added);

/* Adds a copy from the incoming buffer to the caller's. */
int swp_schedule_unpack(struct swp_plan *plan, struct schedule *schedule, int stage, int64_t from_offset,
                        int64_t to_offset, int64_t bytes);

/* Buffers and requests, when all is added. */
int swp_schedule_end(struct swp_plan *plan, struct schedule *schedule);

/* `free`, `start` and `advance` of a method whose state is a schedule. A start waits for the slots of what it
   sends, as nobody may need this rank's wait for it: see slots.h. */
void swp_schedule_free(struct swp_plan *plan);
int swp_schedule_start(struct swp_plan *plan, const char *send, char *recv);
int swp_schedule_advance(struct swp_plan *plan, bool block, bool *done);

#endif
