/*
 * An exchange problem in the form that methods read: messages to other ranks only, none empty, described by
 * runs of bytes; the rank's message to itself is kept apart.
 */
#ifndef SWP_PROBLEM_H
#define SWP_PROBLEM_H

#include "switchpoint.h"

#include <stdbool.h>

/* Consecutive bytes of a buffer. */
struct run {
  int64_t offset, bytes;
};

struct send {
  int peer;
  int64_t bytes;
  int64_t nruns;
  const struct run *runs; /* of the send buffer, in the order of the message */
};

struct receive {
  int peer;
  int64_t bytes;
  int64_t offset; /* in the receive buffer */
};

struct problem {
  struct send self;    /* bytes is 0 when there is none */
  int64_t self_offset; /* where it goes in the receive buffer */
  int nsends, nrecvs;
  struct send *sends;             /* in the caller's order */
  struct receive *recvs;          /* in the caller's order */
  struct run *runs;               /* storage of all runs */
  int64_t item_bytes;             /* 0 on a rank without messages, until ranks agree */
  int64_t nitems, buffer_bytes;   /* of the buffer that messages are sent from */
  int64_t send_bytes, recv_bytes; /* to and from other ranks */
  uint64_t send_hash, recv_hash;  /* summed over ranks they agree when every message has its receiver */
};

/* Checks the caller's description and builds the problem. Local. On an error the problem can still be freed.
   Errors: SWP_ERR_ARGUMENT, SWP_ERR_MEMORY. */
int swp_problem_build(const struct swp_exchange *exchange, int rank, int procs, struct problem *problem,
                      int64_t *account);

/* Takes the bytes of an item that ranks agreed on. */
void swp_problem_agree(struct problem *problem, int64_t item_bytes, int procs);

void swp_problem_free(struct problem *problem);

/* The bytes from the start to the end of each of the application's buffers, and to the first received. */
void swp_problem_spans(const struct problem *problem, int64_t *send_bytes, int64_t *recv_first,
                       int64_t *recv_bytes);

/* Returns a rank that occurs twice among `count` ranks, or -1. `sorted` has room for them. */
int swp_find_duplicate(const int *ranks, int count, int *sorted);

/* Copies runs of `from` to consecutive bytes at `to`, and back. */
void swp_runs_pack(const struct run *runs, int64_t nruns, const char *from, char *to);
void swp_runs_unpack(const struct run *runs, int64_t nruns, const char *from, char *to);

/* Copies them to the same offsets. */
void swp_runs_copy(const struct run *runs, int64_t nruns, const char *from, char *to);

/* Sorts runs, and joins those that overlap or touch. Returns how many are left. */
int64_t swp_runs_unite(struct run *runs, int64_t nruns);

int64_t swp_runs_bytes(const struct run *runs, int64_t nruns);

/* Appends a run, joined with the one before when they touch. `*nruns` counts. */
void swp_runs_append(struct run *runs, int64_t *nruns, int64_t offset, int64_t bytes);

/* A committed MPI type of the runs relative to a buffer, to be used with count 1; any size in bytes.
   Errors: SWP_ERR_MPI, SWP_ERR_MEMORY, SWP_ERR_TOO_LARGE (over INT_MAX runs). */
int swp_runs_type(const struct run *runs, int64_t nruns, MPI_Datatype *type);

#endif
