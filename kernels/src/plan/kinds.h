/* The kinds of plans: each has a plan, and the members that only its kind needs. */
#ifndef SWP_KINDS_H
#define SWP_KINDS_H

#include "fields.h"
#include "model.h"
#include "plan.h"
#include "problem.h"

/* ---- Exchange ---- */

/* Messages and bytes that this rank sends in a stage, then (after planning) over all ranks. */
struct stage {
  int64_t messages, bytes;
  int64_t messages_total, messages_max, bytes_total, bytes_max;
};

/* Numbers of a rank's traffic: messages and bytes; those off the node; those on a socket. */
enum { TRAFFIC = 6 };

/* The progress of a started exchange that forwards, made while this process waited for something else. */
struct background {
  struct exchange_plan *next;
  bool complete;
  int error, mpi_error;
  char text[ERROR_TEXT_BYTES]; /* of the error */
};

struct exchange_plan {
  struct swp_plan plan;
  const struct problem *problem;
  struct problem *own_problem; /* NULL in a trial, which uses another plan's problem */
  struct fields fields;        /* if the plan has them */
  char *buffer; /* for what the caller sends, if asked for; NULL also where the method has its own */

  /* Set by the method while planning, this rank's share: */
  int nstages;
  struct stage *stages;
  int64_t forwarded_bytes;         /* received to be passed on */
  int64_t copied_bytes;            /* at each execution */
  int64_t traffic[TRAFFIC];        /* by swp_plan_count */
  const struct estimate *estimate; /* while the method is only estimated, else NULL; then, by stage: */
  struct tally *tallies;
  struct background background;
};

/* Converts a plan to its kind. */
#define exchange_plan_of(plan)                                                                               \
  _Generic((plan),                                                                                           \
      const struct swp_plan *: (const struct exchange_plan *)(const void *)(plan),                           \
      default: (struct exchange_plan *)(void *)(plan))

/* nstages zeroed stages. */
int swp_plan_stages(struct swp_plan *plan, int nstages);

/* Counts a message that this rank sends in a stage at each execution. */
void swp_plan_count(struct swp_plan *plan, int stage, int peer, int64_t bytes);

/* Counts a message that this rank receives in a stage, which estimates need besides those sent. */
void swp_plan_count_receive(struct swp_plan *plan, int stage, int peer, int64_t bytes);

/* ---- Discovery ---- */

struct discovery_plan {
  struct swp_plan plan;
  int *scratch; /* sorted destinations, to find duplicates */
  int scratch_length;
  struct inbox *spare_inbox; /* for messages that arrive while the caller's arguments are wrong */
};

static inline struct discovery_plan *discovery_plan_of(struct swp_plan *plan) {
  return (struct discovery_plan *)(void *)plan;
}

/* ---- Collective ---- */

/* Items of one type. Absent, with the null type, where MPI ignores the side on this rank or MPI_IN_PLACE
   replaces it. */
struct side {
  int count; /* of a block; of the vector where there are no blocks */
  MPI_Datatype type;
  int64_t item_bytes; /* as they travel, without gaps */
  MPI_Aint extent;    /* from one item to the next in memory */
  MPI_Aint low, span; /* the bytes of an item in memory: from where, and how many */
  bool dense;         /* in memory as they travel */
  bool reducible;     /* by the operations that MPI defines */
};

struct call {
  struct side send, recv; /* bcast and reductions: recv alone describes both buffers */
  /* Counts and places in items, by rank, of blocks of their own sizes: of recv, and of send in an alltoallv.
     The side's count is the rank's own. */
  const int *recv_counts, *displs, *send_counts, *send_displs;
  MPI_Op op;
};

/* Indices of the first choice that matches and the first before it that cannot be used (-1: none), and
   why. */
struct match {
  int index, passed;
  const char *why;
};

struct collective_plan {
  struct swp_plan plan;
  const struct procedure *procedure; /* of the method, for the operation */
  struct call call;
  int *counts;   /* memory of the call's counts and places, for two calls */
  char *scratch; /* at least the bytes that the procedure asked for; aligned to 64 */
  int64_t scratch_bytes;

  /* The methods that it may use: */
  const struct choices *choices;
  struct choices *own_choices; /* NULL: they are a selector's */
  struct match match;          /* the choice in use */
  struct prepared *prepared;   /* by the choices' owners, as the next */
  const char **refused;        /* why a method could not be prepared; NULL: it was not, or is */
};

#define collective_plan_of(plan)                                                                             \
  _Generic((plan),                                                                                           \
      const struct swp_plan *: (const struct collective_plan *)(const void *)(plan),                         \
      default: (struct collective_plan *)(void *)(plan))

/* The members that methods read. */
static inline const struct call *call_of(const struct swp_plan *plan) {
  return &collective_plan_of(plan)->call;
}
static inline char *scratch_of(const struct swp_plan *plan) {
  return collective_plan_of(plan)->scratch;
}

#endif
