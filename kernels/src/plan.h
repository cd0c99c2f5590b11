/* A plan, as methods see it, and what they may call. */
#ifndef SWP_PLAN_H
#define SWP_PLAN_H

#include "allocate.h"
#include "error.h"
#include "method.h"
#include "problem.h"
#include "topology.h"

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

struct swp_plan {
  /* First what every execution reads, together: a call of a microsecond feels each cache line. */
  enum swp_kind kind;
  enum plan_state state;
  MPI_Comm comm; /* private */
  bool yields;   /* more ranks than cores on this node: polling gives the core away */
  bool polls;    /* so much that waiting polls, as MPI's own does not give it away */
  bool forwards; /* in several stages: other ranks wait for this one in between */
  unsigned idle_polls;
  void *method_state;     /* the method's own */
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
  int64_t buffer_bytes;                      /* of its own buffers, the caller's not counted */
  int64_t copied_bytes;                      /* at each execution */
  int64_t off_node_messages, off_node_bytes; /* by swp_plan_count */
  char layout[96];                           /* for people, may stay empty */

  char chosen_by[256];
  struct swp_statistics problem_statistics, statistics;
  int *discovery_scratch; /* sorted destinations, to find duplicates */
  int discovery_scratch_length;
  struct inbox *spare_inbox; /* of a discovery: for what comes while the caller's arguments are wrong */
  struct background background;
};

/* Memory that lives as long as the plan; the method frees it. NULL when memory runs out. */
void *swp_plan_allocate(struct swp_plan *plan, int64_t count, size_t bytes);

/* SWP_ERR_MEMORY with a text that names the method. */
int swp_plan_no_memory(const struct swp_plan *plan);

/* nstages zeroed stages. */
int swp_plan_stages(struct swp_plan *plan, int nstages);

/* Counts a message that this rank sends in a stage at each execution. */
void swp_plan_count(struct swp_plan *plan, int stage, int peer, int64_t bytes);

/* The worst error of all ranks, with the text of the first rank that has it. Collective on comm. */
int swp_agree(MPI_Comm comm, int error);

/* A hash of a text (NULL as ""), not negative: ranks that must have equal texts compare it. */
int64_t swp_text_hash(const char *text);

/* Whether a rank that waits inside MPI gives its core away. */
bool swp_mpi_yields(void);

/* Tests the requests, or with block waits for all of them, giving the core away where the plan yields.
   Methods wait by this and swp_plan_relax alone, which let other started exchanges go on. */
int swp_progress(struct swp_plan *plan, int count, MPI_Request *requests, bool block, bool *done);

/* For loops that poll: lets other started exchanges go on, and gives the core away where the plan yields. */
void swp_plan_relax(struct swp_plan *plan);

#endif
