/*
 * MPI_Alltoallv on communicators with the promise swp_fixed_counts. A rank knows only its own counts, by
 * which it cannot choose a method as the others do: they agree at the first call, and rely on the promise
 * from then on.
 */
#include "dispatch.h"
#include "planned.h"
#include "random.h"
#include "report.h"
#include "startup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 160, LISTS = 4 };

struct uneven {
  bool usable; /* on all ranks; else the calls are the MPI library's */
  struct swp_facts facts;
  int64_t bytes[]; /* received from each rank, and then sent */
};

void alltoallv_forget(struct place *place) {
  swp_plan_free(&place->plans[SWP_ALLTOALLV - FIRST_OPERATION]);
  place->errors[SWP_ALLTOALLV - FIRST_OPERATION] = MPI_SUCCESS;
  free(place->uneven);
  place->uneven = NULL;
}

/* A call as the application makes it, with counts of int or large ones. In place, send is as recv. */
struct uneven_call {
  const char *function;
  struct part send, recv;
  const struct swp_collective *problem; /* NULL: a number does not fit an int */
};

/* The bytes of blocks, those too many for an integer as INT64_MAX. False if MPI does not allow an argument.
 */
static bool read_bytes(struct place *place, const struct part *part, int64_t *bytes) {
  const MPI_Count size = part->type == MPI_DATATYPE_NULL ? -1 : dispatch_size(place, part->type);
  if (size < 0 || (part->counts == NULL && part->large_counts == NULL) ||
      (part->displs == NULL && part->large_displs == NULL))
    return false;
  for (int i = 0; i < place->procs; i++) {
    const MPI_Count count = part_count(part, i);
    if (count < 0)
      return false;
    if (__builtin_mul_overflow(count, size, &bytes[i]))
      bytes[i] = INT64_MAX;
  }
  return true;
}

static bool read_call(struct place *place, const struct uneven_call *call, int64_t *bytes) {
  return read_bytes(place, &call->recv, bytes) && read_bytes(place, &call->send, bytes + place->procs);
}

/* False: more than counts of int may be. */
static bool add(const int64_t *bytes, int procs, int64_t *sum) {
  for (int i = 0; i < procs; i++) {
    if (bytes[i] > INT_MAX - *sum)
      return false;
    *sum += bytes[i];
  }
  return true;
}

/* The sum over ranks is 0 if each receives from every other as many bytes as that sends it. */
static uint64_t hash_blocks(const struct place *place, const int64_t *received, const int64_t *sent) {
  uint64_t hash = 0;
  for (int i = 0; i < place->procs; i++)
    hash += swp_message_hash(place->rank, i, sent[i]) - swp_message_hash(i, place->rank, received[i]);
  return hash;
}

/* The first call. Collective; NULL: the place cannot be used. */
static struct uneven *agree(struct place *place, const struct uneven_call *call) {
  enum { WRONG, MOST, TOTAL, GREATEST, SENT = 0, UNMATCHED, SUMS };
  const size_t lists = 2 * (size_t)place->procs;
  struct uneven *made = calloc(1, sizeof *made + lists * sizeof made->bytes[0]);
  int64_t greatest[GREATEST] = {0}, received = 0, sent = 0;
  uint64_t sums[SUMS];
  if (made == NULL)
    startup_abort("no memory for an MPI_Alltoallv");
  if (!place_prepare(place)) {
    free(made);
    return NULL;
  }
  greatest[WRONG] = call->problem == NULL || !read_call(place, call, made->bytes) ||
                    !add(made->bytes, place->procs, &received) ||
                    !add(made->bytes + place->procs, place->procs, &sent);
  for (size_t i = 0; i < lists; i++)
    greatest[MOST] = made->bytes[i] > greatest[MOST] ? made->bytes[i] : greatest[MOST];
  greatest[TOTAL] = sent > received ? sent : received;
  sums[SENT] = (uint64_t)sent;
  sums[UNMATCHED] = hash_blocks(place, made->bytes, made->bytes + place->procs);
  made->usable =
      PMPI_Allreduce(MPI_IN_PLACE, greatest, GREATEST, MPI_INT64_T, MPI_MAX, place->own) == MPI_SUCCESS &&
      PMPI_Allreduce(MPI_IN_PLACE, sums, SUMS, MPI_UINT64_T, MPI_SUM, place->own) == MPI_SUCCESS &&
      greatest[WRONG] == 0 && sums[UNMATCHED] == 0;
  made->facts = (struct swp_facts){.bytes = (int64_t)sums[SENT] / place->procs / place->procs,
                                   .total_bytes = greatest[TOTAL],
                                   .most_bytes = greatest[MOST],
                                   .op = MPI_OP_NULL};
  return place->uneven = made;
}

/* The calls behind it. */
static void check_promise(struct place *place, const struct uneven_call *call) {
  const int procs = place->procs;
  const int64_t *planned = place->uneven->bytes;
  int64_t *bytes = malloc(2 * (size_t)procs * sizeof *bytes);
  char text[TEXT_BYTES];
  if (bytes == NULL)
    startup_abort("no memory for an MPI_Alltoallv");
  if (!read_call(place, call, bytes))
    promise_break(place, call->function, "an argument that MPI does not allow");
  for (int i = 0; i < 2 * procs; i++)
    if (bytes[i] != planned[i]) {
      snprintf(text, sizeof text, "%lld bytes %s rank %d, and %lld in the first call", (long long)bytes[i],
               i < procs ? "from" : "to", i % procs, (long long)planned[i]);
      promise_break(place, call->function, text);
    }
  if (call->problem == NULL) /* counts fit, as they are those of the first call */
    promise_break(place, call->function, "a displacement beyond an int");
  free(bytes);
}

/* Notes that the call was not agreed on, with the mean that this rank receives. */
static void report_why(struct place *place, const struct part *recv, const char *why) {
  int64_t items = 0;
  if (!report_on)
    return;
  for (int i = 0; (recv->counts != NULL || recv->large_counts != NULL) && i < place->procs; i++)
    items += part_count(recv, i);
  const MPI_Count size = recv->type == MPI_DATATYPE_NULL ? 0 : dispatch_size(place, recv->type);
  report_passed(SWP_ALLTOALLV, "a rule", why, items * size / place->procs);
}

/* False: the call is the MPI library's. */
static bool by_method(struct place *place, const struct uneven_call *call, const void *send, void *recv,
                      int *result) {
  const char *why = !place->promised[FIXED_COUNTS] ? "its counts are not promised to stay: swp_fixed_counts"
                                                   : place_refuses(place);
  if (why == NULL && place->uneven != NULL && place->uneven->usable)
    check_promise(place, call);
  else if (why == NULL && place->uneven == NULL && agree(place, call) == NULL)
    why = place_refuses(place);
  if (why == NULL && !place->uneven->usable)
    why = "a rank's first call has blocks over 2 GiB together, a displacement beyond an int, or an argument "
          "that MPI does not allow, or expects other bytes of a rank than that sends it";
  if (why != NULL)
    report_why(place, &call->recv, why);
  return why == NULL && dispatch_chosen(place, SWP_ALLTOALLV, &place->uneven->facts) &&
         dispatch(place, call->problem, send, recv, result);
}

static __attribute__((noinline)) int alltoallv_by_method(const void *send, const int send_counts[],
                                                         const int send_displs[], MPI_Datatype send_type,
                                                         void *recv, const int recv_counts[],
                                                         const int displs[], MPI_Datatype recv_type,
                                                         MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLTOALLV, comm, "Alltoallv");
  const struct swp_collective problem = {.operation = SWP_ALLTOALLV,
                                         .send_type = dispatch_type(send, send_type),
                                         .recv_counts = recv_counts,
                                         .displs = displs,
                                         .recv_type = recv_type,
                                         .op = MPI_OP_NULL,
                                         .send_counts = send_counts,
                                         .send_displs = send_displs};
  struct uneven_call call = {.function = "Alltoallv",
                             .send = {.counts = send_counts, .displs = send_displs, .type = send_type},
                             .recv = {.counts = recv_counts, .displs = displs, .type = recv_type},
                             .problem = &problem};
  int result;
  if (send == MPI_IN_PLACE)
    call.send = call.recv;
  if (place != NULL && by_method(place, &call, send, recv, &result))
    return result;
  return PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, displs, recv_type,
                        comm);
}

EXPORTED int MPI_Alltoallv(const void *send, const int send_counts[], const int send_displs[],
                           MPI_Datatype send_type, void *recv, const int recv_counts[], const int displs[],
                           MPI_Datatype recv_type, MPI_Comm comm) {
  const struct place *place = place_known(comm);
  if (place != NULL && !report_on && !(place_has(place, SWP_ALLTOALLV) && place->promised[FIXED_COUNTS]))
    return PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, displs, recv_type,
                          comm);
  return alltoallv_by_method(send, send_counts, send_displs, send_type, recv, recv_counts, displs, recv_type,
                             comm);
}

#ifdef SWP_HAVE_LARGE_COUNTS

/* Copies lists to ints; false where a number does not fit. */
static bool narrow(const struct part *part, int procs, int *to) {
  bool fits = part->large_counts != NULL && part->large_displs != NULL;
  for (int i = 0; fits && i < procs; i++) {
    const MPI_Count count = part->large_counts[i];
    to[i] = (int)count;
    to[procs + i] = count > 0 ? (int)part->large_displs[i] : 0;
    fits = to[i] == count && (count <= 0 || to[procs + i] == part->large_displs[i]);
  }
  return fits;
}

EXPORTED int MPI_Alltoallv_c(const void *send, const MPI_Count send_counts[], const MPI_Aint send_displs[],
                             MPI_Datatype send_type, void *recv, const MPI_Count recv_counts[],
                             const MPI_Aint displs[], MPI_Datatype recv_type, MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLTOALLV, comm, "Alltoallv_c");
  struct uneven_call call = {
      .function = "Alltoallv_c",
      .send = {.large_counts = send_counts, .large_displs = send_displs, .type = send_type},
      .recv = {.large_counts = recv_counts, .large_displs = displs, .type = recv_type}};
  bool done = false;
  int result;
  if (send == MPI_IN_PLACE)
    call.send = call.recv;
  if (place != NULL) {
    const int procs = place->procs;
    int *lists = malloc(LISTS * (size_t)procs * sizeof *lists), *sent = lists + 2 * (size_t)procs;
    if (lists == NULL)
      startup_abort("no memory for the counts of an MPI_Alltoallv_c");
    const struct swp_collective problem = {.operation = SWP_ALLTOALLV,
                                           .send_type = dispatch_type(send, send_type),
                                           .recv_counts = lists,
                                           .displs = lists + procs,
                                           .recv_type = recv_type,
                                           .op = MPI_OP_NULL,
                                           .send_counts = sent,
                                           .send_displs = sent + procs};
    if (narrow(&call.recv, procs, lists) && narrow(&call.send, procs, sent))
      call.problem = &problem;
    done = by_method(place, &call, send, recv, &result);
    free(lists);
  }
  return done ? result
              : PMPI_Alltoallv_c(send, send_counts, send_displs, send_type, recv, recv_counts, displs,
                                 recv_type, comm);
}

#endif
