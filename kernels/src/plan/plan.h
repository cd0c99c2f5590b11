/* A plan, as methods see it, and what they may call. */
#ifndef SWP_PLAN_H
#define SWP_PLAN_H

#include "allocate.h"
#include "error.h"
#include "method.h"
#include "topology.h"

#include <stdatomic.h>

enum plan_state { PLAN_IDLE, PLAN_STARTED, PLAN_POISONED };

enum { ARRANGEMENT_BYTES = 96, CHOSEN_BYTES = 1024 };

/* The part that plans of all kinds share, the first member of each kind: see kinds.h. */
struct swp_plan {
  /* Members that every execution reads come first, in one cache line, for exchanges of a microsecond. */
  enum swp_operation operation;
  enum plan_state state;
  MPI_Comm comm;   /* private */
  bool yields;     /* more ranks than cores on this node: polling yields the core */
  bool polls;      /* waiting polls: MPI's own does not yield, or lets no exchange of a thread progress */
  bool forwards;   /* of an exchange in several stages: other ranks wait for this one in between */
  bool has_self;   /* of an exchange: there is a message to this rank itself */
  bool has_fields; /* of an exchange: it is executed with the buffers of several fields */
  unsigned idle_polls;
  void *method_state; /* the method's own */
  int (*start)(struct swp_plan *plan, const char *send, char *recv);
  int (*advance)(struct swp_plan *plan, bool block,
                 bool *done); /* both of an exchange's method, or around it */

  struct spec spec;
  bool prepared; /* the method's plan was called, and its free not yet */
  int rank, procs;
  struct topology *topology;
  struct features features;
  struct swp_hints hints;
  int64_t account;                     /* bytes allocated */
  bool is_trial;                       /* comm is that of another plan */
  bool same_comm;                      /* comm is the caller's: SWP_SAME_COMM */
  char arrangement[ARRANGEMENT_BYTES]; /* for people, may stay empty */
  char chosen_by[CHOSEN_BYTES];        /* of an exchange or a discovery, for people */
  struct swp_statistics problem_statistics, statistics;
};

/* Memory that lives as long as the plan; the method frees it. NULL when memory runs out. */
void *swp_plan_allocate(struct swp_plan *plan, int64_t count, size_t bytes);

/* Returns SWP_ERR_MEMORY with a text that names the method. */
static inline int swp_plan_no_memory(const struct swp_plan *plan) {
  return swp_fail(SWP_ERR_MEMORY, "no memory to plan %s", plan->spec.text);
}

/* Calls `plan` of the method of plan->spec; swp_plan_unprepare must be called in any case. Collective.
   Errors, agreed: the method's. */
int swp_plan_prepare(struct swp_plan *plan);

/* Calls `free` of the method, if its `plan` was called. */
void swp_plan_unprepare(struct swp_plan *plan);

/* Checks that the plan is for the operation (any collective: SWP_BCAST) and in the state. Errors:
   SWP_ERR_ARGUMENT, _STATE, _POISONED. */
int swp_plan_check(const struct swp_plan *plan, enum swp_operation operation, enum plan_state expected,
                   const char *call);

/* Forbids further executions. Returns the error. */
int swp_plan_poison(struct swp_plan *plan, int error);

/* Returns whether a rank that waits inside MPI yields its core. */
bool swp_mpi_yields(void);

/* Not 0 while started exchanges need this process to forward: see outstanding.h. */
extern atomic_int swp_outstanding_count;

static inline bool swp_outstanding_any(void) {
  return atomic_load_explicit(&swp_outstanding_count, memory_order_relaxed) != 0;
}

/* The part of swp_progress that polls. */
int swp_progress_poll(struct swp_plan *plan, int count, MPI_Request *requests, bool block, bool *done);

/* Tests the requests, or with block waits for all of them, yielding the core where the plan yields. Methods
   wait only by this and swp_plan_relax, which let other started exchanges progress. Inline: each line of code
   that is not in the cache slows a microsecond exchange. */
static inline int swp_progress(struct swp_plan *plan, int count, MPI_Request *requests, bool block,
                               bool *done) {
  if (!block || plan->polls || swp_outstanding_any())
    return swp_progress_poll(plan, count, requests, block, done);
  int mpi_error = MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  *done = mpi_error == MPI_SUCCESS;
  return *done ? SWP_SUCCESS : swp_fail_mpi(mpi_error, "MPI_Waitall");
}

/* For loops that poll: lets other started exchanges progress, and yields the core where the plan yields. */
void swp_plan_relax(struct swp_plan *plan);

#endif
