/*
 * A place holds what the preloaded library knows about a communicator of the application: its layout, the
 * rules for that and, from the first call that a rule matches, a private communicator and plans.
 */
#ifndef SWP_PLACE_H
#define SWP_PLACE_H

#include "report.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { FIRST_OPERATION = SWP_BCAST, COLLECTIVES = SWP_BARRIER - SWP_BCAST + 1, BUCKETS = 512 };

enum { CHANGES = 63 }; /* a binary search needs six steps at most */

/* What an application says of its calls on a communicator: that those which are planned keep their counts,
   that no buffer is in an accelerator's memory, and that ranks start persistent collectives as they would
   make the plain calls. */
enum promise { FIXED_COUNTS, HOST_BUFFERS, STARTED_TOGETHER, PROMISES };

struct planned;
struct uneven;

/* The rules for one operation. Calls below changes[0] bytes are the MPI library's, from there on maybe not,
   and so on alternately, until INT64_MAX. If there are more changes, no call beyond them is certainly the
   library's. */
struct rules {
  swp_selector *selector; /* NULL: all calls are the MPI library's; there are no changes then */
  int64_t changes[CHANGES];
};

/* The rules for ranks of one layout and origin, shared by all communicators of that layout. */
struct selectors {
  struct selectors *next;
  struct swp_layout layout;
  bool strangers; /* not all ranks are in MPI_COMM_WORLD */
  struct rules list[COLLECTIVES];
};

struct place {
  _Atomic(MPI_Comm) comm; /* MPI_COMM_NULL: the place is free */
  struct place *next;     /* of its bucket, for ever: readers hold no lock */
  int rank, procs;
  const struct selectors *selectors; /* NULL: nothing is done here */
  MPI_Comm own;                      /* private; MPI_COMM_NULL until a rule needs it */
  bool refused;                      /* there could be no private communicator, or no plan on it */
  bool device;                       /* a process has the run-time system of an accelerator */
  bool promised[PROMISES];           /* by the application, on all ranks */
  swp_plan *plans[COLLECTIVES];
  int errors[COLLECTIVES]; /* the MPI error code of the call that failed, which later ones return */
  bool refused_at_once;    /* the last call that failed: MPI has not seen its buffers */
  MPI_Datatype named_type; /* the last that cannot be freed, and its bytes */
  MPI_Count named_bytes;
  struct swp_choice choice; /* for the current call, with the bytes that rules refer to */
  int64_t bytes;
  struct planned *planned;             /* calls, the last first */
  struct uneven *uneven;               /* of MPI_Alltoallv; NULL before its first call */
  swp_plan *vendor_plans[COLLECTIVES]; /* of the guard, as are these: */
  struct trial *trials;
};

/* Whether calls may be dispatched: MPI is initialised and a table with rules has been read. */
extern atomic_bool place_on;

/* Places by a hash of the communicator. One stays in its bucket, so that a reader may meet it while it is
   given away. */
extern _Atomic(struct place *) place_buckets[BUCKETS];

/* Makes a place for the communicator; NULL if that fails. Local, except for communicators with ranks outside
   MPI_COMM_WORLD, whose layout must be queried. */
struct place *place_make(MPI_Comm comm);

/* The communicator is about to be freed: collective as that is. */
void place_forget(MPI_Comm comm);

/* Calls are dispatched from here on. */
void place_begin(void);

/* Nothing is dispatched from here on. Call it before MPI is finalised. */
void place_end(void);

/* Makes the place's private communicator at the first call. Collective. False if calls must not use it. */
bool place_prepare(struct place *place);

/* Why calls must not use the private communicator; NULL: they may, if there is one. */
static inline const char *place_refuses(const struct place *place) {
  return place->refused ? "a communicator or plan of its own could not be made"
         : place->device && !place->promised[HOST_BUFFERS]
             ? "a process may use an accelerator, and buffers are not promised to be the host's: "
               "swp_host_buffers"
             : NULL;
}

static inline bool place_reduces(enum swp_operation operation) {
  return operation == SWP_REDUCE || operation == SWP_ALLREDUCE || operation == SWP_REDUCE_SCATTER_BLOCK;
}

static inline unsigned place_bucket(MPI_Comm comm) {
  return (unsigned)((uintptr_t)comm * 0x9e3779b97f4a7c15u >> 55);
}

static inline struct place *place_find(MPI_Comm comm) {
  struct place *place = atomic_load_explicit(&place_buckets[place_bucket(comm)], memory_order_acquire);
  while (place != NULL && atomic_load_explicit(&place->comm, memory_order_relaxed) != comm)
    place = place->next;
  return place;
}

/* The place of a communicator seen before, an empty one if nothing is dispatched; otherwise NULL. */
static inline const struct place *place_known(MPI_Comm comm) {
  static const struct place nothing;
  return atomic_load_explicit(&place_on, memory_order_relaxed) ? place_find(comm) : &nothing;
}

/* The bytes that rules refer to, of this many items of the largest block (or the vector), or of an allgatherv
   in total. */
static inline int64_t place_bytes(const struct place *place, enum swp_operation operation, int64_t items,
                                  int64_t size) {
  return operation == SWP_ALLGATHERV ? items * size / place->procs : items * size;
}

/* Returns whether a call of this many bytes may be for a method. */
static inline bool place_asks(const struct rules *rules, int64_t bytes) {
  const int64_t *next = rules->changes; /* all before it are at or below the bytes */
  for (int half = (CHANGES + 1) / 2; half > 0; half /= 2)
    next += next[half - 1] <= bytes ? half : 0;
  return (next - rules->changes) % 2 != 0;
}

static inline bool place_has(const struct place *place, enum swp_operation operation) {
  return place->selectors != NULL && place->selectors->list[operation - FIRST_OPERATION].selector != NULL;
}

/* Returns whether a call is certainly the MPI library's, and need not be counted. False also where MPI would
   have to be asked, or the items are too many to multiply. */
static inline bool place_leaves(const struct place *place, enum swp_operation operation, int64_t items,
                                MPI_Datatype type) {
  if (report_on)
    return false;
  if (!place_has(place, operation))
    return true;
  if (type != place->named_type || (operation != SWP_ALLGATHERV && items > INT_MAX))
    return false;
  return !place_asks(&place->selectors->list[operation - FIRST_OPERATION],
                     place_bytes(place, operation, items, place->named_bytes));
}

/* The communicator's place; NULL when all its calls are the MPI library's. */
static inline struct place *place_of(MPI_Comm comm) {
  if (!atomic_load_explicit(&place_on, memory_order_relaxed) || comm == MPI_COMM_NULL)
    return NULL;
  struct place *place = place_find(comm);
  if (place == NULL)
    place = place_make(comm);
  return place != NULL && place->selectors != NULL ? place : NULL;
}

/* The same when it has rules for the operation. Counts the call of the function when not. */
struct place *place_for(enum swp_operation operation, MPI_Comm comm, const char *function);

/* Why a communicator has no place, or its place no rules. */
const char *place_lacks(MPI_Comm comm);

#endif
