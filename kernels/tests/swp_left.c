/*
 * A program that knows nothing of Switchpoint makes persistent collectives, in orders that MPI allows: one
 * completes on a rank while another rank has only started it and waits for a message, and it starts on a rank
 * while another rank waits for a message before it starts. A preload that executed them in MPI_Wait, or in
 * MPI_Start, would hang. Usage: swp_left [--all | --old COUNT | --ahead]
 *   --all    collectives of every other kind instead, each once
 *   --old    exchanges of neighbours instead, one of which lives while so many others are made and freed
 *   --ahead  exchanges from rank 0 to rank 1 instead, which starts none before a message comes from another
 *            thread of rank 0
 */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, procs;

/* ---- Every kind ---- */

static void check_plain(int *send, int *recv, const int *counts, const int *displs, MPI_Comm comm) {
  EXPECT_EQUAL(MPI_Barrier(comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Bcast(send, 1, MPI_INT, 0, comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Allgatherv(send, 1, MPI_INT, recv, counts, displs, MPI_INT, comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Alltoallv(send, counts, displs, MPI_INT, recv, counts, displs, MPI_INT, comm),
               MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Gatherv(send, 1, MPI_INT, recv, counts, displs, MPI_INT, 0, comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Scatterv(send, counts, displs, MPI_INT, recv, 1, MPI_INT, 0, comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Reduce_scatter(send, recv, counts, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Exscan(send, recv, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Scan(send, recv, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  EXPECT_EQUAL(recv[0], 7 * (rank + 1));
}

static void check_others(int *send, int *recv, const int *counts, const int *places, MPI_Comm comm) {
  MPI_Datatype *types = test_allocate((size_t)procs * sizeof(MPI_Datatype));
  MPI_Request requests[4];
  MPI_Comm ring;
  const int periodic = 1;
  for (int i = 0; i < procs; i++)
    types[i] = MPI_INT;
  EXPECT_EQUAL(MPI_Alltoallw(send, counts, places, types, recv, counts, places, types, comm), MPI_SUCCESS);
  MPI_Cart_create(comm, 1, &procs, &periodic, 0, &ring);
  EXPECT_EQUAL(MPI_Neighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, ring), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Ineighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, ring, &requests[0]), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Ibarrier(comm, &requests[1]), MPI_SUCCESS);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_EQUAL(MPI_Ialltoall(send, 1, MPI_INT, recv, 1, MPI_INT, comm, &requests[0]), MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  EXPECT_EQUAL(MPI_Iallreduce(send, recv, 1, MPI_INT, MPI_SUM, comm, &requests[0]), MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  EXPECT_EQUAL(recv[0], 7 * procs);
#ifdef SWP_HAVE_PERSISTENT
  EXPECT_EQUAL(MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[0]), MPI_SUCCESS);
  EXPECT_EQUAL(
      MPI_Neighbor_alltoall_init(send, 1, MPI_INT, recv, 1, MPI_INT, ring, MPI_INFO_NULL, &requests[1]),
      MPI_SUCCESS);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
#endif
#ifdef SWP_HAVE_LARGE_COUNTS
  EXPECT_EQUAL(MPI_Scan_c(send, recv, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
#endif
  MPI_Comm_free(&ring);
  free(types);
}

static void check_all(void) {
  int *numbers = test_allocate(5 * ((size_t)procs + 2) * sizeof(int)), *recv = numbers + procs + 2,
      *counts = recv + procs + 2, *displs = counts + procs, *places = displs + procs;
  test_case("every kind");
  for (int i = 0; i < procs + 2; i++)
    numbers[i] = 7;
  for (int i = 0; i < procs; i++) {
    counts[i] = 1;
    displs[i] = i;
    places[i] = i * (int)sizeof(int);
  }
  check_plain(numbers, recv, counts, displs, MPI_COMM_WORLD);
  check_others(numbers, recv, counts, places, MPI_COMM_WORLD);
  free(numbers);
}

/* ---- Persistent calls ---- */

#ifdef SWP_HAVE_PERSISTENT

enum { ROUNDS = 3, FUNCTIONS = 4 };

/* The numbers that a request sends and receives, one for each rank. */
struct persistent {
  MPI_Request request;
  int *send, *recv, *ones, *displs;
};

static struct persistent make(int function) {
  const size_t length = (size_t)procs * sizeof(int);
  struct persistent made = {MPI_REQUEST_NULL, test_allocate(length), test_allocate(length),
                            test_allocate(length), test_allocate(length)};
  for (int i = 0; i < procs; i++) {
    made.ones[i] = 1;
    made.displs[i] = i;
  }
  int error = function == 0   ? MPI_Allreduce_init(made.send, made.recv, procs, MPI_INT, MPI_SUM,
                                                   MPI_COMM_WORLD, MPI_INFO_NULL, &made.request)
              : function == 1 ? MPI_Alltoall_init(made.send, 1, MPI_INT, made.recv, 1, MPI_INT,
                                                  MPI_COMM_WORLD, MPI_INFO_NULL, &made.request)
              : function == 2
                  ? MPI_Alltoallv_init(made.send, made.ones, made.displs, MPI_INT, made.recv, made.ones,
                                       made.displs, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &made.request)
                  : MPI_Bcast_init(rank == 0 ? made.send : made.recv, procs, MPI_INT, 0, MPI_COMM_WORLD,
                                   MPI_INFO_NULL, &made.request);
  EXPECT_EQUAL(error, MPI_SUCCESS);
  return made;
}

static void start(struct persistent *it, int round) {
  for (int i = 0; i < procs; i++) {
    it->send[i] = 100 * round + rank;
    it->recv[i] = -1;
  }
  EXPECT_EQUAL(MPI_Start(&it->request), MPI_SUCCESS);
}

static void complete(struct persistent *it, int function, int round) {
  EXPECT_EQUAL(MPI_Wait(&it->request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  for (int i = 0; i < procs && (function < 3 || rank > 0); i++)
    EXPECT_EQUAL(it->recv[i], function == 0   ? 100 * round * procs + procs * (procs - 1) / 2
                              : function == 3 ? 100 * round
                                              : 100 * round + i);
}

/* The one who has it gives it to rank 1. */
static void pass_on(void) {
  int token = 0;
  if (rank == 0 && procs > 1)
    MPI_Send(&token, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  if (rank == 1)
    MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void check_orders(int function) {
  struct persistent it = make(function);
  for (int round = 0; round < ROUNDS; round++) {
    test_case("function %d completes on rank 0 before rank 1 waits, round %d", function, round);
    start(&it, round);
    if (rank == 1)
      pass_on();
    complete(&it, function, round);
    if (rank == 0)
      pass_on();
    test_case("function %d starts on rank 0 before rank 1, round %d", function, round);
    if (rank == 1)
      pass_on();
    start(&it, round);
    if (rank == 0)
      pass_on();
    complete(&it, function, round);
  }
  MPI_Request_free(&it.request);
  free(it.send), free(it.recv), free(it.ones), free(it.displs);
}

static void check_persistent(void) {
  for (int function = 0; function < FUNCTIONS; function++)
    check_orders(function);
}

/* Sends a number to the next rank. */
static MPI_Request make_ring(const int *send, int *recv, MPI_Comm comm) {
  static const int one = 1, none = 0;
  MPI_Request request;
  EXPECT_EQUAL(MPI_Neighbor_alltoallv_init(send, &one, &none, MPI_INT, recv, &one, &none, MPI_INT, comm,
                                           MPI_INFO_NULL, &request),
               MPI_SUCCESS);
  return request;
}

/* The old one is not complete when the young one is, though a preload may number them alike. */
static void check_old(int count) {
  enum { OLD, YOUNG, LATE_US = 100000 };
  const int next = (rank + 1) % procs, previous = (rank + procs - 1) % procs;
  const int sent[] = {100 + rank, 200 + rank};
  int received[] = {-1, -1};
  MPI_Comm rings[2];
  MPI_Request requests[2];
  for (int i = OLD; i <= YOUNG; i++)
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &rings[i]);
  requests[OLD] = make_ring(&sent[OLD], &received[OLD], rings[OLD]);
  for (int i = 0; i < count; i++) {
    if (i % 100 == 0)
      test_case("request %d of %d", i, count);
    MPI_Request request = make_ring(&sent[YOUNG], &received[YOUNG], rings[YOUNG]);
    MPI_Request_free(&request);
  }
  requests[YOUNG] = make_ring(&sent[YOUNG], &received[YOUNG], rings[YOUNG]);
  for (int i = OLD; i <= YOUNG; i++) { /* rank 1 is late with the old one */
    const int which = rank == 1 ? YOUNG - i : i;
    if (rank == 1 && which == OLD)
      usleep(LATE_US);
    MPI_Start(&requests[which]);
    if (rank == 1)
      MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
  }
  for (int i = OLD; i <= YOUNG; i++) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    EXPECT_EQUAL(received[i], sent[i] - rank + previous);
    MPI_Request_free(&requests[i]);
    MPI_Comm_free(&rings[i]);
  }
}

/* More than a method keeps for a receiver that is late. */
enum { EXCHANGES = 8, TOKEN = 9 };

static atomic_int started;

static void *exchange(void *request) {
  for (int i = 0; i < EXCHANGES; i++) {
    atomic_store(&started, i + 1);
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  return NULL;
}

/* The message is a persistent one, too. */
static void pass_on_beside(MPI_Request *exchanges) {
  enum { MOST_US = 500000, STEP_US = 1000 };
  MPI_Request token;
  pthread_t thread;
  MPI_Send_init(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD, &token);
  if (pthread_create(&thread, NULL, exchange, exchanges) != 0)
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  for (int waited_us = 0; atomic_load(&started) < EXCHANGES && waited_us < MOST_US; waited_us += STEP_US)
    usleep(STEP_US);
  MPI_Start(&token);
  MPI_Wait(&token, MPI_STATUS_IGNORE);
  pthread_join(thread, NULL);
  MPI_Request_free(&token);
}

static void check_ahead(int provided) {
  const int from = 0, to = 1, one = 1, none = 0, number = 100;
  int received = -1;
  MPI_Comm pair;
  MPI_Request request;
  test_case("starts ahead of the receiver's");
  EXPECT_EQUAL(provided, MPI_THREAD_MULTIPLE);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == to, &from, MPI_UNWEIGHTED, rank == from, &to,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &pair);
  MPI_Neighbor_alltoallv_init(&number, &one, &none, MPI_INT, &received, &one, &none, MPI_INT, pair,
                              MPI_INFO_NULL, &request);
  if (rank == from)
    pass_on_beside(&request);
  if (rank == to) {
    MPI_Recv(NULL, 0, MPI_BYTE, from, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    exchange(&request);
    EXPECT_EQUAL(received, number);
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&pair);
}
#else
static void check_old(int count) {
  (void)count;
}

static void check_ahead(int provided) {
  (void)provided;
}

static void check_persistent(void) {
  if (rank == 0)
    printf("swp_left: this MPI has no persistent collectives\n");
}
#endif

int main(int argc, char **argv) {
  const bool ahead = argc == 2 && strcmp(argv[1], "--ahead") == 0;
  int provided;
  MPI_Init_thread(&argc, &argv, ahead ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  test_begin(&argc, &argv, "swp_left");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  if (argc == 3 && strcmp(argv[1], "--old") == 0)
    check_old(atoi(argv[2]));
  else if (ahead)
    check_ahead(provided);
  else
    (argc > 1 && strcmp(argv[1], "--all") == 0 ? check_all : check_persistent)();
  return test_end();
}
