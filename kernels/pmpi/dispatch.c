/* From a call of the application to a method. */
#include "dispatch.h"

#include "guard.h"
#include "startup.h"

MPI_Count dispatch_size(struct place *place, MPI_Datatype type) {
  MPI_Count size;
  int integers, addresses, types, combiner;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS ||
      PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
    return -1;
  if (combiner == MPI_COMBINER_NAMED) {
    place->named_type = type;
    place->named_bytes = size;
  }
  return size;
}

bool dispatch_select(struct place *place, enum swp_operation operation, int64_t bytes, int64_t most_bytes,
                     int64_t total_bytes, int root, MPI_Op op) {
  const swp_selector *selector = place->selectors->list[operation - FIRST_OPERATION];
  const struct swp_facts facts = {bytes, total_bytes, most_bytes, root, op};
  place->method = place->refused ? NULL : swp_selector_find(selector, &facts);
  place->bytes = bytes;
  if (report_on && place->method == NULL) {
    const char *why = "", *passed = place->refused ? NULL : swp_selector_passed(selector, &facts, &why);
    report_count(operation, NULL, bytes);
    if (passed != NULL)
      report_passed(operation, passed, why, bytes);
  }
  return place->method != NULL;
}

/* The plan for the operation, set to the problem; method NULL: by the table. Errors as of planning and
 * setting.
 */
static int prepare(struct place *place, const struct swp_collective *problem, const char *method,
                   swp_plan **plan) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  if (*plan != NULL)
    return swp_collective_set(*plan, problem);
  hints.flags = SWP_SAME_COMM;
  hints.table = startup_table();
  int error = swp_collective_plan(place->own, problem, method, &hints, plan);
  /* Agreed: from here on no rank dispatches here. Wrong arguments are the application's, and may be right
     next time. */
  place->refused = error != SWP_SUCCESS && error != SWP_ERR_ARGUMENT;
  return error;
}

int dispatch_mpi_error(int error) {
  if (error == SWP_SUCCESS)
    return MPI_SUCCESS;
  if (error == SWP_ERR_MPI && swp_error_mpi() != MPI_SUCCESS)
    return swp_error_mpi();
  return error == SWP_ERR_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

/* Through the error handler of the communicator; gives the code. */
static int hand_over(struct place *place, enum swp_operation operation, int error) {
  int *code = &place->errors[operation - FIRST_OPERATION];
  if (error != SWP_ERR_POISONED)
    *code = dispatch_mpi_error(error);
  PMPI_Comm_call_errhandler(atomic_load(&place->comm), *code);
  return *code;
}

/* Whether the MPI library would do the reduction, as it says itself of no items: then without a message. */
static bool is_valid_reduction(const struct swp_collective *problem, const struct place *place) {
  return problem->op == MPI_OP_NULL ||
         PMPI_Allreduce(MPI_IN_PLACE, NULL, 0, problem->recv_type, problem->op, place->own) == MPI_SUCCESS;
}

/* Does the call by the plan. False, with nothing done, when the MPI library is to have it. */
static bool execute(struct place *place, const struct swp_collective *problem, const char *method,
                    swp_plan **plan, const void *send, void *recv, int *result) {
  int error = prepare(place, problem, method, plan);
  if (error != SWP_SUCCESS && (*plan == NULL || error == SWP_ERR_ARGUMENT || error == SWP_ERR_TOO_LARGE))
    return false;
  if (error == SWP_SUCCESS)
    error = swp_collective_execute(*plan, send, recv);
  if (error == SWP_ERR_ARGUMENT)
    return false;
  *result = error == SWP_SUCCESS ? MPI_SUCCESS : hand_over(place, problem->operation, error);
  return true;
}

/* As dispatch; *by_method tells whether the method did it. */
static bool try_method(struct place *place, const struct swp_collective *problem, const void *send,
                       void *recv, int *result, bool *by_method) {
  int index = problem->operation - FIRST_OPERATION;
  struct trial *trial = NULL;
  enum guard_turn turn = GUARD_GO_ON;
  if (!place_prepare(place) || !is_valid_reduction(problem, place))
    return false;
  if (guard_on)
    turn = guard_next(place, problem->operation, place->method, place->bytes, &trial);
  if (turn == GUARD_DROPPED)
    return false;
  *by_method = turn != GUARD_TIME_VENDOR;
  if (turn == GUARD_GO_ON)
    return execute(place, problem, NULL, &place->plans[index], send, recv, result);
  guard_start(place, trial);
  bool done = execute(place, problem, *by_method ? NULL : "vendor",
                      *by_method ? &place->plans[index] : &place->vendor_plans[index], send, recv, result);
  if (done)
    guard_stop(place, trial, turn);
  return done;
}

bool dispatch(struct place *place, const struct swp_collective *problem, const void *send, void *recv,
              int *result) {
  bool by_method = false;
  bool done = try_method(place, problem, send, recv, result, &by_method);
  const swp_plan *plan = place->plans[problem->operation - FIRST_OPERATION];
  if (report_on) { /* a selected method may have been passed over */
    const char *why = "", *passed = done ? swp_plan_passed(plan, &why) : NULL;
    report_count(problem->operation, done && by_method ? swp_plan_method(plan) : NULL, place->bytes);
    if (passed != NULL)
      report_passed(problem->operation, passed, why, place->bytes);
  }
  return done;
}
