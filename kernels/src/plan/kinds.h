/* The kinds of plans: each has a plan, and what only its kind needs. */
#ifndef SWP_KINDS_H
#define SWP_KINDS_H

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

/* Of a started exchange that forwards: how it went on while this process waited for something else. */
struct background {
  struct exchange_plan *next;
  bool complete;
  int error;
  char text[ERROR_TEXT_BYTES]; /* of the error */
};

struct exchange_plan {
  struct swp_plan plan;
  const struct problem *problem;
  struct problem *own_problem; /* NULL of a trial, whose problem is another plan's */

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

/* A plan of this kind, as itself. */
#define exchange_plan_of(plan)                                                                               \
  _Generic((plan),                                                                                           \
      const struct swp_plan *: (const struct exchange_plan *)(const void *)(plan),                           \
      default: (struct exchange_plan *)(void *)(plan))

/* nstages zeroed stages. */
int swp_plan_stages(struct swp_plan *plan, int nstages);

/* Counts a message that this rank sends in a stage at each execution. */
void swp_plan_count(struct swp_plan *plan, int stage, int peer, int64_t bytes);

/* Tells of a message that this rank receives in a stage: what estimates need beside those sent. */
void swp_plan_count_receive(struct swp_plan *plan, int stage, int peer, int64_t bytes);

/* ---- Discovery ---- */

struct discovery_plan {
  struct swp_plan plan;
  int *scratch; /* sorted destinations, to find duplicates */
  int scratch_length;
  struct inbox *spare_inbox; /* for what comes while the caller's arguments are wrong */
};

static inline struct discovery_plan *discovery_plan_of(struct swp_plan *plan) {
  return (struct discovery_plan *)(void *)plan;
}

/* ---- Collective ---- */

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
};

/* Of choices, by index: the first that holds, and the first before it that cannot be used (-1: none), and
   why. */
struct match {
  int index, passed;
  const char *why;
};

struct collective_plan {
  struct swp_plan plan;
  const struct procedure *procedure; /* of the method, for the operation */
  struct call call;
  int *counts;   /* memory of the call's recv_counts and displs, for two calls */
  char *scratch; /* as many bytes as the procedure asked for, at least; aligned to 64 */
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

/* What methods read of it. */
static inline const struct call *call_of(const struct swp_plan *plan) {
  return &collective_plan_of(plan)->call;
}
static inline char *scratch_of(const struct swp_plan *plan) {
  return collective_plan_of(plan)->scratch;
}

#endif
