/* A plan, as methods see it, and what they may call. */
#ifndef SWP_PLAN_H
#define SWP_PLAN_H

#include "allocate.h"
#include "error.h"
#include "method.h"
#include "problem.h"

/* Messages and bytes that this rank sends in a stage, then (after planning) over all ranks. */
struct stage {
  int64_t messages, bytes;
  int64_t messages_total, messages_max, bytes_total, bytes_max;
};

enum plan_state { PLAN_IDLE, PLAN_STARTED, PLAN_POISONED };

struct swp_plan {
  enum swp_kind kind;
  MPI_Comm comm; /* private */
  int rank, procs;
  bool yields; /* more ranks than cores on this node: waiting gives the core away */
  unsigned idle_polls;
  struct spec spec;
  struct features features;
  struct swp_hints hints;
  struct problem problem; /* of an exchange */
  enum plan_state state;
  void *method_state; /* the method's own */
  int64_t account;    /* bytes allocated */

  /* Set by the method of an exchange while planning, this rank's share: */
  int nstages;
  struct stage *stages;
  int64_t buffer_bytes; /* of its own buffers, the caller's not counted */
  int64_t copied_bytes; /* at each execution */
  char layout[96];      /* for people, may stay empty */

  char chosen_by[256];
  struct swp_statistics problem_statistics, statistics;
  int *discovery_scratch; /* sorted destinations, to find duplicates */
  int discovery_scratch_length;
};

/* Memory that lives as long as the plan; the method frees it. NULL when memory runs out. */
void *swp_plan_allocate(struct swp_plan *plan, int64_t count, size_t bytes);

/* SWP_ERR_MEMORY with a text that names the method. */
int swp_plan_no_memory(const struct swp_plan *plan);

/* nstages zeroed stages. */
int swp_plan_stages(struct swp_plan *plan, int nstages);

/* The worst error of all ranks, with the text of the first rank that has it. Collective on comm. */
int swp_agree(MPI_Comm comm, int error);

/* A hash of a text (NULL as ""), not negative: ranks that must have equal texts compare it. */
int64_t swp_text_hash(const char *text);

/* Tests the requests, or with block waits for all of them, giving the core away where the plan yields. */
int swp_progress(struct swp_plan *plan, int count, MPI_Request *requests, bool block, bool *done);

/* For loops that poll: gives the core away where the plan yields. */
void swp_plan_relax(struct swp_plan *plan);

#endif
