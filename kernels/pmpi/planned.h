/*
 * Neighbourhood collectives as exchanges planned by the library: for calls whose counts stay the same on
 * every rank. All others are left to the MPI library: a rank knows only its own counts, and a plan made for
 * earlier ones would deliver wrong data.
 */
#ifndef SWP_PLANNED_H
#define SWP_PLANNED_H

#include "place.h"

/* Ends the job: a rank cannot inform the others, which are about to do the call by the plan. */
_Noreturn void promise_break(const struct place *place, const char *function, const char *text);

/* Forgets what ranks agreed on for MPI_Alltoallv. Collective, as freeing a plan is. */
void alltoallv_forget(struct place *place);

/* Whether the table has rules for exchanges, and there is an MPI_COMM_WORLD. */
extern bool planned_on;

/* Whether it has any rules, for which promises are read, and there is an MPI_COMM_WORLD. */
extern bool promises_on;

/* One side of a call, as the application gives it. A list that is NULL stands for a single value. */
struct part {
  const int *counts, *displs; /* displs in items */
  const MPI_Count *large_counts;
  const MPI_Aint *large_displs;
  const MPI_Aint *places; /* in bytes, instead of displs; neither: contiguous blocks */
  const MPI_Datatype *types;
  MPI_Count count;
  MPI_Datatype type;
  bool shared; /* one block is for every neighbour */
};

static inline MPI_Count part_count(const struct part *part, int i) {
  return part->counts != NULL         ? part->counts[i]
         : part->large_counts != NULL ? part->large_counts[i]
                                      : part->count;
}

/* Plans a call on a communicator. Collective on it; if a rank gives no side, no rank plans. Never NULL; ends
   the job when memory runs out. */
struct planned *planned_make(struct place *place, const struct part *send, const struct part *recv);

/* The method, or NULL where all ranks leave the calls to the MPI library; and the bytes that rules refer
   to. */
const char *planned_method(const struct planned *planned);
int64_t planned_bytes(const struct planned *planned);

/* Takes the sides of a new call. Types and addresses may differ from those planned; if the bytes of blocks
   do, returns false, with the reason in `text`. Local. */
bool planned_set(struct planned *planned, const struct part *send, const struct part *recv, char *text,
                 size_t length);

/* Makes the neighbourhood keep its types, for calls after the application has freed them. Local. */
void planned_keep(struct planned *planned);

/* Executions as swp_exchange_start and swp_test. They return an MPI error code. */
int planned_start(struct planned *planned, const void *send, void *recv);
int planned_test(struct planned *planned, bool *done);
int planned_execute(struct planned *planned, const void *send, void *recv);

/* NULL is allowed. Collective, as freeing a plan is. */
void planned_free(struct planned *planned);

#endif
