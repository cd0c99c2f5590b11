/*
 * Irregular collectives as exchanges planned by the library: for calls whose counts stay the same on every
 * rank. All others are left to the MPI library: a rank knows only its own counts, and a plan made for
 * earlier ones would deliver wrong data.
 */
#ifndef SWP_PLANNED_H
#define SWP_PLANNED_H

#include "place.h"

/* Ends the job: a rank cannot inform the others, which are about to do the call by the plan. */
_Noreturn void promise_break(const struct place *place, const char *function, const char *text);

/* The communicator's place, if the table has rules for exchanges on it. Counts the call of the function when
   not. */
struct place *planned_place(MPI_Comm comm, const char *function);

/* Forgets what ranks agreed on for MPI_Alltoallv. Collective, as freeing a plan is. */
void alltoallv_forget(struct place *place);

/* Whether the table has rules for exchanges, and there is an MPI_COMM_WORLD. */
extern bool planned_on;

/* Whether it has any rules, for which promises are read, and there is an MPI_COMM_WORLD. */
extern bool promises_on;

enum planned_function {
  NEIGHBOR_ALLGATHER,
  NEIGHBOR_ALLGATHERV,
  NEIGHBOR_ALLTOALL,
  NEIGHBOR_ALLTOALLV,
  NEIGHBOR_ALLTOALLW,
  GATHERV,
  SCATTERV,
  ALLTOALLW
};

/* One side of a call, as the application gives it. A list that is NULL stands for a single value. */
struct part {
  const int *counts, *displs; /* displs in items, or in bytes if there are types */
  const MPI_Count *large_counts;
  const MPI_Aint *large_displs; /* neither: contiguous blocks */
  const MPI_Datatype *types;
  int first; /* where in the lists the blocks begin */
  MPI_Count count;
  MPI_Datatype type;
  bool shared; /* one block is for every neighbour */
};

static inline MPI_Count part_count(const struct part *part, int i) {
  return part->counts != NULL         ? part->counts[i]
         : part->large_counts != NULL ? part->large_counts[i]
                                      : part->count;
}

/* A call, as the application makes it. */
struct planned_call {
  enum planned_function function;
  const char *name; /* without MPI_ */
  int root;         /* 0 where there is none */
  const void *from; /* either buffer may be MPI_IN_PLACE */
  void *into;
  struct part send, recv;
};

/* Plans a call on a communicator. Collective on it; if a rank gives NULL, no rank plans. Never NULL; ends
   the job when memory runs out. */
struct planned *planned_make(struct place *place, const struct planned_call *given);

/* Adds it to the place, which then owns it, for the calls that follow. */
void planned_add(struct place *place, struct planned *planned);

/* Finds what was added for the function and root of a call; NULL: nothing. Counts other roots. Local. */
struct planned *planned_find(const struct place *place, const struct planned_call *given, int *others);

/* Frees all that was added. Collective, as freeing a plan is. */
void planned_forget(struct place *place);

/* The method, or NULL where all ranks leave the calls to the MPI library; and the bytes that rules refer
   to. */
const char *planned_method(const struct planned *planned);
int64_t planned_bytes(const struct planned *planned);

/* Returns whether an execution failed on this rank. Local. */
bool planned_failed(const struct planned *planned);

/* Takes the sides of a new call. Types and addresses may differ from those planned; if the bytes of blocks
   do, returns false, with the reason in `text`. Local. */
bool planned_set(struct planned *planned, const struct planned_call *given, char *text, size_t length);

/* Makes it keep its types, for calls after the application has freed them. Local. */
void planned_keep(struct planned *planned);

/* Executions as swp_exchange_start, swp_test and swp_exchange_execute. They return an MPI error code; after
   one that failed, all later ones return the same, with nothing done. */
int planned_start(struct planned *planned, const void *send, void *recv);
int planned_test(struct planned *planned, bool *done);
int planned_execute(struct planned *planned, const void *send, void *recv);

/* NULL is allowed. Collective, as freeing a plan is. */
void planned_free(struct planned *planned);

#endif
