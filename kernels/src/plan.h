/* A plan, as methods see it, and what they may call. */
#ifndef SWP_PLAN_H
#define SWP_PLAN_H

#include "allocate.h"
#include "error.h"
#include "method.h"
#include "problem.h"
#include "topology.h"

#include <stdatomic.h>

/* Messages and bytes that this rank sends in a stage, then (after planning) over all ranks. */
struct stage {
  int64_t messages, bytes;
  int64_t messages_total, messages_max, bytes_total, bytes_max;
};

enum plan_state { PLAN_IDLE, PLAN_STARTED, PLAN_POISONED };

/* Of a started exchange that forwards: how it went on while this process waited for something else. */
struct background {
  struct swp_plan *next;
  bool complete;
  int error;
  char text[ERROR_TEXT_BYTES]; /* of the error */
};

enum { LAYOUT_BYTES = 96, PASSED_BYTES = 512 };

struct swp_plan {
  /* First what every execution reads, in one cache line: an exchange of a microsecond feels each other. */
  enum swp_operation operation;
  enum plan_state state;
  MPI_Comm comm; /* private */
  bool yields;   /* more ranks than cores on this node: polling gives the core away */
  bool polls;    /* so much that waiting polls, as MPI's own does not give it away */
  bool forwards; /* in several stages: other ranks wait for this one in between */
  bool has_self; /* there is a message to this rank itself */
  unsigned idle_polls;
  void *method_state; /* the method's own */
  int (*start)(struct swp_plan *plan, const char *send, char *recv);
  int (*advance)(struct swp_plan *plan, bool block, bool *done); /* both of the method */

  struct problem problem; /* of an exchange */
  struct spec spec;
  int rank, procs;
  struct topology *topology;
  struct features features;
  struct swp_hints hints;
  int64_t account; /* bytes allocated */

  /* Set by the method of an exchange while planning, this rank's share: */
  int nstages;
  struct stage *stages;
  int64_t forwarded_bytes;                   /* received to be passed on */
  int64_t copied_bytes;                      /* at each execution */
  int64_t off_node_messages, off_node_bytes; /* by swp_plan_count, as are the next */
  int64_t on_socket_messages, on_socket_bytes;
  struct estimate *estimate; /* while the method is only estimated, else NULL */
  char layout[LAYOUT_BYTES]; /* for people, may stay empty */

  char chosen_by[256];
  char passed_over[PASSED_BYTES]; /* the first rule that holds for an exchange or a discovery, where its
                                     method cannot be used, and why; "": none is */
  struct swp_statistics problem_statistics, statistics;
  int *discovery_scratch; /* sorted destinations, to find duplicates */
  int discovery_scratch_length;
  struct inbox *spare_inbox; /* of a discovery: for what comes while the caller's arguments are wrong */
  struct background background;

  /* Of a collective: */
  bool same_comm;                    /* comm is the caller's */
  const struct procedure *procedure; /* of the method, for the operation */
  struct call *call;
  struct choices *choices;
};

/* Memory that lives as long as the plan; the method frees it. NULL when memory runs out. */
void *swp_plan_allocate(struct swp_plan *plan, int64_t count, size_t bytes);

/* SWP_ERR_MEMORY with a text that names the method. */
int swp_plan_no_memory(const struct swp_plan *plan);

/* nstages zeroed stages. */
int swp_plan_stages(struct swp_plan *plan, int nstages);

/* Counts a message that this rank sends in a stage at each execution. */
void swp_plan_count(struct swp_plan *plan, int stage, int peer, int64_t bytes);

/* Tells of a message that this rank receives in a stage: what estimates need beside those sent. */
void swp_plan_count_receive(struct swp_plan *plan, int stage, int peer, int64_t bytes);

/* Whether a rank is on another node than this one. */
bool swp_plan_off_node(const struct swp_plan *plan, int peer);

/* Whether the plan is of the operation (of any collective: SWP_BCAST) and in the state. Errors:
   SWP_ERR_ARGUMENT, _STATE, _POISONED. */
int swp_plan_check(const struct swp_plan *plan, enum swp_operation operation, enum plan_state expected,
                   const char *call);

/* Allows no further execution. Gives the error. */
int swp_plan_poison(struct swp_plan *plan, int error);

/* The worst error of all ranks, with the text of the first rank that has it. Collective on comm. */
int swp_agree(MPI_Comm comm, int error);

/* A hash of a text (NULL as ""), not negative: ranks that must have equal texts compare it. */
int64_t swp_text_hash(const char *text);

/* Whether a rank that waits inside MPI gives its core away. */
bool swp_mpi_yields(void);

/* Whether started exchanges need this process to forward: see outstanding.h. */
extern atomic_int swp_outstanding_count;

static inline bool swp_outstanding_any(void) {
  return atomic_load_explicit(&swp_outstanding_count, memory_order_relaxed) != 0;
}

/* The part of swp_progress that polls. */
int swp_progress_poll(struct swp_plan *plan, int count, MPI_Request *requests, bool block, bool *done);

/* Tests the requests, or with block waits for all of them, giving the core away where the plan yields.
   Methods wait by this and swp_plan_relax alone, which let other started exchanges go on. Inline: an exchange
   of a microsecond feels each line of code that is not in the cache. */
static inline int swp_progress(struct swp_plan *plan, int count, MPI_Request *requests, bool block,
                               bool *done) {
  if (!block || plan->polls || swp_outstanding_any())
    return swp_progress_poll(plan, count, requests, block, done);
  int mpi_error = MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  *done = mpi_error == MPI_SUCCESS;
  return *done ? SWP_SUCCESS : swp_fail_mpi(mpi_error, "MPI_Waitall");
}

/* For loops that poll: lets other started exchanges go on, and gives the core away where the plan yields. */
void swp_plan_relax(struct swp_plan *plan);

#endif
