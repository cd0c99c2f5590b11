/* Collectives: what a problem means on this rank, and its execution. */
#include "collective.h"

#include "choices.h"

#include <string.h>

/* Where MPI reads a side. */
enum reading { NOWHERE, EVERYWHERE, AT_ROOT };

static const struct shape {
  enum reading send, recv;
  bool rooted, reduces;
  bool vector;             /* bytes are of the whole vector, not of a rank's block */
  bool send_all, recv_all; /* a buffer has a block for each rank */
} shapes[OPERATIONS] = {
    [SWP_BCAST] = {NOWHERE, EVERYWHERE, .rooted = true, .vector = true},
    [SWP_GATHER] = {EVERYWHERE, AT_ROOT, .rooted = true, .recv_all = true},
    [SWP_SCATTER] = {AT_ROOT, EVERYWHERE, .rooted = true, .send_all = true},
    [SWP_REDUCE] = {NOWHERE, EVERYWHERE, .rooted = true, .reduces = true, .vector = true},
    [SWP_ALLREDUCE] = {NOWHERE, EVERYWHERE, .reduces = true, .vector = true},
    [SWP_ALLGATHER] = {EVERYWHERE, EVERYWHERE, .recv_all = true},
    [SWP_ALLGATHERV] = {EVERYWHERE, EVERYWHERE},
    [SWP_ALLTOALL] = {EVERYWHERE, EVERYWHERE, .send_all = true, .recv_all = true},
    [SWP_REDUCE_SCATTER_BLOCK] = {NOWHERE, EVERYWHERE, .reduces = true, .send_all = true},
};

static bool is_read(enum reading reading, bool root) {
  return reading == EVERYWHERE || (reading == AT_ROOT && root);
}

/* Whether MPI_IN_PLACE may take the place of send, or, where not, of recv. */
static bool send_may_be_in_place(enum swp_operation operation, bool root) {
  return operation != SWP_BCAST && operation != SWP_SCATTER &&
         (root || (operation != SWP_GATHER && operation != SWP_REDUCE));
}

static bool recv_may_be_in_place(enum swp_operation operation, bool root) {
  return operation == SWP_SCATTER && root;
}

static int read_side(const char *name, int count, MPI_Datatype type, struct side *side) {
  int error = SWP_SUCCESS, integers, addresses, types, combiner;
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
  MPI_TRY(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  if (size < 0)
    return swp_fail(SWP_ERR_TOO_LARGE, "collective: %s_type has more bytes than can be told", name);
  side->item_bytes = size;
  side->dense = combiner == MPI_COMBINER_NAMED && side->extent == size && side->low == 0;
done:
  return error;
}

/* A side that may be MPI_IN_PLACE's: without a usable type it is absent. */
static int read_optional_side(const char *name, int count, MPI_Datatype type, struct side *side) {
  if (type != MPI_DATATYPE_NULL && count >= 0)
    return read_side(name, count, type, side);
  *side = (struct side){.type = MPI_DATATYPE_NULL};
  return SWP_SUCCESS;
}

static int read_sides(const struct swp_plan *plan, const struct swp_collective *problem, struct call *call) {
  const struct shape *shape = &shapes[problem->operation];
  bool root = shape->rooted ? plan->rank == problem->root : true;
  int error = SWP_SUCCESS;
  call->send = call->recv = (struct side){.type = MPI_DATATYPE_NULL};
  if (is_read(shape->send, root)) {
    bool optional = send_may_be_in_place(problem->operation, root);
    TRY((optional ? read_optional_side : read_side)("send", problem->send_count, problem->send_type,
                                                    &call->send));
  }
  if (is_read(shape->recv, root)) {
    bool optional = recv_may_be_in_place(problem->operation, root);
    int count = problem->operation == SWP_ALLGATHERV ? 0 : problem->recv_count;
    TRY((optional ? read_optional_side : read_side)("recv", count, problem->recv_type, &call->recv));
  }
done:
  return error;
}

/* Copies the counts to the half of the plan's memory that the present call does not use. */
static int read_counts(const struct swp_plan *plan, const struct swp_collective *problem, struct call *call) {
  int *half = call->recv_counts == call->memory ? call->memory + 2 * plan->procs : call->memory;
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
  *total = shapes[plan->operation].vector ? count : (int64_t)count * plan->procs;
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
    return swp_fail(SWP_ERR_TOO_LARGE, "collective: over 2^63 bytes");
  features->most_bytes = most * side->item_bytes;
  features->bytes =
      plan->operation == SWP_ALLGATHERV ? features->total_bytes / plan->procs : features->most_bytes;
  return SWP_SUCCESS;
}

int swp_collective_read_op(MPI_Op op, struct features *features) {
  const MPI_Op predefined[] = {MPI_OP_NULL, MPI_MAX, MPI_MIN,  MPI_SUM,  MPI_PROD,   MPI_LAND,  MPI_BAND,
                               MPI_LOR,     MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
  int error = SWP_SUCCESS, commutes = 1;
  features->predefined = false;
  for (size_t i = 0; i < sizeof predefined / sizeof predefined[0] && !features->predefined; i++)
    features->predefined = op == predefined[i];
  if (!features->predefined)
    MPI_TRY(MPI_Op_commutative(op, &commutes));
  features->commutative = commutes != 0;
done:
  return error;
}

/* Reads a problem into a call that has its memory, and the features that it decides. Local. */
static int read_problem(const struct swp_plan *plan, const struct swp_collective *problem, struct call *call,
                        struct features *features) {
  const struct shape *shape = &shapes[plan->operation];
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
  TRY(swp_collective_read_op(shape->reduces ? problem->op : MPI_OP_NULL, features));
  call->op = problem->op;
  features->root = shape->rooted ? problem->root : 0;
done:
  return error;
}

int swp_collective_begin(struct swp_plan *plan, const struct swp_collective *problem) {
  if (problem == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_collective_plan: problem is NULL");
  if (problem->operation != plan->operation)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_collective_plan: %d is no collective operation",
                    (int)problem->operation);
  plan->call = swp_plan_allocate(plan, 1, sizeof *plan->call);
  if (plan->call == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory to plan a collective");
  if (plan->operation == SWP_ALLGATHERV) {
    plan->call->memory = swp_plan_allocate(plan, 4 * (int64_t)plan->procs, sizeof(int));
    if (plan->call->memory == NULL)
      return swp_fail(SWP_ERR_MEMORY, "no memory to plan an allgatherv");
  }
  return read_problem(plan, problem, plan->call, &plan->features);
}

/* Room for what the method needs for the plan's call. Local. */
static int reserve_scratch(struct swp_plan *plan) {
  struct call *call = plan->call;
  int64_t bytes = plan->procedure->scratch_bytes != NULL ? plan->procedure->scratch_bytes(plan) : 0;
  if (bytes <= call->scratch_bytes)
    return SWP_SUCCESS;
  char *scratch = swp_allocate_buffer((size_t)bytes);
  if (scratch == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory for the %lld bytes that %s needs", (long long)bytes,
                    plan->spec.text);
  swp_release(call->scratch);
  call->scratch = scratch;
  plan->account += bytes - call->scratch_bytes;
  call->scratch_bytes = bytes;
  return SWP_SUCCESS;
}

int swp_collective_choose(struct swp_plan *plan, const char *method) {
  int error = SWP_SUCCESS;
  TRY(swp_choices_find(plan, method));
  TRY(swp_choices_take(plan, &plan->features));
  TRY(swp_agree(plan->comm, reserve_scratch(plan)));
done:
  return error;
}

void swp_collective_end(struct swp_plan *plan) {
  swp_choices_free(plan);
  if (plan->call == NULL)
    return;
  swp_release(plan->call->memory);
  swp_release(plan->call->scratch);
  swp_release(plan->call);
}

int swp_collective_set(swp_plan *plan, const struct swp_collective *problem) {
  int error = swp_plan_check(plan, SWP_BCAST, PLAN_IDLE, "swp_collective_set");
  if (error != SWP_SUCCESS)
    return error;
  if (problem == NULL || problem->operation != plan->operation)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_collective_set: the plan is for %s",
                    swp_operation_names[plan->operation]);
  struct call call = *plan->call, old_call = call;
  struct features features = plan->features, old_features = features;
  int old_index = plan->choices->current;
  TRY(read_problem(plan, problem, &call, &features));
  TRY(swp_choices_take(plan, &features));
  *plan->call = call;
  plan->features = features;
  error = reserve_scratch(plan);
  if (error != SWP_SUCCESS) {
    *plan->call = old_call;
    plan->features = old_features;
    swp_choices_use(plan, old_index); /* prepared long ago */
  }
done:
  return error;
}

static int64_t own_block_bytes(const struct swp_plan *plan) {
  return plan->operation == SWP_ALLGATHERV ? plan->call->recv.count * plan->call->recv.item_bytes
                                           : plan->features.bytes;
}

/* The rank's own block must have the bytes of the others, and its side a type. */
static bool is_block(const struct swp_plan *plan, const struct side *side) {
  return side->type != MPI_DATATYPE_NULL && side->count * side->item_bytes == own_block_bytes(plan);
}

static int check_block(const struct swp_plan *plan, const char *name, const struct side *side) {
  if (is_block(plan, side))
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_ARGUMENT, "%s: %s is not in place, and its side has not the %lld bytes of a block",
                  swp_operation_names[plan->operation], name, (long long)own_block_bytes(plan));
}

static int check_buffers(const struct swp_plan *plan, const void *send, const void *recv) {
  bool root = shapes[plan->operation].rooted ? plan->rank == plan->features.root : true;
  bool reads_send = is_read(shapes[plan->operation].send, root);
  if (plan->operation != SWP_BCAST && send == MPI_IN_PLACE) {
    if (!send_may_be_in_place(plan->operation, root))
      return swp_fail(SWP_ERR_ARGUMENT, "%s: send cannot be MPI_IN_PLACE here",
                      swp_operation_names[plan->operation]);
  } else if (reads_send && plan->operation != SWP_SCATTER) {
    return check_block(plan, "send", &plan->call->send);
  }
  if (recv == MPI_IN_PLACE && recv_may_be_in_place(plan->operation, root))
    return SWP_SUCCESS;
  if (recv == MPI_IN_PLACE && is_read(shapes[plan->operation].recv, root))
    return swp_fail(SWP_ERR_ARGUMENT, "%s: recv cannot be MPI_IN_PLACE here",
                    swp_operation_names[plan->operation]);
  return plan->operation == SWP_SCATTER && root ? check_block(plan, "recv", &plan->call->recv) : SWP_SUCCESS;
}

int swp_collective_execute(swp_plan *plan, const void *send, void *recv) {
  int error = swp_plan_check(plan, SWP_BCAST, PLAN_IDLE, "swp_collective_execute");
  if (error != SWP_SUCCESS || plan->features.total_bytes == 0)
    return error;
  error = check_buffers(plan, send, recv);
  if (error != SWP_SUCCESS)
    return error;
  error = plan->procedure->run(plan, send, recv);
  return error == SWP_SUCCESS ? SWP_SUCCESS : swp_plan_poison(plan, error);
}

bool swp_collective_is_rooted(enum swp_operation operation) {
  return shapes[operation].rooted;
}

/* Zeroed memory for items, and the address from which the call counts them, of which the first is the
   `first`-th. */
static int make_buffer(const struct side *side, int64_t first, int64_t count, void **memory, void **buffer) {
  int64_t bytes = swp_side_room(side, count);
  *memory = swp_allocate((size_t)bytes, 1, NULL);
  if (*memory == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory to measure a collective on %lld bytes", (long long)bytes);
  *buffer = swp_item(side, swp_side_place(side, count, *memory), -first);
  return SWP_SUCCESS;
}

/* The items of recv that an allgatherv writes, from the first to behind the last. */
static void find_row(const struct call *call, int procs, int64_t *first, int64_t *count) {
  int64_t last = 0;
  *first = 0;
  for (int i = 0; i < procs; i++) {
    *first = call->displs[i] < *first ? call->displs[i] : *first;
    last = call->displs[i] + (int64_t)call->recv_counts[i] > last
               ? call->displs[i] + (int64_t)call->recv_counts[i]
               : last;
  }
  *count = last - *first;
}

/* MPI_IN_PLACE is where a side has no block: the caller's problem leaves nothing else to mean. */
int swp_collective_buffers(const struct swp_plan *plan, struct buffers *buffers) {
  const struct shape *shape = &shapes[plan->operation];
  const struct call *call = plan->call;
  const bool root = shape->rooted ? plan->rank == plan->features.root : true;
  const struct side *send = shape->send == NOWHERE ? &call->recv : &call->send;
  int64_t first = 0, count = (int64_t)call->recv.count * (shape->recv_all ? plan->procs : 1);
  int error = SWP_SUCCESS;
  if (plan->operation == SWP_ALLGATHERV)
    find_row(call, plan->procs, &first, &count);
  if (is_read(shape->send, root) && send_may_be_in_place(plan->operation, root) && !is_block(plan, send))
    buffers->send = MPI_IN_PLACE;
  else if (plan->operation != SWP_BCAST && send->type != MPI_DATATYPE_NULL)
    TRY(make_buffer(send, 0, (int64_t)send->count * (shape->send_all ? plan->procs : 1),
                    &buffers->send_memory, &buffers->send));
  if (recv_may_be_in_place(plan->operation, root) && !is_block(plan, &call->recv))
    buffers->recv = MPI_IN_PLACE;
  else if (call->recv.type != MPI_DATATYPE_NULL)
    TRY(make_buffer(&call->recv, first, count, &buffers->recv_memory, &buffers->recv));
done:
  return error;
}
