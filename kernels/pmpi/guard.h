/*
 * The guard, on with SWITCHPOINT_GUARD: a few calls of each rule are timed against the MPI library's own, and
 * where a method loses on this job, it is not used any more. Calls are sampled by their number on the
 * communicator, and times are combined by a reduction, so that all ranks drop the same rules.
 */
#ifndef SWP_GUARD_H
#define SWP_GUARD_H

#include "place.h"

/* The same on all ranks. */
extern bool guard_on;

/* Calls of one method for an operation on a communicator, of bytes within a factor of two. */
struct trial;

/* What to do with a call. */
enum guard_turn {
  GUARD_GO_ON,       /* nothing special */
  GUARD_TIME_METHOD, /* call guard_start before it, and guard_stop after it */
  GUARD_TIME_VENDOR, /* the same, with the MPI library's own */
  GUARD_DROPPED      /* leave it to the MPI library */
};

/* Counts the next call of the method, and sets its trial. The same on all ranks. */
enum guard_turn guard_next(struct place *place, enum swp_operation operation, const char *method,
                           int64_t bytes, struct trial **trial);

/* Collective. Decides, when enough has been timed. */
void guard_start(struct place *place, struct trial *trial);
void guard_stop(struct place *place, struct trial *trial, enum guard_turn turn);

/* Local. */
void guard_free(struct place *place);

#endif
