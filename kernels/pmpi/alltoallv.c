/*
 * MPI_Alltoallv on communicators with the promise swp_fixed_counts. A rank knows only its own counts, by
 * which it cannot choose a method as the others do: they agree at the first call, and rely on the promise
 * from then on.
 */
#include "dispatch.h"
#include "neighborhood.h"
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
  free(place->uneven);
  place->uneven = NULL;
}

/* The bytes of blocks. False if an argument is wrong, or a side too large for counts of int. */
static bool read_bytes(struct place *place, const int *counts, const int *displs, MPI_Datatype type,
                       int64_t *bytes, int64_t *total) {
  const MPI_Count size = type == MPI_DATATYPE_NULL ? -1 : dispatch_size(place, type);
  *total = 0;
  if (counts == NULL || displs == NULL || size < 0)
    return false;
  for (int i = 0; i < place->procs; i++) {
    if (counts[i] < 0 || (size > 0 && counts[i] > (INT_MAX - *total) / size))
      return false;
    bytes[i] = counts[i] * size;
    *total += bytes[i];
  }
  return true;
}

static bool read_call(struct place *place, const struct swp_collective *problem, int64_t *bytes,
                      int64_t *received, int64_t *sent) {
  if (!read_bytes(place, problem->recv_counts, problem->displs, problem->recv_type, bytes, received))
    return false;
  if (problem->send_type != MPI_DATATYPE_NULL)
    return read_bytes(place, problem->send_counts, problem->send_displs, problem->send_type,
                      bytes + place->procs, sent);
  memcpy(bytes + place->procs, bytes, (size_t)place->procs * sizeof *bytes); /* in place */
  *sent = *received;
  return true;
}

/* The first call. Collective; NULL: the place cannot be used. */
static struct uneven *agree(struct place *place, const struct swp_collective *problem) {
  enum { WRONG, MOST, TOTAL, GREATEST, SENT = 0, LACKING, SUMS };
  const size_t lists = 2 * (size_t)place->procs;
  struct uneven *made = calloc(1, sizeof *made + lists * sizeof made->bytes[0]);
  int64_t greatest[GREATEST] = {0}, sums[SUMS], received = 0, sent = 0;
  if (made == NULL)
    startup_abort("no memory for an MPI_Alltoallv");
  if (!place_prepare(place)) {
    free(made);
    return NULL;
  }
  greatest[WRONG] = !read_call(place, problem, made->bytes, &received, &sent);
  for (size_t i = 0; i < lists; i++)
    greatest[MOST] = made->bytes[i] > greatest[MOST] ? made->bytes[i] : greatest[MOST];
  greatest[TOTAL] = sent > received ? sent : received;
  sums[SENT] = sent;
  sums[LACKING] = sent - received;
  made->usable =
      PMPI_Allreduce(MPI_IN_PLACE, greatest, GREATEST, MPI_INT64_T, MPI_MAX, place->own) == MPI_SUCCESS &&
      PMPI_Allreduce(MPI_IN_PLACE, sums, SUMS, MPI_INT64_T, MPI_SUM, place->own) == MPI_SUCCESS &&
      greatest[WRONG] == 0 && sums[LACKING] == 0;
  made->facts = (struct swp_facts){.bytes = sums[SENT] / place->procs / place->procs,
                                   .total_bytes = greatest[TOTAL],
                                   .most_bytes = greatest[MOST],
                                   .op = MPI_OP_NULL};
  return place->uneven = made;
}

/* The calls behind it. */
static void check_promise(struct place *place, const struct swp_collective *problem) {
  const int procs = place->procs;
  const int64_t *planned = place->uneven->bytes;
  int64_t received, sent, *bytes = malloc(2 * (size_t)procs * sizeof *bytes);
  char text[TEXT_BYTES] = "an argument that MPI does not allow, or blocks over 2 GiB";
  if (bytes == NULL)
    startup_abort("no memory for an MPI_Alltoallv");
  const bool readable = read_call(place, problem, bytes, &received, &sent);
  for (int i = 0; readable && i < 2 * procs; i++)
    if (bytes[i] != planned[i]) {
      snprintf(text, sizeof text, "%lld bytes %s rank %d, and %lld in the first call", (long long)bytes[i],
               i < procs ? "from" : "to", i % procs, (long long)planned[i]);
      promise_break(place, "Alltoallv", text);
    }
  if (!readable)
    promise_break(place, "Alltoallv", text);
  free(bytes);
}

/* The mean that this rank receives, for the report of a call that was not agreed on. */
static int64_t mean_bytes(struct place *place, const struct swp_collective *problem) {
  const MPI_Count size =
      problem->recv_type == MPI_DATATYPE_NULL ? 0 : dispatch_size(place, problem->recv_type);
  int64_t items = 0;
  for (int i = 0; problem->recv_counts != NULL && i < place->procs; i++)
    items += problem->recv_counts[i];
  return items * size / place->procs;
}

/* False: the call is the MPI library's. */
static bool by_method(struct place *place, const struct swp_collective *problem, const void *send, void *recv,
                      int *result) {
  if (!place->promised[FIXED_COUNTS]) {
    if (report_on)
      report_passed(SWP_ALLTOALLV, "a rule", "its counts are not promised to stay: swp_fixed_counts",
                    mean_bytes(place, problem));
    return false;
  }
  if (place->uneven == NULL) {
    if (agree(place, problem) == NULL)
      return false;
  } else if (place->uneven->usable) {
    check_promise(place, problem);
  }
  return place->uneven->usable && dispatch_chosen(place, SWP_ALLTOALLV, &place->uneven->facts) &&
         dispatch(place, problem, send, recv, result);
}

static __attribute__((noinline)) int alltoallv_by_method(const void *send, const int send_counts[],
                                                         const int send_displs[], MPI_Datatype send_type,
                                                         void *recv, const int recv_counts[],
                                                         const int displs[], MPI_Datatype recv_type,
                                                         MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLTOALLV, comm);
  const struct swp_collective problem = {.operation = SWP_ALLTOALLV,
                                         .send_type = dispatch_type(send, send_type),
                                         .recv_counts = recv_counts,
                                         .displs = displs,
                                         .recv_type = recv_type,
                                         .op = MPI_OP_NULL,
                                         .send_counts = send_counts,
                                         .send_displs = send_displs};
  int result;
  if (place != NULL && by_method(place, &problem, send, recv, &result))
    return result;
  return PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, displs, recv_type,
                        comm);
}

EXPORTED int MPI_Alltoallv(const void *send, const int send_counts[], const int send_displs[],
                           MPI_Datatype send_type, void *recv, const int recv_counts[], const int displs[],
                           MPI_Datatype recv_type, MPI_Comm comm) {
  const struct place *place = place_known(comm);
  if (place != NULL && (!place_has(place, SWP_ALLTOALLV) || !(place->promised[FIXED_COUNTS] || report_on)))
    return PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, displs, recv_type,
                          comm);
  return alltoallv_by_method(send, send_counts, send_displs, send_type, recv, recv_counts, displs, recv_type,
                             comm);
}

#ifdef SWP_HAVE_LARGE_COUNTS

/* Copies lists to ints; false where a number does not fit, which is no call by a method. */
static bool narrow(const MPI_Count *counts, const MPI_Aint *displs, int procs, int *to) {
  bool fits = counts != NULL && displs != NULL;
  for (int i = 0; fits && i < procs; i++) {
    to[i] = (int)counts[i];
    to[procs + i] = counts[i] > 0 ? (int)displs[i] : 0;
    fits = to[i] == counts[i] && (counts[i] <= 0 || to[procs + i] == displs[i]);
  }
  return fits;
}

EXPORTED int MPI_Alltoallv_c(const void *send, const MPI_Count send_counts[], const MPI_Aint send_displs[],
                             MPI_Datatype send_type, void *recv, const MPI_Count recv_counts[],
                             const MPI_Aint displs[], MPI_Datatype recv_type, MPI_Comm comm) {
  struct place *place = place_for(SWP_ALLTOALLV, comm);
  struct swp_collective problem = {.operation = SWP_ALLTOALLV,
                                   .send_type = dispatch_type(send, send_type),
                                   .recv_type = recv_type,
                                   .op = MPI_OP_NULL};
  bool done = false;
  int result;
  if (place != NULL) {
    const int procs = place->procs;
    int *lists = malloc(LISTS * (size_t)procs * sizeof *lists), *sent = lists + 2 * (size_t)procs;
    if (lists == NULL)
      startup_abort("no memory for the counts of an MPI_Alltoallv_c");
    if (narrow(recv_counts, displs, procs, lists))
      problem.recv_counts = lists, problem.displs = lists + procs;
    if (problem.send_type != MPI_DATATYPE_NULL && narrow(send_counts, send_displs, procs, sent))
      problem.send_counts = sent, problem.send_displs = sent + procs;
    done = by_method(place, &problem, send, recv, &result);
    free(lists);
  }
  return done ? result
              : PMPI_Alltoallv_c(send, send_counts, send_displs, send_type, recv, recv_counts, displs,
                                 recv_type, comm);
}

#endif
