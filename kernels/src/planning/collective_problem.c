#include "collective_problem.h"

#include "collective.h"
#include "make.h"
#include "random.h"
#include "selector.h"

#include <string.h>

/* How the type was made. MPICH refuses to describe types that were made with large counts, as
   mpi4py makes all, except by the function with large counts. */
static int read_combiner(MPI_Datatype type, int *combiner) {
  int error = SWP_SUCCESS;
#if MPI_VERSION >= 4
  MPI_Count integers, addresses, counts, types;
  MPI_TRY(MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, combiner));
#else
  int integers, addresses, types;
  MPI_TRY(MPI_Type_get_envelope(type, &integers, &addresses, &types, combiner));
#endif
done:
  return error;
}

/* Returns whether MPI's own operations are defined for it: only for types that MPI defines. */
static bool is_reducible(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static int read_side(const char *name, int count, MPI_Datatype type, struct side *side) {
  int error = SWP_SUCCESS;
  int combiner = MPI_COMBINER_NAMED;
  MPI_Aint lower;
  MPI_Count size;
  *side = (struct side){.count = count, .type = type};
  if (count < 0)
    return swp_fail(SWP_ERR_ARGUMENT, "collective: %s_count is %d", name, count);
  if (type == MPI_DATATYPE_NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "collective: %s_type is MPI_DATATYPE_NULL", name);
  MPI_TRY(MPI_Type_size_x(type, &size));
  MPI_TRY(MPI_Type_get_extent(type, &lower, &side->extent));
  MPI_TRY(MPI_Type_get_true_extent(type, &side->low, &side->span));
  TRY(read_combiner(type, &combiner));
  if (size < 0)
    return swp_fail(SWP_ERR_TOO_LARGE, "collective: the size of %s_type cannot be represented", name);
  side->item_bytes = size;
  side->dense = combiner == MPI_COMBINER_NAMED && side->extent == size && side->low == 0;
  side->reducible = is_reducible(combiner);
done:
  return error;
}

/* A side that MPI_IN_PLACE may replace: without a usable type it is absent. */
static int read_optional_side(const char *name, int count, MPI_Datatype type, struct side *side) {
  if (type != MPI_DATATYPE_NULL && count >= 0)
    return read_side(name, count, type, side);
  *side = (struct side){.type = MPI_DATATYPE_NULL};
  return SWP_SUCCESS;
}

static int read_sides(const struct swp_plan *plan, const struct swp_collective *problem, struct call *call) {
  const enum swp_operation operation = problem->operation;
  const bool root = !swp_shapes[operation].rooted || plan->rank == problem->root;
  int error = SWP_SUCCESS;
  call->send = call->recv = (struct side){.type = MPI_DATATYPE_NULL};
  if (swp_is_read(swp_reads_send(operation), root)) {
    bool optional = swp_send_may_be_in_place(operation, root);
    int count = operation == SWP_ALLTOALLV ? 0 : problem->send_count;
    TRY((optional ? read_optional_side : read_side)("send", count, problem->send_type, &call->send));
  }
  if (swp_is_read(swp_reads_recv(operation), root)) {
    bool optional = swp_recv_may_be_in_place(operation, root);
    int count = swp_is_listed(operation) ? 0 : problem->recv_count;
    TRY((optional ? read_optional_side : read_side)("recv", count, problem->recv_type, &call->recv));
  }
done:
  return error;
}

/* Numbers in the lists of a call, and copies of them in a plan: of the present call, and of the next. */
static int list_length(const struct swp_plan *plan) {
  return (plan->operation == SWP_ALLTOALLV ? 4 : 2) * plan->procs;
}

enum { LISTS = 2 };

/* Copies counts and then places. */
static int copy_list(const struct swp_plan *plan, bool sends, const int *counts, const int *displs, int *to) {
  const char *name = swp_shapes[plan->operation].name, *counted = sends ? "send_counts" : "recv_counts";
  const size_t bytes = (size_t)plan->procs * sizeof(int);
  if (counts == NULL || displs == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "%s: %s and %s must be given", name, counted,
                    sends ? "send_displs" : "displs");
  for (int i = 0; i < plan->procs; i++)
    if (counts[i] < 0)
      return swp_fail(SWP_ERR_ARGUMENT, "%s: %s[%d] is %d", name, counted, i, counts[i]);
  memcpy(to, counts, bytes);
  memcpy(to + plan->procs, displs, bytes);
  return SWP_SUCCESS;
}

/* Copies the counts to the half of the plan's memory that the present call does not use. */
static int read_counts(const struct swp_plan *plan, const struct swp_collective *problem, struct call *call) {
  int *memory = collective_plan_of(plan)->counts, procs = plan->procs, error = SWP_SUCCESS;
  int *half = call->recv_counts == memory ? memory + list_length(plan) : memory;
  const bool sends = plan->operation == SWP_ALLTOALLV && call->send.type != MPI_DATATYPE_NULL;
  TRY(copy_list(plan, false, problem->recv_counts, problem->displs, half));
  if (sends)
    TRY(copy_list(plan, true, problem->send_counts, problem->send_displs, half + 2 * procs));
  call->recv_counts = half;
  call->displs = half + procs;
  call->recv.count = half[plan->rank];
  call->send_counts = sends ? half + 2 * procs : NULL;
  call->send_displs = sends ? half + 3 * procs : NULL;
  if (sends)
    call->send.count = call->send_counts[plan->rank];
done:
  return error;
}

/* Items of all ranks, and the most of one. */
static void count_items(const struct swp_plan *plan, const struct call *call, int count, int64_t *total,
                        int64_t *most) {
  const struct shape *shape = &swp_shapes[plan->operation];
  const bool is_vector = !swp_holds_all(shape->send) && !swp_holds_all(shape->recv);
  *total = is_vector ? count : (int64_t)count * plan->procs;
  *most = count;
  if (!swp_is_listed(plan->operation))
    return;
  *total = *most = 0;
  for (int i = 0; i < plan->procs; i++) {
    *total += call->recv_counts[i];
    *most = call->recv_counts[i] > *most ? call->recv_counts[i] : *most;
  }
}

/* The ranks of an alltoallv have yet to agree: `bytes` are those that this rank sends. Room is for its
   largest block, too, as ranks may be wrong about each other's counts. */
static int count_sent(const struct swp_plan *plan, const struct call *call, struct features *features) {
  int64_t items = 0, most = 0;
  features->bytes = features->total_bytes;
  if (call->send_counts == NULL)
    return SWP_SUCCESS;
  for (int i = 0; i < plan->procs; i++) {
    items += call->send_counts[i];
    most = call->send_counts[i] > most ? call->send_counts[i] : most;
  }
  if (__builtin_mul_overflow(items, call->send.item_bytes, &features->bytes))
    return swp_fail(SWP_ERR_TOO_LARGE, "collective: more than 2^63 bytes");
  if (most * call->send.item_bytes > features->most_bytes)
    features->most_bytes = most * call->send.item_bytes;
  return SWP_SUCCESS;
}

/* Counts the bytes of the side that is always there: gather has no receiving side at most ranks, and scatter
   a sending one at the root alone, where that of recv may be absent. */
static int count_bytes(const struct swp_plan *plan, const struct call *call, struct features *features) {
  bool by_send = plan->operation == SWP_SCATTER ? call->send.type != MPI_DATATYPE_NULL
                                                : call->recv.type == MPI_DATATYPE_NULL;
  const struct side *side = by_send ? &call->send : &call->recv;
  int64_t total, most;
  if (swp_shapes[plan->operation].recv == NONE) {
    features->bytes = features->total_bytes = features->most_bytes = NO_DATA_BYTES;
    return SWP_SUCCESS;
  }
  count_items(plan, call, side->count, &total, &most);
  if (__builtin_mul_overflow(total, side->item_bytes, &features->total_bytes))
    return swp_fail(SWP_ERR_TOO_LARGE, "collective: more than 2^63 bytes");
  features->most_bytes = most * side->item_bytes;
  if (plan->operation == SWP_ALLTOALLV)
    return count_sent(plan, call, features);
  features->bytes =
      plan->operation == SWP_ALLGATHERV ? features->total_bytes / plan->procs : features->most_bytes;
  return SWP_SUCCESS;
}

/* Reads a problem into a copy of the plan's call, and sets the features that follow from it. */
static int read_problem(const struct swp_plan *plan, const struct swp_collective *problem, struct call *call,
                        struct features *features) {
  const struct shape *shape = &swp_shapes[plan->operation];
  int error = SWP_SUCCESS;
  if (shape->rooted && (problem->root < 0 || problem->root >= plan->procs))
    return swp_fail(SWP_ERR_ARGUMENT, "collective: root is %d; there are %d ranks", problem->root,
                    plan->procs);
  if (shape->reduces && problem->op == MPI_OP_NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "collective: op is MPI_OP_NULL");
  TRY(read_sides(plan, problem, call));
  if (swp_is_listed(plan->operation))
    TRY(read_counts(plan, problem, call));
  TRY(count_bytes(plan, call, features));
  TRY(swp_read_op(shape->reduces ? problem->op : MPI_OP_NULL, features));
  if (shape->reduces)
    features->predefined = features->predefined && call->recv.reducible;
  call->op = problem->op;
  features->root = shape->rooted ? problem->root : 0;
done:
  return error;
}

int swp_collective_begin(struct collective_plan *collective, const struct swp_collective *problem) {
  struct swp_plan *plan = &collective->plan;
  if (problem == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_collective_plan: problem is NULL");
  if (problem->operation != plan->operation)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_collective_plan: %d is not a collective operation",
                    (int)problem->operation);
  if (swp_is_listed(plan->operation)) {
    collective->counts =
        swp_plan_allocate(plan, LISTS * (int64_t)list_length(plan), sizeof *collective->counts);
    if (collective->counts == NULL)
      return swp_fail(SWP_ERR_MEMORY, "no memory to plan an %s", swp_shapes[plan->operation].name);
  }
  return read_problem(plan, problem, &collective->call, &plan->features);
}

/* The sum over ranks is 0 if each receives from every other as many bytes as that sends it. In place a rank
   sends as many as it receives. */
static uint64_t hash_blocks(const struct swp_plan *plan, const struct call *call) {
  const bool in_place = call->send_counts == NULL;
  const int *counts = in_place ? call->recv_counts : call->send_counts;
  const struct side *from = in_place ? &call->recv : &call->send;
  uint64_t hash = 0;
  for (int i = 0; i < plan->procs; i++) {
    hash += swp_message_hash(plan->rank, i, counts[i] * from->item_bytes);
    hash -= swp_message_hash(i, plan->rank, call->recv_counts[i] * call->recv.item_bytes);
  }
  return hash;
}

int swp_collective_agree(const struct swp_plan *plan, const struct call *call, struct features *features) {
  enum { SENT, RECEIVED, UNMATCHED, SUMS };
  const int64_t sent = features->bytes, received = features->total_bytes;
  int64_t most[] = {features->most_bytes, sent > received ? sent : received};
  uint64_t sums[SUMS] = {(uint64_t)sent, (uint64_t)received};
  int error = SWP_SUCCESS;
  if (plan->operation != SWP_ALLTOALLV)
    return SWP_SUCCESS;
  sums[UNMATCHED] = hash_blocks(plan, call);
  MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT64_T, MPI_MAX, plan->comm));
  MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, sums, SUMS, MPI_UINT64_T, MPI_SUM, plan->comm)); /* hashes wrap */
  if (sums[UNMATCHED] != 0)
    return swp_fail(
        SWP_ERR_MISMATCH,
        "alltoallv: a rank expects other bytes of one than that sends it; all ranks send %llu, and "
        "receive %llu",
        (unsigned long long)sums[SENT], (unsigned long long)sums[RECEIVED]);
  features->most_bytes = most[0];
  features->total_bytes = most[1];
  features->bytes = (int64_t)sums[SENT] / plan->procs / plan->procs;
done:
  return error;
}

static int check_problem(const swp_plan *plan, const struct swp_collective *problem, const char *function) {
  int error = swp_plan_check(plan, SWP_BCAST, PLAN_IDLE, function);
  if (error == SWP_SUCCESS && (problem == NULL || problem->operation != plan->operation))
    return swp_fail(SWP_ERR_ARGUMENT, "%s: the plan is for %s", function, swp_shapes[plan->operation].name);
  return error;
}

/* The caller, who knows the choice, knows that they are those of the plan. Memory is for no more. */
static int keep_bytes(const struct features *planned, struct features *features) {
  const int64_t sent = features->bytes, received = features->total_bytes,
                all = sent > received ? sent : received;
  if (features->most_bytes > planned->most_bytes || all > planned->total_bytes)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "alltoallv: blocks of up to %lld bytes, together %lld; planned were %lld and %lld",
                    (long long)features->most_bytes, (long long)all, (long long)planned->most_bytes,
                    (long long)planned->total_bytes);
  features->bytes = planned->bytes;
  features->total_bytes = planned->total_bytes;
  features->most_bytes = planned->most_bytes;
  return SWP_SUCCESS;
}

static int set(swp_plan *plan, const struct swp_collective *problem, const struct match *match) {
  int error = SWP_SUCCESS;
  struct call call = *call_of(plan);
  struct features features = plan->features;
  TRY(read_problem(plan, problem, &call, &features));
  if (match == NULL)
    TRY(swp_collective_agree(plan, &call, &features));
  else if (plan->operation == SWP_ALLTOALLV)
    TRY(keep_bytes(&plan->features, &features));
  TRY(swp_plan_set(collective_plan_of(plan), &call, &features, match));
done:
  return error;
}

int swp_collective_set(swp_plan *plan, const struct swp_collective *problem) {
  int error = check_problem(plan, problem, "swp_collective_set");
  return error == SWP_SUCCESS ? set(plan, problem, NULL) : error;
}

int swp_selector_set(swp_plan *plan, const struct swp_collective *problem, const struct swp_choice *choice) {
  struct match match;
  int error = check_problem(plan, problem, "swp_selector_set");
  if (error != SWP_SUCCESS)
    return error;
  const struct collective_plan *collective = collective_plan_of(plan);
  if (collective->own_choices != NULL || !swp_choice_match(collective->choices, choice, &match))
    return swp_fail(SWP_ERR_ARGUMENT, "swp_selector_set: the choice is not from the plan's selector");
  return set(plan, problem, &match);
}
