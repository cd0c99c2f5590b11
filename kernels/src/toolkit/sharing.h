/* What methods by the node's memory have in common: where they can be used, and how a rank waits for another.
 */
#ifndef SWP_SHARING_H
#define SWP_SHARING_H

#include "plan.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share no lock");

/* A message up to this size is cheaper copied twice than sent. */
enum { SHARING_BYTES = 8192 };

/* A number in shared memory, written by one rank: of the last call that it has got to. Calls count up from
   any number, and past the largest from 0 again. */
typedef _Atomic uint64_t call_number;

/* The number of the call before a plan's first: shortly before the largest, so that all long runs meet what
   comes after that. Tests set it. */
extern uint64_t swp_calls_begin;

static inline bool swp_has_reached(const call_number *number, uint64_t call) {
  return (int64_t)(atomic_load_explicit(number, memory_order_acquire) - call) >= 0;
}

/* Everything that this rank wrote before, others that find the number may read. */
static inline void swp_reach(call_number *number, uint64_t call) {
  atomic_store_explicit(number, call, memory_order_release);
}

/* Before shared memory is written that another core has read: asks for all of its lines at once, where stores
   would get them from there almost one by one. */
static inline void swp_claim(char *memory, int64_t bytes) {
  enum { LEAST_LINE_BYTES = 64 };
  for (int64_t at = 0; at < bytes; at += LEAST_LINE_BYTES)
    __builtin_prefetch(memory + at, 1);
}

/* NULL where all ranks share memory, on several nodes of several ranks, and where the latter share memory;
   otherwise why methods that need it cannot be used. */
const char *swp_sharing_applicable(const struct spec *spec, const struct features *features);
const char *swp_nodes_applicable(const struct features *features);
const char *swp_sharing_applicable_on_nodes(const struct features *features);

/* NULL where ranks of a node share memory, on one node or on several; otherwise why none do. */
const char *swp_sharing_applicable_within_nodes(const struct spec *spec, const struct features *features);

/* node=mpi|shared, mpi when not given: how ranks of a node communicate. */
#define NODE_USAGE "node=mpi|shared"
#define NODE_PARAMETER {.name = "node", .type = PARAMETER_CHOICE, .choices = swp_node_choices}
extern const char *const swp_node_choices[];

/* Returns whether plans by the spec take memory of the node. */
bool swp_is_by_memory(const struct spec *spec);

/* Checks that a rank may take so many bytes of shared memory for a plan. Errors: SWP_ERR_NOT_APPLICABLE. */
int swp_sharing_check(const struct swp_plan *plan, int64_t bytes);

/* The ranks that share an arena: all of a plan, or those of this rank's node. */
struct sharers {
  struct arena *arena;
  bool on_node;
  int node, count;
};

struct sharers swp_sharers(const struct swp_plan *plan, bool on_node);

/* Returns whether a rank is one of them; without an arena none is. */
bool swp_is_sharer(const struct swp_plan *plan, const struct sharers *sharers, int rank);

/* The number of a rank among them, and the rank with a number. */
int swp_sharer_of(const struct swp_plan *plan, const struct sharers *sharers, int rank);
int swp_sharer_rank(const struct swp_plan *plan, const struct sharers *sharers, int number);

/* Makes an error that the ranks of a node agreed on by their numbers there say so. */
void swp_sharing_name_node(void);

/* Takes memory of an arena for a plan, as swp_arena_take. `error` is an earlier error of this rank, with
   which `share` may be NULL; it is agreed on. */
static inline int swp_sharing_take(struct swp_plan *plan, struct arena *arena, MPI_Comm comm, int error,
                                   int64_t bytes, struct share *share) {
  TRY(swp_agree(comm, error));
  TRY(swp_arena_take(arena, comm, bytes, share));
  plan->account += share->bytes;
done:
  if (error != SWP_SUCCESS && comm != plan->comm)
    swp_sharing_name_node();
  return error;
}

/* For a rank that has found nothing yet: lets MPI and other exchanges progress. Errors: SWP_ERR_MPI. */
int swp_sharing_progress(struct swp_plan *plan);

/* Waits until a number has reached the call. Errors: SWP_ERR_MPI. */
int swp_await_slowly(struct swp_plan *plan, const call_number *number, uint64_t call);

static inline int swp_await(struct swp_plan *plan, const call_number *number, uint64_t call) {
  return swp_has_reached(number, call) ? SWP_SUCCESS : swp_await_slowly(plan, number, call);
}

#endif
