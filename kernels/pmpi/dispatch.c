/* From a call of the application to a method. */
#include "dispatch.h"

#include "guard.h"
#include "startup.h"
#include "types.h"

#include <limits.h>

MPI_Count dispatch_size(struct place *place, MPI_Datatype type) {
  MPI_Count size;
  bool named;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || !types_named(type, &named))
    return -1;
  if (named) {
    place->named_type = type;
    place->named_bytes = size;
  }
  return size;
}

/* Reports a call by a method, NULL: the MPI library's; and a rule that was passed over. */
static void report(enum swp_operation operation, int64_t bytes, const char *method, const char *passed,
                   const char *why) {
  if (!report_on)
    return;
  report_count(operation, method, bytes);
  if (passed != NULL)
    report_passed(operation, passed, why, bytes);
}

bool dispatch_chosen(struct place *place, enum swp_operation operation, const struct swp_facts *facts) {
  const struct rules *rules = &place->selectors->list[operation - FIRST_OPERATION];
  struct swp_choice *choice = &place->choice;
  place->bytes = facts->bytes;
  const bool asks = place_asks(rules, place->bytes);
  if (!report_on && !asks)
    return false;
  const char *why = asks ? place_refuses(place) : NULL; /* else a promise would change nothing */
  *choice = (struct swp_choice){.method = NULL, .passed = why != NULL ? "a rule" : NULL, .why = why};
  if (why == NULL)
    swp_selector_choose(rules->selector, facts, choice);
  if (choice->method == NULL)
    report(operation, place->bytes, NULL, choice->passed, choice->why);
  return choice->method != NULL;
}

bool dispatch_wanted(struct place *place, enum swp_operation operation, int64_t most, int64_t total,
                     MPI_Datatype type, int root, MPI_Op op) {
  if (total < 0 || (unsigned)root >= (unsigned)place->procs || type == MPI_DATATYPE_NULL ||
      (place_reduces(operation) && op == MPI_OP_NULL))
    return dispatch_invalid(operation);
  MPI_Count size = type == place->named_type ? place->named_bytes : dispatch_size(place, type);
  const int64_t items = operation == SWP_ALLGATHERV ? total : most;
  if (size < 0 || (size > 0 && items > INT_MAX / size))
    return dispatch_invalid(operation);
  if (size == 0 || items == 0) { /* of which some ranks may have more than an int can express */
    report(operation, 0, NULL, NULL, NULL);
    return false;
  }
  const struct swp_facts facts = {place_bytes(place, operation, items, size), total * size, most * size, root,
                                  op};
  return dispatch_chosen(place, operation, &facts);
}

int dispatch_mpi_error(int error) {
  if (error == SWP_SUCCESS)
    return MPI_SUCCESS;
  if (error == SWP_ERR_MPI && swp_error_mpi() != MPI_SUCCESS)
    return swp_error_mpi();
  return error == SWP_ERR_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

/* Calls the error handler of the communicator; returns the code, which later calls return. */
static int hand_over(struct place *place, enum swp_operation operation, int code) {
  place->errors[operation - FIRST_OPERATION] = code;
  PMPI_Comm_call_errhandler(atomic_load(&place->comm), code);
  return code;
}

/* Returns whether the MPI library would do the reduction: it is asked with no items, which sends no
   message. */
static bool is_valid_reduction(const struct swp_collective *problem, const struct place *place) {
  return problem->op == MPI_OP_NULL ||
         PMPI_Allreduce(MPI_IN_PLACE, NULL, 0, problem->recv_type, problem->op, place->own) == MPI_SUCCESS;
}

/* How a call is done: by the choice for it, or by the MPI library, as the guard decides. */
enum by { BY_METHOD, BY_VENDOR };

/* Sets the plan to the problem, or makes it. Errors as for planning and setting. */
static int prepare(struct place *place, const struct swp_collective *problem, enum by by, swp_plan **plan) {
  const swp_selector *selector = place->selectors->list[problem->operation - FIRST_OPERATION].selector;
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.flags = SWP_SAME_COMM;
  if (*plan != NULL)
    return by == BY_METHOD ? swp_selector_set(*plan, problem, &place->choice)
                           : swp_collective_set(*plan, problem);
  int error = by == BY_METHOD ? swp_selector_plan(place->own, problem, selector, &place->choice, &hints, plan)
                              : swp_collective_plan(place->own, problem, "vendor", &hints, plan);
  /* Agreed: from here on no rank dispatches here. Wrong arguments are the application's, and may be right
     next time. */
  place->refused = error != SWP_SUCCESS && error != SWP_ERR_ARGUMENT;
  return error;
}

/* Does the call. False, with nothing done, if it is left to the MPI library. */
static bool execute(struct place *place, const struct swp_collective *problem, enum by by, const void *send,
                    void *recv, int *result) {
  swp_plan **plan =
      &(by == BY_METHOD ? place->plans : place->vendor_plans)[problem->operation - FIRST_OPERATION];
  int error = prepare(place, problem, by, plan);
  if (error != SWP_SUCCESS && (*plan == NULL || error == SWP_ERR_ARGUMENT || error == SWP_ERR_TOO_LARGE))
    return false;
  if (error == SWP_SUCCESS)
    error = swp_collective_execute(*plan, send, recv);
  if (error == SWP_ERR_ARGUMENT)
    return false;
  *result =
      error == SWP_SUCCESS ? MPI_SUCCESS : hand_over(place, problem->operation, dispatch_mpi_error(error));
  return true;
}

/* The same, as the guard decides; sets *by to how it was done. */
static bool execute_guarded(struct place *place, const struct swp_collective *problem, const void *send,
                            void *recv, int *result, enum by *by) {
  struct trial *trial;
  enum guard_turn turn = guard_next(place, problem->operation, place->choice.method, place->bytes, &trial);
  const bool is_timed = turn == GUARD_TIME_METHOD || turn == GUARD_TIME_VENDOR;
  if (turn == GUARD_DROPPED)
    return false;
  *by = turn == GUARD_TIME_VENDOR ? BY_VENDOR : BY_METHOD;
  swp_plan **vendor = &place->vendor_plans[problem->operation - FIRST_OPERATION];
  if (*by == BY_VENDOR && *vendor == NULL && prepare(place, problem, *by, vendor) != SWP_SUCCESS)
    return false; /* planned before, as the method is: only executions are timed */
  if (is_timed)
    guard_start(place, trial);
  bool done = execute(place, problem, *by, send, recv, result);
  if (is_timed && done)
    guard_stop(place, trial, turn);
  return done;
}

bool dispatch(struct place *place, const struct swp_collective *problem, const void *send, void *recv,
              int *result) {
  enum by by = BY_METHOD;
  const int failed = place->errors[problem->operation - FIRST_OPERATION];
  place->refused_at_once = failed != MPI_SUCCESS;
  bool done = true;
  if (failed != MPI_SUCCESS)
    *result = hand_over(place, problem->operation, failed);
  else
    done = place_prepare(place) && is_valid_reduction(problem, place) &&
           (guard_on && problem->operation != SWP_ALLTOALLV
                ? execute_guarded(place, problem, send, recv, result, &by)
                : execute(place, problem, by, send, recv, result));
  const swp_plan *plan = place->plans[problem->operation - FIRST_OPERATION];
  const char *why = place_refuses(place), *passed = "a rule";
  if (why == NULL)
    passed = done ? swp_plan_passed(plan, &why) : NULL;
  report(problem->operation, place->bytes, done && by == BY_METHOD ? swp_plan_method(plan) : NULL, passed,
         why);
  return done;
}
