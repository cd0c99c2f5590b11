#include "collective_problem.h"

#include "collective.h"
#include "make.h"
#include "selector.h"

#include <string.h>

/* Whether MPI defines the type. MPICH refuses to tell of types that were made with large counts, as mpi4py
   makes all, except by the function with large counts. */
static int read_combiner(MPI_Datatype type, bool *named) {
  int error = SWP_SUCCESS, combiner;
#if MPI_VERSION >= 4
  MPI_Count integers, addresses, counts, types;
  MPI_TRY(MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner));
#else
  int integers, addresses, types;
  MPI_TRY(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
#endif
  *named = combiner == MPI_COMBINER_NAMED;
done:
  return error;
}

static int read_side(const char *name, int count, MPI_Datatype type, struct side *side) {
  int error = SWP_SUCCESS;
  bool named = false;
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
  TRY(read_combiner(type, &named));
  if (size < 0)
    return swp_fail(SWP_ERR_TOO_LARGE, "collective: the size of %s_type cannot be represented", name);
  side->item_bytes = size;
  side->dense = named && side->extent == size && side->low == 0;
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
    TRY((optional ? read_optional_side : read_side)("send", problem->send_count, problem->send_type,
                                                    &call->send));
  }
  if (swp_is_read(swp_reads_recv(operation), root)) {
    bool optional = swp_recv_may_be_in_place(operation, root);
    int count = operation == SWP_ALLGATHERV ? 0 : problem->recv_count;
    TRY((optional ? read_optional_side : read_side)("recv", count, problem->recv_type, &call->recv));
  }
done:
  return error;
}

/* Copies the counts to the half of the plan's memory that the present call does not use. */
static int read_counts(const struct swp_plan *plan, const struct swp_collective *problem, struct call *call) {
  int *memory = collective_plan_of(plan)->counts;
  int *half = call->recv_counts == memory ? memory + 2 * plan->procs : memory;
  size_t bytes = (size_t)plan->procs * sizeof(int);
  if (problem->recv_counts == NULL || problem->displs == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "allgatherv: recv_counts and displs must be given");
  for (int i = 0; i < plan->procs; i++)
    if (problem->recv_counts[i] < 0)
      return swp_fail(SWP_ERR_ARGUMENT, "allgatherv: recv_counts[%d] is %d", i, problem->recv_counts[i]);
  memcpy(half, problem->recv_counts, bytes);
  memcpy(half + plan->procs, problem->displs, bytes);
  call->recv_counts = half;
  call->displs = half + plan->procs;
  call->recv.count = half[plan->rank];
  return SWP_SUCCESS;
}

/* Items of all ranks, and the most of one. */
static void count_items(const struct swp_plan *plan, const struct call *call, int count, int64_t *total,
                        int64_t *most) {
  const struct shape *shape = &swp_shapes[plan->operation];
  const bool is_vector = !swp_holds_all(shape->send) && !swp_holds_all(shape->recv);
  *total = is_vector ? count : (int64_t)count * plan->procs;
  *most = count;
  if (plan->operation != SWP_ALLGATHERV)
    return;
  *total = *most = 0;
  for (int i = 0; i < plan->procs; i++) {
    *total += call->recv_counts[i];
    *most = call->recv_counts[i] > *most ? call->recv_counts[i] : *most;
  }
}

/* From the side that is always there: gather has no receiving side at most ranks, and scatter a sending one
   at the root alone, where that of recv may be absent. */
static int count_bytes(const struct swp_plan *plan, const struct call *call, struct features *features) {
  bool by_send = plan->operation == SWP_SCATTER ? call->send.type != MPI_DATATYPE_NULL
                                                : call->recv.type == MPI_DATATYPE_NULL;
  const struct side *side = by_send ? &call->send : &call->recv;
  int64_t total, most;
  count_items(plan, call, side->count, &total, &most);
  if (__builtin_mul_overflow(total, side->item_bytes, &features->total_bytes))
    return swp_fail(SWP_ERR_TOO_LARGE, "collective: more than 2^63 bytes");
  features->most_bytes = most * side->item_bytes;
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
  if (plan->operation == SWP_ALLGATHERV)
    TRY(read_counts(plan, problem, call));
  TRY(count_bytes(plan, call, features));
  TRY(swp_read_op(shape->reduces ? problem->op : MPI_OP_NULL, features));
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
  if (plan->operation == SWP_ALLGATHERV) {
    collective->counts = swp_plan_allocate(plan, 4 * (int64_t)plan->procs, sizeof *collective->counts);
    if (collective->counts == NULL)
      return swp_fail(SWP_ERR_MEMORY, "no memory to plan an allgatherv");
  }
  return read_problem(plan, problem, &collective->call, &plan->features);
}

static int check_problem(const swp_plan *plan, const struct swp_collective *problem, const char *function) {
  int error = swp_plan_check(plan, SWP_BCAST, PLAN_IDLE, function);
  if (error == SWP_SUCCESS && (problem == NULL || problem->operation != plan->operation))
    return swp_fail(SWP_ERR_ARGUMENT, "%s: the plan is for %s", function, swp_shapes[plan->operation].name);
  return error;
}

static int set(swp_plan *plan, const struct swp_collective *problem, const struct match *match) {
  int error = SWP_SUCCESS;
  struct call call = *call_of(plan);
  struct features features = plan->features;
  TRY(read_problem(plan, problem, &call, &features));
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
  if (!swp_choice_match(collective_plan_of(plan)->choices, choice, &match))
    return swp_fail(SWP_ERR_ARGUMENT, "swp_selector_set: the choice is not from the plan's selector");
  return set(plan, problem, &match);
}
