/*
 * For a preload on two ranks, when MPI fails below it: neighbourhoods by the method `alltoallv`, where each
 * rank exchanges a number with the other, and an allgatherv by `ring`. This program's own functions come
 * before those of MPI. Usage: swp_broken [--fatal]
 *   --fatal   only a persistent request that fails where errors are fatal
 */
#define _GNU_SOURCE
#include "testing.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

enum { CODE = MPI_ERR_NAME }; /* which nothing else returns */

enum { CALLS = 50 }; /* of which the guard would time some */

static bool starts_fail, tests_fail, receives_fail;
static int starts;
static MPI_Request started = MPI_REQUEST_NULL;
static int rank, procs, number, received;

#define NEXT(function, result, parameters)                                                                   \
  result(*function) parameters = NULL;                                                                       \
  *(void **)&function = dlsym(RTLD_NEXT, "P" #function)

__attribute__((visibility("default"))) int PMPI_Ialltoallv(const void *send, const int send_counts[],
                                                           const int send_displs[], MPI_Datatype send_type,
                                                           void *recv, const int recv_counts[],
                                                           const int recv_displs[], MPI_Datatype recv_type,
                                                           MPI_Comm comm, MPI_Request *request) {
  NEXT(MPI_Ialltoallv, int,
       (const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *, MPI_Datatype,
        MPI_Comm, MPI_Request *));
  starts++;
  if (starts_fail)
    return CODE;
  const int error = MPI_Ialltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs,
                                   recv_type, comm, request);
  started = *request;
  return error;
}

__attribute__((visibility("default"))) int PMPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
  NEXT(MPI_Test, int, (MPI_Request *, int *, MPI_Status *));
  if (!tests_fail || *request != started)
    return MPI_Test(request, done, status);
  PMPI_Wait(request, status);
  return CODE;
}

__attribute__((visibility("default"))) int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source,
                                                     int tag, MPI_Comm comm, MPI_Request *request) {
  return receives_fail ? CODE : PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

static MPI_Comm make_graph(void) {
  const int next = (rank + 1) % procs, before = (rank + procs - 1) % procs;
  MPI_Comm graph;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_fixed_counts", "true");
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, info,
                                 0, &graph);
  MPI_Info_free(&info);
  MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
  return graph;
}

static int exchange(MPI_Comm graph) {
  return MPI_Neighbor_alltoall(&number, 1, MPI_INT, &received, 1, MPI_INT, graph);
}

static void later_calls_return_the_same_error(void) {
  MPI_Comm graph = make_graph();
  test_case("calls after one that failed");
  EXPECT_EQUAL(exchange(graph), MPI_SUCCESS);
  EXPECT_EQUAL(received, (rank + procs - 1) % procs);
  starts_fail = true;
  EXPECT_EQUAL(exchange(graph), CODE);
  starts_fail = false;
  const int before = starts;
  for (int i = 0; i < CALLS; i++)
    EXPECT_EQUAL(exchange(graph), CODE);
  EXPECT_EQUAL(starts, before);
  MPI_Comm_free(&graph);
}

#ifdef SWP_HAVE_PERSISTENT
/* Any other call may be the one that finds the failure. */
static void call_others(void) {
  int sent = 5, came = 0, found;
  MPI_Request request;
  EXPECT_EQUAL(MPI_Isend(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Iprobe(0, 7, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Recv(&came, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQUAL(came, sent);
}

/* Returns a request whose second execution has failed. */
static MPI_Request make_failed(MPI_Comm graph) {
  MPI_Request request;
  MPI_Neighbor_alltoall_init(&number, 1, MPI_INT, &received, 1, MPI_INT, graph, MPI_INFO_NULL, &request);
  EXPECT_EQUAL(MPI_Start(&request), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Start(&request), MPI_SUCCESS);
  tests_fail = true;
  call_others();
  tests_fail = false;
  return request;
}

static void a_request_returns_its_own_error(bool several) {
  MPI_Comm graph = make_graph();
  test_case("a persistent request that fails, in a list: %d", several);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, make_failed(graph)};
  MPI_Status statuses[2];
  if (several) {
    EXPECT_EQUAL(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    EXPECT_EQUAL(statuses[0].MPI_ERROR, MPI_SUCCESS);
    EXPECT_EQUAL(statuses[1].MPI_ERROR, CODE);
  } else {
    EXPECT_EQUAL(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), CODE);
  }
  EXPECT_EQUAL(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), MPI_SUCCESS); /* it is inactive */
  EXPECT_EQUAL(MPI_Start(&requests[1]), CODE);
  MPI_Request_free(&requests[1]);
  MPI_Comm_free(&graph);
}

static void a_list_returns_all_errors(bool with_statuses, int failed) {
  const int truncated = 1 - failed;
  MPI_Comm graph = make_graph();
  MPI_Request requests[2], send;
  MPI_Status statuses[2];
  int sent[2] = {1, 2}, came, class;
#ifdef OPEN_MPI
  const bool is_left = false;
#else
  const bool is_left = failed == 1; /* active, as MPICH stops at the first that failed */
#endif
  test_case("two requests that fail, with statuses: %d, the persistent one at %d", with_statuses, failed);
  requests[failed] = make_failed(graph);
  MPI_Irecv(&came, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &requests[truncated]);
  MPI_Isend(sent, 2, MPI_INT, 0, 2, MPI_COMM_SELF, &send);
  EXPECT_EQUAL(MPI_Waitall(2, requests, with_statuses ? statuses : MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
  if (with_statuses) {
    EXPECT_EQUAL(statuses[failed].MPI_ERROR, is_left ? MPI_ERR_PENDING : CODE);
    MPI_Error_class(statuses[truncated].MPI_ERROR, &class);
#ifndef OPEN_MPI /* 5.0.11 does not report it */
    EXPECT_EQUAL(class, MPI_ERR_TRUNCATE);
#endif
  }
  EXPECT_EQUAL(MPI_Wait(&requests[failed], MPI_STATUS_IGNORE), is_left ? CODE : MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Wait(&requests[failed], MPI_STATUS_IGNORE), MPI_SUCCESS); /* no error is left */
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[failed]);
  MPI_Comm_free(&graph);
}

static int handled;

static void count_failures(MPI_Comm *comm, int *error, ...) {
  MPI_Request request;
  (void)comm;
  EXPECT_EQUAL(*error, CODE);
  MPI_Send_init(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_SELF, &request);
  MPI_Request_free(&request); /* which hangs where the preload calls the handler under its lock */
  handled++;
}

/* It may end the job, and another rank may wait for this one until then. */
static void a_handler_is_called_at_once_and_only_once(void) {
  MPI_Comm graph = make_graph();
  MPI_Errhandler handler;
  test_case("a persistent request that fails under a handler of the program's own");
  MPI_Comm_create_errhandler(count_failures, &handler);
  MPI_Comm_set_errhandler(graph, handler);
  MPI_Errhandler_free(&handler);
  MPI_Request request = make_failed(graph);
  EXPECT_EQUAL(handled, 1);
  EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), CODE);
  EXPECT_EQUAL(handled, 1);
  MPI_Request_free(&request);
  MPI_Comm_free(&graph);
}

static void a_fatal_error_ends_the_job(void) {
  MPI_Comm graph = make_graph();
  test_case("a persistent request that fails where errors are fatal");
  MPI_Comm_set_errhandler(graph, MPI_ERRORS_ARE_FATAL);
  make_failed(graph);
  printf("swp_broken: went on\n");
}
#endif

#ifdef SWP_HAVE_LARGE_COUNTS
static long long virtual_pages(void) {
  long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL)
    return 0;
  EXPECT(fscanf(file, "%lld", &pages) == 1, "no number");
  fclose(file);
  return pages;
}

/* Of items that lie so far apart that an int cannot express where the second one goes. */
static void refused_calls_keep_no_memory(void) {
  enum { EXTENT_BYTES = 1 << 28, PAGE_BYTES = 4096 };
  const MPI_Count counts[2] = {1, 1};
  const MPI_Aint near[2] = {0, 1}, far[2] = {0, (MPI_Aint)INT_MAX + 1};
  char here = 0, all[2];
  MPI_Comm comm;
  MPI_Datatype type;
  test_case("an allgatherv after one that failed");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Type_create_resized(MPI_CHAR, 0, EXTENT_BYTES, &type);
  MPI_Type_commit(&type);
  EXPECT_EQUAL(MPI_Allgatherv_c(&here, 1, MPI_CHAR, all, counts, near, MPI_CHAR, comm), MPI_SUCCESS);
  receives_fail = true;
  EXPECT_EQUAL(MPI_Allgatherv_c(&here, 1, MPI_CHAR, all, counts, far, type, comm), CODE);
  receives_fail = false;
  const long long before = virtual_pages();
  for (int i = 0; i < CALLS; i++)
    EXPECT_EQUAL(MPI_Allgatherv_c(&here, 1, MPI_CHAR, all, counts, far, type, comm), CODE);
  const long long grown = virtual_pages() - before;
  EXPECT(grown < EXTENT_BYTES / PAGE_BYTES, "%lld pages are kept", grown);
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
}
#endif

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_broken");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  number = rank;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH calls it for a list */
#ifdef SWP_HAVE_PERSISTENT
  if (argc > 1) {
    a_fatal_error_ends_the_job();
    return test_end();
  }
#endif
  later_calls_return_the_same_error();
#ifdef SWP_HAVE_PERSISTENT
  a_request_returns_its_own_error(false);
  a_request_returns_its_own_error(true);
  for (int failed = 0; failed < 2; failed++) {
    a_list_returns_all_errors(false, failed);
    a_list_returns_all_errors(true, failed);
  }
  a_handler_is_called_at_once_and_only_once();
#endif
#ifdef SWP_HAVE_LARGE_COUNTS
  refused_calls_keep_no_memory();
#endif
  return test_end();
}
