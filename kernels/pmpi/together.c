/*
 * Persistent collectives on communicators with the promise swp_started_together. Methods wait for other ranks
 * while they execute. In MPI_Start that would be wrong where another rank needs a message of this one before
 * it starts, and in MPI_Wait where it needs one before it waits. The promise excludes the first: so each
 * start makes the plain call. All others but those of neighbours are the MPI library's.
 */
#include "dispatch.h"
#include "functions.h"
#include "persistent.h"
#include "predefined.h"
#include "startup.h"

#ifdef SWP_HAVE_PERSISTENT

enum { ANY_ITEMS = -1 }; /* a rank alone does not know the bytes that rules refer to */

/* Why starts cannot repeat the plain call; NULL: they can, as far as this rank knows. */
static const char *why_not(struct place *place, enum swp_operation operation, int64_t items,
                           MPI_Datatype type, const struct repeated_call *call) {
  if ((operation == SWP_ALLTOALLV || operation == SWP_EXCHANGE) && !place->promised[FIXED_COUNTS])
    return "its counts are not promised to stay: swp_fixed_counts";
  if (call->op != MPI_OP_NULL && !swp_is_predefined(call->op))
    return "its operation is the program's own, which may be freed before the request";
  if (type == MPI_DATATYPE_NULL || call->root < 0 || call->root >= place->procs ||
      (items != ANY_ITEMS && !place_asks(&place->selectors->list[operation - FIRST_OPERATION],
                                         place_bytes(place, operation, items, dispatch_size(place, type)))))
    return "by the rules for its bytes, or for an argument that MPI does not allow";
  return NULL;
}

/* False: the request is the MPI library's. Collective where the promise is made. */
static bool make(const void *caller, const char *function, enum swp_operation operation, int64_t items,
                 MPI_Datatype type, const struct repeated_call *call, MPI_Request *request, int *result) {
  struct place *place = operation == SWP_EXCHANGE ? planned_place(call->comm, function)
                                                  : place_for(operation, call->comm, function);
  if (place == NULL)
    return false;
  const char *why = "persistent; ranks are not promised to start it together: swp_started_together";
  if (place->promised[STARTED_TOGETHER]) {
    why = persistent_refuses(caller);
    if (why == NULL)
      why = why_not(place, operation, items, type, call);
    int fits = why == NULL;
    PMPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, call->comm);
    if (why == NULL)
      why = !fits                  ? "for a reason of another rank"
            : place_prepare(place) ? NULL /* all ranks call it, or none does */
                                   : place_refuses(place);
  }
  if (why == NULL)
    *result = persistent_repeat(place, call, request);
  else if (report_on)
    report_left(function, why);
  return why == NULL;
}

static bool is_root(MPI_Comm comm, int root) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank == root;
}

#define AT_ROOT(there, elsewhere) (is_root(comm, root) ? there : elsewhere)

/* What a call is given, side by side, and the arguments that repeat it. */
#define KEPT(sent, received)                                                                                 \
  .from = send, .into = recv, .send = {LIST sent}, .recv = {LIST received}, .op = MPI_OP_NULL
#define BLOCKS(side, its_type) (.count = side##_count, .type = its_type)
#define BLOCKS_TAKEN(side) call->side.count, call->side.type
#define LISTS(side, Counts, Displs, its_type)                                                                \
  (.Counts = side##_counts, .Displs = side##_displs, .type = its_type)
#define LISTS_TAKEN(side, Counts, Displs) call->side.Counts, call->side.Displs, call->side.type
#define SENT_TYPE dispatch_type(send, send_type)
#define RECEIVED_TYPE dispatch_type(recv, recv_type)
#define SIDES_KEPT KEPT(BLOCKS(send, SENT_TYPE), BLOCKS(recv, RECEIVED_TYPE))
#define SIDES_TAKEN call->from, BLOCKS_TAKEN(send), call->into, BLOCKS_TAKEN(recv)
#define VECTOR_KEPT                                                                                          \
  .from = send, .send = {.type = MPI_DATATYPE_NULL}, .into = recv, .recv = {.count = count, .type = type},   \
  .op = op
#define VECTOR_TAKEN call->from, call->into, call->recv.count, call->recv.type, call->op

/* In place, MPI ignores the lists of what is sent, which may be anything. */
#define SENT_LIST(list) (send == MPI_IN_PLACE ? recv_##list : send_##list)

/* Parameters and arguments are in parentheses, without the communicator and the arguments behind it; so are
   what is kept and the arguments taken from it. Then come items and type of the largest block. */
#define REPEATED(name, suffix, OPERATION, parameters, arguments, items, type, kept, taken)                   \
  static int repeat_##name##suffix(const struct repeated_call *call) {                                       \
    return MPI_##name##suffix(LIST taken, call->comm);                                                       \
  }                                                                                                          \
  EXPORTED int MPI_##name##_init##suffix(LIST parameters, MPI_Comm comm, MPI_Info info,                      \
                                         MPI_Request *request) {                                             \
    const struct repeated_call call = {.make = repeat_##name##suffix, .comm = comm, LIST kept};              \
    int result;                                                                                              \
    if (make(__builtin_return_address(0), #name "_init" #suffix, OPERATION, items, type, &call, request,     \
             &result))                                                                                       \
      return result;                                                                                         \
    return PMPI_##name##_init##suffix(LIST arguments, comm, info, request);                                  \
  }

/* The functions with counts and displacements of int, or with large ones, which a struct part has as `Counts`
   and `Displs`. */
#define ALL(suffix, count_t, displ_t, Counts, Displs)                                                        \
  REPEATED(Bcast, suffix, SWP_BCAST, (void *buffer, count_t count, MPI_Datatype type, int root),             \
           (buffer, count, type, root), count, type,                                                         \
           (.send = {.type = MPI_DATATYPE_NULL}, .into = buffer, .recv = {.count = count, .type = type},     \
            .op = MPI_OP_NULL, .root = root),                                                                \
           (call->into, BLOCKS_TAKEN(recv), call->root))                                                     \
  REPEATED(                                                                                                  \
      Gather, suffix, SWP_GATHER, (SIDES(count_t), int root), (SIDES_GIVEN, root),                           \
      AT_ROOT(recv_count, send_count), AT_ROOT(recv_type, send_type),                                        \
      (KEPT(BLOCKS(send, SENT_TYPE), BLOCKS(recv, AT_ROOT(recv_type, MPI_DATATYPE_NULL))), .root = root),    \
      (SIDES_TAKEN, call->root))                                                                             \
  REPEATED(Scatter, suffix, SWP_SCATTER, (SIDES(count_t), int root), (SIDES_GIVEN, root),                    \
           AT_ROOT(send_count, recv_count), AT_ROOT(send_type, recv_type),                                   \
           (KEPT(BLOCKS(send, AT_ROOT(send_type, MPI_DATATYPE_NULL)), BLOCKS(recv, RECEIVED_TYPE)),          \
            .root = root),                                                                                   \
           (SIDES_TAKEN, call->root))                                                                        \
  REPEATED(Reduce, suffix, SWP_REDUCE, (VECTOR(count_t), int root), (VECTOR_GIVEN, root), count, type,       \
           (VECTOR_KEPT, .root = root), (VECTOR_TAKEN, call->root))                                          \
  REPEATED(Allreduce, suffix, SWP_ALLREDUCE, (VECTOR(count_t)), (VECTOR_GIVEN), count, type, (VECTOR_KEPT),  \
           (VECTOR_TAKEN))                                                                                   \
  REPEATED(Allgather, suffix, SWP_ALLGATHER, (SIDES(count_t)), (SIDES_GIVEN), recv_count, recv_type,         \
           (SIDES_KEPT), (SIDES_TAKEN))                                                                      \
  REPEATED(Allgatherv, suffix, SWP_ALLGATHERV, (GATHERED(count_t, displ_t)), (GATHERED_GIVEN), ANY_ITEMS,    \
           recv_type, (KEPT(BLOCKS(send, SENT_TYPE), LISTS(recv, Counts, Displs, recv_type))),               \
           (call->from, BLOCKS_TAKEN(send), call->into, LISTS_TAKEN(recv, Counts, Displs)))                  \
  REPEATED(Alltoall, suffix, SWP_ALLTOALL, (SIDES(count_t)), (SIDES_GIVEN), recv_count, recv_type,           \
           (SIDES_KEPT), (SIDES_TAKEN))                                                                      \
  REPEATED(Alltoallv, suffix, SWP_ALLTOALLV, (EXCHANGED(count_t, displ_t)), (EXCHANGED_GIVEN), ANY_ITEMS,    \
           recv_type,                                                                                        \
           (KEPT(LISTS(send, Counts, Displs, SENT_TYPE), LISTS(recv, Counts, Displs, recv_type))),           \
           (call->from, LISTS_TAKEN(send, Counts, Displs), call->into, LISTS_TAKEN(recv, Counts, Displs)))   \
  REPEATED(Reduce_scatter_block, suffix, SWP_REDUCE_SCATTER_BLOCK, (VECTOR(count_t)), (VECTOR_GIVEN), count, \
           type, (VECTOR_KEPT), (VECTOR_TAKEN))                                                              \
  REPEATED(                                                                                                  \
      Gatherv, suffix, SWP_EXCHANGE, (GATHERED(count_t, displ_t), int root), (GATHERED_GIVEN, root),         \
      ANY_ITEMS, AT_ROOT(recv_type, send_type),                                                              \
      (KEPT(BLOCKS(send, SENT_TYPE), LISTS(recv, Counts, Displs, AT_ROOT(recv_type, MPI_DATATYPE_NULL))),    \
       .root = root),                                                                                        \
      (call->from, BLOCKS_TAKEN(send), call->into, LISTS_TAKEN(recv, Counts, Displs), call->root))           \
  REPEATED(Scatterv, suffix, SWP_EXCHANGE, (SCATTERED(count_t, displ_t), int root), (SCATTERED_GIVEN, root), \
           ANY_ITEMS, AT_ROOT(send_type, recv_type),                                                         \
           (KEPT(LISTS(send, Counts, Displs, AT_ROOT(send_type, MPI_DATATYPE_NULL)),                         \
                 BLOCKS(recv, RECEIVED_TYPE)),                                                               \
            .root = root),                                                                                   \
           (call->from, LISTS_TAKEN(send, Counts, Displs), call->into, BLOCKS_TAKEN(recv), call->root))      \
  REPEATED(Alltoallw, suffix, SWP_EXCHANGE, (OF_TYPES(count_t, displ_t)), (OF_TYPES_GIVEN), ANY_ITEMS,       \
           MPI_BYTE,                                                                                         \
           (KEPT((.Counts = SENT_LIST(counts), .Displs = SENT_LIST(displs), .types = SENT_LIST(types)),      \
                 (.Counts = recv_counts, .Displs = recv_displs, .types = recv_types))),                      \
           (call->from, call->send.Counts, call->send.Displs, call->send.types, call->into,                  \
            call->recv.Counts, call->recv.Displs, call->recv.types))

ALL(, int, int, counts, displs)
#ifdef SWP_HAVE_LARGE_COUNTS
ALL(_c, MPI_Count, MPI_Aint, large_counts, large_displs)
#endif

static int repeat_Barrier(const struct repeated_call *call) {
  return MPI_Barrier(call->comm);
}

EXPORTED int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  const struct repeated_call call = {.make = repeat_Barrier,
                                     .send = {.type = MPI_DATATYPE_NULL},
                                     .recv = {.type = MPI_DATATYPE_NULL},
                                     .op = MPI_OP_NULL,
                                     .comm = comm};
  int result;
  if (make(__builtin_return_address(0), "Barrier_init", SWP_BARRIER, 1, MPI_BYTE, &call, request, &result))
    return result;
  return PMPI_Barrier_init(comm, info, request);
}

#endif
