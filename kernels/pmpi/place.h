/*
 * A place is what the preloaded library knows about a communicator of the application: where its ranks are,
 * which rules that means, and, from the first call on that a rule is for, a private communicator and plans.
 */
#ifndef SWP_PLACE_H
#define SWP_PLACE_H

#include "switchpoint.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { FIRST_OPERATION = SWP_BCAST, COLLECTIVES = SWP_REDUCE_SCATTER_BLOCK - SWP_BCAST + 1, BUCKETS = 512 };

/* Neighbourhood collectives that may be planned. */
enum neighbor_function {
  NEIGHBOR_ALLGATHER,
  NEIGHBOR_ALLGATHERV,
  NEIGHBOR_ALLTOALL,
  NEIGHBOR_ALLTOALLV,
  NEIGHBOR_ALLTOALLW,
  NEIGHBOR_FUNCTIONS
};

struct neighborhood;

/* The rules for ranks of one layout and origin, shared by all communicators of that layout. */
struct selectors {
  struct selectors *next;
  struct swp_layout layout;
  bool strangers;                  /* not all ranks are in MPI_COMM_WORLD */
  swp_selector *list[COLLECTIVES]; /* NULL: all calls are left to the MPI library */
};

struct place {
  _Atomic(MPI_Comm) comm; /* MPI_COMM_NULL: the place is free */
  struct place *next;     /* of its bucket, for ever: readers hold no lock */
  int rank, procs;
  const struct selectors *selectors; /* NULL: nothing is done here */
  MPI_Comm own;                      /* private; MPI_COMM_NULL until a rule needs it */
  bool refused;                      /* no private communicator, or it must not be used */
  swp_plan *plans[COLLECTIVES];
  int errors[COLLECTIVES]; /* MPI's, of the call that poisoned the plan */
  MPI_Datatype named_type; /* the last that cannot be freed, and its bytes */
  MPI_Count named_bytes;
  const char *method; /* selected for the present call, with the bytes that rules count */
  int64_t bytes;
  bool fixed_counts; /* the application promises it of neighbourhood collectives: here are those planned */
  struct neighborhood *neighborhoods[NEIGHBOR_FUNCTIONS];
  swp_plan *vendor_plans[COLLECTIVES]; /* of the guard, as are these: */
  struct trial *trials;
};

/* Whether there is anything to look for: MPI is up and a table with rules has been read. */
extern atomic_bool place_on;

/* By the communicator. A place stays in its bucket, so that a reader may meet it while it is given away. */
extern _Atomic(struct place *) place_buckets[BUCKETS];

/* A new place for the communicator, or NULL when it cannot be had. Local, but for communicators with ranks
   outside MPI_COMM_WORLD, whose layout has to be asked for. */
struct place *place_make(MPI_Comm comm);

/* The communicator is about to be freed: collective as that is. */
void place_forget(MPI_Comm comm);

/* From here on calls are dispatched. */
void place_begin(void);

/* Before MPI is finalised: nothing is dispatched from here on. */
void place_end(void);

/* Whether anything was ever prepared for dispatching: what the library keeps then dies with that MPI. */
bool place_used(void);

/* Makes the place's private communicator at the first call. Collective. False when there can be none. */
bool place_prepare(struct place *place);

static inline unsigned place_bucket(MPI_Comm comm) {
  return (unsigned)((uintptr_t)comm * 0x9e3779b97f4a7c15u >> 55);
}

static inline struct place *place_find(MPI_Comm comm) {
  struct place *place = atomic_load_explicit(&place_buckets[place_bucket(comm)], memory_order_acquire);
  while (place != NULL && atomic_load_explicit(&place->comm, memory_order_relaxed) != comm)
    place = place->next;
  return place;
}

/* The communicator's place; NULL when all its calls are the MPI library's. */
static inline struct place *place_of(MPI_Comm comm) {
  if (!atomic_load_explicit(&place_on, memory_order_relaxed) || comm == MPI_COMM_NULL)
    return NULL;
  struct place *place = place_find(comm);
  if (place == NULL)
    place = place_make(comm);
  return place->selectors != NULL ? place : NULL;
}

/* The same when it has rules for the operation. */
static inline struct place *place_for(enum swp_operation operation, MPI_Comm comm) {
  struct place *place = place_of(comm);
  return place != NULL && place->selectors->list[operation - FIRST_OPERATION] != NULL ? place : NULL;
}

#endif
