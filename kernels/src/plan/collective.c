#include "collective.h"

#include "predefined.h"

enum reading swp_reads_send(enum swp_operation operation) {
  const struct shape *shape = &swp_shapes[operation];
  if (shape->reduces || shape->send == NONE)
    return NOWHERE;
  return shape->send == ALL_AT_ROOT ? AT_ROOT : EVERYWHERE;
}

enum reading swp_reads_recv(enum swp_operation operation) {
  const enum extent recv = swp_shapes[operation].recv;
  return recv == NONE ? NOWHERE : recv == ALL_AT_ROOT ? AT_ROOT : EVERYWHERE;
}

bool swp_send_may_be_in_place(enum swp_operation operation, bool root) {
  return operation != SWP_BCAST && operation != SWP_SCATTER &&
         (root || (operation != SWP_GATHER && operation != SWP_REDUCE));
}

bool swp_recv_may_be_in_place(enum swp_operation operation, bool root) {
  return operation == SWP_SCATTER && root;
}

bool swp_is_root(const struct swp_plan *plan) {
  return !swp_shapes[plan->operation].rooted || plan->rank == plan->features.root;
}

int swp_read_op(MPI_Op op, struct features *features) {
  int error = SWP_SUCCESS, commutes = 1;
  features->predefined = op == MPI_OP_NULL || swp_is_predefined(op);
  if (!features->predefined)
    MPI_TRY(MPI_Op_commutative(op, &commutes));
  features->commutative = commutes != 0;
done:
  return error;
}

static int64_t own_block_bytes(const struct swp_plan *plan) {
  return swp_is_listed(plan->operation) ? call_of(plan)->recv.count * call_of(plan)->recv.item_bytes
                                        : plan->features.bytes;
}

bool swp_is_block(const struct swp_plan *plan, const struct side *side) {
  return side->type != MPI_DATATYPE_NULL && side->count * side->item_bytes == own_block_bytes(plan);
}

static int check_block(const struct swp_plan *plan, const char *name, const struct side *side) {
  if (swp_is_block(plan, side))
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_ARGUMENT,
                  "%s: %s is not in place: count x type must be %lld bytes, the size of a block",
                  swp_shapes[plan->operation].name, name, (long long)own_block_bytes(plan));
}

/* Returns whether MPI uses a buffer on this rank; one that it ignores may have any value. */
static bool uses_send(enum swp_operation operation, bool root) {
  return operation != SWP_BCAST && operation != SWP_BARRIER && (root || operation != SWP_SCATTER);
}

static bool uses_recv(enum swp_operation operation, bool root) {
  return swp_is_read(swp_reads_recv(operation), root) && (root || operation != SWP_REDUCE);
}

static int refuse_in_place(const struct swp_plan *plan, const char *name) {
  return swp_fail(SWP_ERR_ARGUMENT, "%s: %s cannot be MPI_IN_PLACE here", swp_shapes[plan->operation].name,
                  name);
}

/* Whether items of a type that MPI defines have no buffer: such items never lie at MPI_BOTTOM. Displacements
   may lead from there. */
static bool is_missing(const struct swp_plan *plan, const struct side *side, const void *buffer) {
  const bool is_send = side == &call_of(plan)->send;
  const bool has_places = swp_is_listed(plan->operation) && !(is_send && plan->operation == SWP_ALLGATHERV);
  return buffer == NULL && side->reducible && side->count > 0 && !has_places;
}

static int refuse_missing(const struct swp_plan *plan, const char *name) {
  return swp_fail(SWP_ERR_ARGUMENT, "%s: %s is NULL", swp_shapes[plan->operation].name, name);
}

/* Neither is a buffer that MPI ignores. A side that MPI_IN_PLACE may replace was not checked by planning. */
static int check_buffers(const struct swp_plan *plan, bool root, const void *send, const void *recv) {
  const enum swp_operation operation = plan->operation;
  const struct call *call = call_of(plan);
  const bool may_send = swp_send_may_be_in_place(operation, root),
             may_receive = swp_recv_may_be_in_place(operation, root);
  int error = SWP_SUCCESS;
  if (send == MPI_IN_PLACE && !may_send)
    return refuse_in_place(plan, "send");
  if (recv == MPI_IN_PLACE && !may_receive)
    return refuse_in_place(plan, "recv");
  if (send != MPI_IN_PLACE && may_send && swp_is_read(swp_reads_send(operation), root))
    error = check_block(plan, "send", &call->send);
  if (error == SWP_SUCCESS && recv != MPI_IN_PLACE && may_receive)
    error = check_block(plan, "recv", &call->recv);
  const bool own_type = swp_reads_send(operation) != NOWHERE;
  if (error == SWP_SUCCESS && uses_send(operation, root) &&
      is_missing(plan, own_type ? &call->send : &call->recv, send))
    error = refuse_missing(plan, "send");
  if (error == SWP_SUCCESS && uses_recv(operation, root) && is_missing(plan, &call->recv, recv))
    error = refuse_missing(plan, "recv");
  return error;
}

int swp_collective_execute(swp_plan *plan, const void *send, void *recv) {
  int error = swp_plan_check(plan, SWP_BCAST, PLAN_IDLE, "swp_collective_execute");
  if (error != SWP_SUCCESS || plan->features.total_bytes == 0)
    return error;
  const bool root = swp_is_root(plan);
  send = uses_send(plan->operation, root) ? send : NULL;
  recv = uses_recv(plan->operation, root) ? recv : NULL;
  error = check_buffers(plan, root, send, recv);
  if (error != SWP_SUCCESS)
    return error;
  error = collective_plan_of(plan)->procedure->run(plan, send, recv);
  return error == SWP_SUCCESS ? SWP_SUCCESS : swp_plan_poison(plan, error);
}
