/*
 * Collectives by planned exchanges as the application calls them, and the keys of a communicator's info by
 * which it makes promises: `swp_fixed_counts`, that all but persistent ones of neighbours have the same
 * counts in every call, on every rank, `swp_host_buffers` and `swp_started_together`.
 */
#include "dispatch.h"
#include "functions.h"
#include "guard.h"
#include "persistent.h"
#include "report.h"
#include "startup.h"

#include <stdio.h>
#include <string.h>

static const char *const keys[PROMISES] = {[FIXED_COUNTS] = "swp_fixed_counts",
                                           [HOST_BUFFERS] = "swp_host_buffers",
                                           [STARTED_TOGETHER] = "swp_started_together"};

enum { TEXT_BYTES = 160, MESSAGE_BYTES = 400 };

enum { MOST_ROOTS = 8 }; /* for which calls are planned: each plan takes a communicator */

/* ---- Promises ---- */

/* 1 and 0: true and false; -1: not set. */
static int read_key(MPI_Info info, const char *key) {
  char value[MPI_MAX_INFO_VAL] = "";
  int given = 0;
  if (info != MPI_INFO_NULL)
    PMPI_Info_get(info, key, (int)sizeof value - 1, value, &given);
  return given ? strcmp(value, "true") == 0 : -1;
}

/* What is planned is planned again: with other counts, or where nothing could be. */
static void take_promise(struct place *place, enum promise promise, bool made) {
  if (promise == FIXED_COUNTS || (promise == HOST_BUFFERS && place->promised[promise] != made)) {
    planned_forget(place);
    alltoallv_forget(place);
    guard_free(place); /* which knows methods by where plans had their names */
  }
  place->promised[promise] = made;
}

/* The functions that set a communicator's info are collective; all ranks must give the same value. Ranks of
   another job, which may not be preloaded, are asked nothing. */
static void note_info(MPI_Comm comm, MPI_Info info) {
  struct place *place = promises_on ? place_of(comm) : NULL;
  int mine[2 * PROMISES], most[2 * PROMISES];
  char text[TEXT_BYTES];
  if (place == NULL)
    return;
  for (int i = 0; i < PROMISES; i++)
    mine[PROMISES + i] = -(mine[i] = read_key(info, keys[i]));
  if (PMPI_Allreduce(mine, most, 2 * PROMISES, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS)
    return;
  for (int i = 0; i < PROMISES; i++) {
    if (most[i] != -most[PROMISES + i]) {
      snprintf(text, sizeof text, "%s is not the same on all ranks of a communicator", keys[i]);
      startup_abort(text);
    }
    if (most[i] >= 0)
      take_promise(place, (enum promise)i, most[i] == 1);
  }
}

EXPORTED int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  int error = PMPI_Comm_set_info(comm, info);
  if (error == MPI_SUCCESS)
    note_info(comm, info);
  return error;
}

EXPORTED int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *copy) {
  int error = PMPI_Comm_dup_with_info(comm, info, copy);
  if (error == MPI_SUCCESS)
    note_info(*copy, info);
  return error;
}

EXPORTED int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                                   const int destinations[], const int weights[], MPI_Info info, int reorder,
                                   MPI_Comm *graph) {
  int error = PMPI_Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder, graph);
  if (error == MPI_SUCCESS)
    note_info(*graph, info);
  return error;
}

EXPORTED int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int sources[],
                                            const int source_weights[], int out, const int destinations[],
                                            const int destination_weights[], MPI_Info info, int reorder,
                                            MPI_Comm *graph) {
  int error = PMPI_Dist_graph_create_adjacent(comm, in, sources, source_weights, out, destinations,
                                              destination_weights, info, reorder, graph);
  if (error == MPI_SUCCESS)
    note_info(*graph, info);
  return error;
}

/* ---- Plain calls ---- */

_Noreturn void promise_break(const struct place *place, const char *function, const char *text) {
  char message[MESSAGE_BYTES];
  snprintf(message, sizeof message,
           "MPI_%s: rank %d of a communicator with %s=true calls it with %s: omit the key, or "
           "use a communicator for each set of counts",
           function, place->rank, keys[FIXED_COUNTS], text);
  startup_abort(message);
}

/* A call that has begun. */
struct call {
  struct place *place;
  struct planned *planned;
  struct trial *trial;
  enum guard_turn turn;
};

struct place *planned_place(MPI_Comm comm, const char *function) {
  struct place *place = planned_on ? place_of(comm) : NULL;
  if (place == NULL && report_on)
    report_left(function, place_lacks(comm));
  return place;
}

/* What is planned for such calls, from the first on. NULL: the call is left to the MPI library, with the
   reason. All ranks find the same. */
static struct planned *find_plan(struct place *place, const struct planned_call *given, const char **why) {
  char text[TEXT_BYTES];
  int others;
  *why = !place->promised[FIXED_COUNTS] ? "its counts are not promised to stay: swp_fixed_counts"
         : given->root < 0 || given->root >= place->procs ? "an argument that MPI does not allow"
                                                          : NULL;
  if (*why != NULL)
    return NULL;
  struct planned *known = planned_find(place, given, &others);
  if (known == NULL && others == MOST_ROOTS)
    *why = "calls with other roots are planned, and each plan takes a communicator";
  else if (known == NULL)
    planned_add(place, known = planned_make(place, given));
  else if (planned_method(known) != NULL && !planned_set(known, given, text, sizeof text))
    promise_break(place, given->name, text);
  return known;
}

/* Returns whether the call is done by a method; else it is the MPI library's. */
static bool begin(struct call *call, MPI_Comm comm, const struct planned_call *given) {
  const char *why = NULL;
  struct place *place = planned_place(comm, given->name);
  struct planned *planned = place != NULL ? find_plan(place, given, &why) : NULL;
  *call = (struct call){.place = place, .planned = planned, .turn = GUARD_GO_ON};
  if (why != NULL && report_on)
    report_left(given->name, why);
  if (planned == NULL)
    return false;
  const char *method = planned_method(planned);
  if (method != NULL && guard_on && !planned_failed(planned))
    call->turn = guard_next(place, SWP_EXCHANGE, method, planned_bytes(planned), &call->trial);
  if (call->turn == GUARD_TIME_METHOD || call->turn == GUARD_TIME_VENDOR)
    guard_start(place, call->trial);
  if (call->turn == GUARD_TIME_VENDOR || call->turn == GUARD_DROPPED)
    method = NULL;
  if (report_on)
    report_count(SWP_EXCHANGE, method, planned_bytes(planned));
  if (report_on && place_refuses(place) != NULL)
    report_passed(SWP_EXCHANGE, "a rule", place_refuses(place), planned_bytes(planned));
  return method != NULL;
}

/* Runs after the call, whoever did it; returns the application's return code. */
static int end(const struct call *call, int error) {
  if (call->turn == GUARD_TIME_METHOD || call->turn == GUARD_TIME_VENDOR)
    guard_stop(call->place, call->trial, call->turn);
  return error;
}

static int execute(const struct call *call, const struct planned_call *given) {
  int error = planned_execute(call->planned, given->from, given->into);
  if (error != MPI_SUCCESS)
    PMPI_Comm_call_errhandler(atomic_load(&call->place->comm), error);
  return error;
}

/* ---- Persistent calls ---- */

#ifdef SWP_HAVE_PERSISTENT

/* False: the request is left to the MPI library. Collective. */
static bool make_persistent(const void *caller, MPI_Comm comm, const struct planned_call *given,
                            MPI_Request *request, int *result) {
  struct place *place = planned_place(comm, given->name);
  if (place == NULL)
    return false;
  const char *refused = persistent_refuses(caller);
  struct planned *made = planned_make(place, refused != NULL ? NULL : given);
  if (place_refuses(place) == NULL)
    persistent_collect(place, false);
  if (planned_method(made) == NULL) {
    planned_free(made);
    if (place_refuses(place) != NULL)
      refused = place_refuses(place);
    if (report_on)
      report_left(given->name, refused != NULL
                                   ? refused
                                   : "by the rules for exchanges, or for its arguments and neighbours");
    return false;
  }
  planned_keep(made);
  *result = persistent_make(place, made, given->from, given->into, request);
  return true;
}

#endif

/* ---- The functions ---- */

/* Parameters and arguments are in parentheses, without the communicator and the arguments behind it; so are
   the two sides, as parts. */
#define GIVEN(NAME, FUNCTION, ROOT, sent, received)                                                          \
  &(const struct planned_call){.function = FUNCTION,                                                         \
                               .name = #NAME,                                                                \
                               .root = ROOT,                                                                 \
                               .from = send,                                                                 \
                               .into = recv,                                                                 \
                               .send = {LIST sent},                                                          \
                               .recv = {LIST received}}

#define PLAIN(name, function, root, parameters, arguments, sent, received)                                   \
  EXPORTED int MPI_##name(LIST parameters, MPI_Comm comm) {                                                  \
    const struct planned_call *given = GIVEN(name, function, root, sent, received);                          \
    struct call call;                                                                                        \
    if (begin(&call, comm, given))                                                                           \
      return end(&call, execute(&call, given));                                                              \
    return end(&call, PMPI_##name(LIST arguments, comm));                                                    \
  }

#ifdef SWP_HAVE_PERSISTENT
#define PERSISTENT(name, function, parameters, arguments, sent, received)                                    \
  EXPORTED int MPI_##name(LIST parameters, MPI_Comm comm, MPI_Info info, MPI_Request *request) {             \
    int result;                                                                                              \
    if (make_persistent(__builtin_return_address(0), comm, GIVEN(name, function, 0, sent, received),         \
                        request, &result))                                                                   \
      return result;                                                                                         \
    return PMPI_##name(LIST arguments, comm, info, request);                                                 \
  }
#else
#define PERSISTENT(name, function, parameters, arguments, sent, received)
#endif

#define NEIGHBORS(name, suffix, function, ...)                                                               \
  PLAIN(Neighbor_##name##suffix, function, 0, __VA_ARGS__)                                                   \
  PERSISTENT(Neighbor_##name##_init##suffix, function, __VA_ARGS__)

/* The functions with counts and displacements of int, or with large ones, which a struct part has as `Counts`
   and `Displs`. */
#define ALL(suffix, count_t, displ_t, Counts, Displs)                                                        \
  NEIGHBORS(allgather, suffix, NEIGHBOR_ALLGATHER, (SIDES(count_t)), (SIDES_GIVEN),                          \
            (.count = send_count, .type = send_type, .shared = true),                                        \
            (.count = recv_count, .type = recv_type))                                                        \
  NEIGHBORS(allgatherv, suffix, NEIGHBOR_ALLGATHERV, (GATHERED(count_t, displ_t)), (GATHERED_GIVEN),         \
            (.count = send_count, .type = send_type, .shared = true),                                        \
            (.Counts = recv_counts, .Displs = recv_displs, .type = recv_type))                               \
  NEIGHBORS(alltoall, suffix, NEIGHBOR_ALLTOALL, (SIDES(count_t)), (SIDES_GIVEN),                            \
            (.count = send_count, .type = send_type), (.count = recv_count, .type = recv_type))              \
  NEIGHBORS(alltoallv, suffix, NEIGHBOR_ALLTOALLV, (EXCHANGED(count_t, displ_t)), (EXCHANGED_GIVEN),         \
            (.Counts = send_counts, .Displs = send_displs, .type = send_type),                               \
            (.Counts = recv_counts, .Displs = recv_displs, .type = recv_type))                               \
  NEIGHBORS(alltoallw, suffix, NEIGHBOR_ALLTOALLW, (OF_TYPES(count_t, MPI_Aint)), (OF_TYPES_GIVEN),          \
            (.Counts = send_counts, .large_displs = send_displs, .types = send_types),                       \
            (.Counts = recv_counts, .large_displs = recv_displs, .types = recv_types))                       \
  PLAIN(Gatherv##suffix, GATHERV, root, (GATHERED(count_t, displ_t), int root), (GATHERED_GIVEN, root),      \
        (.count = send_count, .type = send_type),                                                            \
        (.Counts = recv_counts, .Displs = recv_displs, .type = recv_type))                                   \
  PLAIN(Scatterv##suffix, SCATTERV, root, (SCATTERED(count_t, displ_t), int root), (SCATTERED_GIVEN, root),  \
        (.Counts = send_counts, .Displs = send_displs, .type = send_type),                                   \
        (.count = recv_count, .type = recv_type))                                                            \
  PLAIN(Alltoallw##suffix, ALLTOALLW, 0, (OF_TYPES(count_t, displ_t)), (OF_TYPES_GIVEN),                     \
        (.Counts = send_counts, .Displs = send_displs, .types = send_types),                                 \
        (.Counts = recv_counts, .Displs = recv_displs, .types = recv_types))

ALL(, int, int, counts, displs)
#ifdef SWP_HAVE_LARGE_COUNTS
ALL(_c, MPI_Count, MPI_Aint, large_counts, large_displs)
#endif
