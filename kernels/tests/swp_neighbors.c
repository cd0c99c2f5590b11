/*
 * Neighbourhood collectives of a program that knows nothing of Switchpoint: plain ones whose counts change on
 * some ranks, and ones with the promise swp_fixed_counts. For a preload with rules for exchanges, and
 * without. Usage: swp_neighbors [--persistent NUMBER | --break-promise | --half-a-promise]
 *   --persistent      persistent ones instead, among other requests, and so many one after the other: for the
 *                     preload, as those of MPICH 4.0.2 fail among others
 *   --break-promise   one rank changes its counts
 *   --half-a-promise  one rank promises
 */
#include "sides.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 6, CALLS = 4, MOST = 30, FUNCTIONS = 5 };

enum function { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW };

static int rank, procs;

/* Every other graph has all edges in both directions. */
static bool is_symmetric(uint64_t graph) {
  return graph % 2 == 0;
}

static bool has_edge(uint64_t graph, int from, int to) {
  bool swap = is_symmetric(graph) && from > to;
  return mix(graph, (uint64_t)(swap ? to : from), (uint64_t)(swap ? from : to), 40) % 5 < 3;
}

/* The MPI_Neighbor_alltoallw of MPICH 4.0.2 receives as many blocks as it sends. */
static bool can_do(int function, uint64_t graph) {
  return function != ALLTOALLW || is_symmetric(graph);
}

static bool is_gather(enum function function) {
  return function <= ALLGATHERV;
}

/* Equal for all edges of an alltoall or allgather, and for all from one rank of an allgatherv. */
static int edge_count(enum function function, uint64_t seed, int from, int to) {
  if (function == ALLTOALL || function == ALLGATHER)
    return 1 + (int)(mix(seed, 41, 0, 0) % MOST);
  return (int)(mix(seed, (uint64_t)from, is_gather(function) ? 0 : (uint64_t)to, 42) % MOST);
}

/* ---- Sides ---- */

static void find_ranks(struct side *side, uint64_t graph, bool sends) {
  side->ranks = test_allocate((size_t)procs * sizeof(int));
  side->n = 0;
  for (int i = 0; i < procs; i++) {
    int peer = (rank * 3 + i) % procs;
    if (sends ? has_edge(graph, rank, peer) : has_edge(graph, peer, rank))
      side->ranks[side->n++] = peer;
  }
}

/* Layouts that are odd are from the last block to the first, where a function allows that. */
static void make_side(struct side *side, enum function function, uint64_t seed, int layout, bool sends) {
  side_begin(side, side->n);
  side->shared = sends && is_gather(function);
  side->mixed = false;
  /* Whether or not there are neighbours: else Open MPI 4.1.4 returns at once. */
  side->count = edge_count(function == ALLGATHERV ? ALLGATHERV : ALLTOALL, seed, rank, 0);
  for (int i = 0; i < side->n; i++)
    side->counts[i] = sends ? edge_count(function, seed, rank, side->ranks[i])
                            : edge_count(function, seed, side->ranks[i], rank);
  side_lay(side, layout, layout % 2 != 0 && function != ALLTOALL && function != ALLGATHER && !side->shared);
}

/* An allgather sends the same to all. */
static void fill(enum function function, const struct side *send, uint64_t seed) {
  for (int i = 0; i < send->n; i++)
    side_fill(send, i, seed, rank, is_gather(function) ? 0 : send->ranks[i]);
}

static void check(enum function function, const struct side *recv, uint64_t seed) {
  for (int i = 0; i < recv->n; i++)
    side_check(recv, i, seed, recv->ranks[i], is_gather(function) ? 0 : rank);
  side_check_gaps(recv);
}

/* ---- Calls ---- */

/* `form` is what the names of the functions have behind them; what they take besides comes last. */
#define DEFINE_CALL(name, form, Counts, Displs, ...)                                                         \
  static int name(enum function function, const struct side *s, const struct side *r, MPI_Comm comm,         \
                  MPI_Request *request) {                                                                    \
    const MPI_Datatype send_type = s->type, recv_type = r->type;                                             \
    (void)request;                                                                                           \
    switch (function) {                                                                                      \
    case ALLGATHER:                                                                                          \
      return MPI_Neighbor_allgather##form(s->memory, s->count, send_type, r->memory, r->count, recv_type,    \
                                          __VA_ARGS__);                                                      \
    case ALLGATHERV:                                                                                         \
      return MPI_Neighbor_allgatherv##form(s->memory, s->count, send_type, r->memory, r->Counts, r->Displs,  \
                                           recv_type, __VA_ARGS__);                                          \
    case ALLTOALL:                                                                                           \
      return MPI_Neighbor_alltoall##form(s->memory, s->count, send_type, r->memory, r->count, recv_type,     \
                                         __VA_ARGS__);                                                       \
    case ALLTOALLV:                                                                                          \
      return MPI_Neighbor_alltoallv##form(s->memory, s->Counts, s->Displs, send_type, r->memory, r->Counts,  \
                                          r->Displs, recv_type, __VA_ARGS__);                                \
    case ALLTOALLW:                                                                                          \
      return MPI_Neighbor_alltoallw##form(s->memory, s->Counts, s->large_places, s->types, r->memory,        \
                                          r->Counts, r->large_places, r->types, __VA_ARGS__);                \
    }                                                                                                        \
    return MPI_ERR_OTHER;                                                                                    \
  }

DEFINE_CALL(call_small, , counts, displs, comm)
#ifdef SWP_HAVE_LARGE_COUNTS
DEFINE_CALL(call_large, _c, large_counts, large_displs, comm)
#else
#define call_large call_small
#endif

/* Calls with counts of int and with large ones in turn. */
static int call(enum function function, const struct side *send, const struct side *recv, MPI_Comm comm) {
  static int calls;
  return (calls++ % 2 == 0 ? call_small : call_large)(function, send, recv, comm, NULL);
}

static MPI_Comm make_graph(uint64_t graph, struct side *send, struct side *recv, MPI_Info info) {
  MPI_Comm comm;
  find_ranks(send, graph, true);
  find_ranks(recv, graph, false);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, recv->n, recv->ranks, MPI_UNWEIGHTED, send->n, send->ranks,
                                 MPI_UNWEIGHTED, info, 0, &comm);
  return comm;
}

/* Counts are a function of `counts`, layouts of places and types differ from call to call and rank to rank.
 */
static void check_call(enum function function, MPI_Comm comm, struct side *send, struct side *recv,
                       uint64_t counts, uint64_t draw) {
  make_side(send, function, counts, (int)(mix(draw, (uint64_t)rank, 44, 0) % LAYOUTS), true);
  make_side(recv, function, counts, (int)(mix(draw, (uint64_t)rank, 45, 0) % LAYOUTS), false);
  /* The values are derived from the same seed as the counts. */
  fill(function, send, counts + draw);
  EXPECT_EQUAL(call(function, send, recv, comm), MPI_SUCCESS);
  check(function, recv, counts + draw);
  side_end(send);
  side_end(recv);
}

/* The counts of some edges are other ones in each call. */
static void check_plain(void) {
  for (uint64_t graph = 0; graph < GRAPHS; graph++) {
    struct side send, recv;
    MPI_Comm comm = make_graph(graph, &send, &recv, MPI_INFO_NULL);
    for (uint64_t i = 0; i < CALLS; i++)
      for (int function = 0; function < FUNCTIONS && can_do(function, graph); function++) {
        test_case("plain %d, graph %d, call %d", function, (int)graph, (int)i);
        check_call((enum function)function, comm, &send, &recv, graph + i, i);
      }
    free(send.ranks);
    free(recv.ranks);
    MPI_Comm_free(&comm);
  }
}

static MPI_Info promise(const char *value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_fixed_counts", value);
  return info;
}

/* The same counts, elsewhere in memory and by other types in each call. */
static void check_fixed(void) {
  MPI_Info fixed = promise("true"), free_again = promise("false");
  for (uint64_t graph = 0; graph < GRAPHS; graph++) {
    struct side send, recv;
    bool later = graph % 2 != 0;
    MPI_Comm comm = make_graph(graph, &send, &recv, later ? MPI_INFO_NULL : fixed);
    if (later)
      MPI_Comm_set_info(comm, fixed);
    for (uint64_t i = 0; i < CALLS; i++)
      for (int function = 0; function < FUNCTIONS && can_do(function, graph); function++) {
        test_case("fixed %d, graph %d, call %d", function, (int)graph, (int)i);
        check_call((enum function)function, comm, &send, &recv, graph, i);
      }
    MPI_Comm_set_info(comm, free_again);
    for (uint64_t i = 1; i < CALLS; i++)
      check_call(ALLTOALLV, comm, &send, &recv, graph + i, i);
    free(send.ranks);
    free(recv.ranks);
    MPI_Comm_free(&comm);
  }
  MPI_Info_free(&fixed);
  MPI_Info_free(&free_again);
}

/* MPICH 4.0.2 packs a part only of items of types made when there are some 500 others. */
static void check_many_types(void) {
  enum { TYPES = 600, ITEM = 5 };
  MPI_Datatype many[TYPES];
  MPI_Info fixed = promise("true");
  struct side send, recv;
  MPI_Comm comm = make_graph(2, &send, &recv, fixed);
  char *own = test_allocate((size_t)send.n * ITEM + 1), *theirs = test_allocate((size_t)recv.n * ITEM + 1);
  test_case("items of the last of many types");
  for (int i = 0; i < TYPES; i++) {
    MPI_Type_contiguous(ITEM, MPI_CHAR, &many[i]);
    MPI_Type_commit(&many[i]);
  }
  memset(own, rank + 1, (size_t)send.n * ITEM);
  EXPECT_EQUAL(MPI_Neighbor_alltoall(own, 1, many[TYPES - 1], theirs, 1, many[TYPES - 1], comm), MPI_SUCCESS);
  for (int i = 0; i < recv.n * ITEM; i++)
    EXPECT_EQUAL(theirs[i], recv.ranks[i / ITEM] + 1);
  for (int i = 0; i < TYPES; i++)
    MPI_Type_free(&many[i]);
  free(own);
  free(theirs);
  free(send.ranks);
  free(recv.ranks);
  MPI_Info_free(&fixed);
  MPI_Comm_free(&comm);
}

/* Grids: with neighbours that are missing, the rank itself, or one rank on both sides. */
static void check_grids(void) {
  MPI_Info fixed = promise("true");
  for (int periodic = 0; periodic < 2; periodic++) {
    MPI_Comm comm;
    int send[2] = {rank * 10, rank * 10 + 1}, recv[2], expected[2];
    test_case("a grid of one dimension, periodic %d", periodic);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &procs, &periodic, 0, &comm);
    for (int i = 0; i < 3; i++) {
      if (i == 1)
        MPI_Comm_set_info(comm, fixed);
      recv[0] = recv[1] = expected[0] = expected[1] = -1;
      EXPECT_EQUAL(MPI_Neighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, comm), MPI_SUCCESS);
      EXPECT_EQUAL(PMPI_Neighbor_alltoall(send, 1, MPI_INT, expected, 1, MPI_INT, comm), MPI_SUCCESS);
      EXPECT_EQUAL(recv[0], expected[0]);
      EXPECT_EQUAL(recv[1], expected[1]);
    }
    MPI_Comm_free(&comm);
  }
  MPI_Info_free(&fixed);
}

/* ---- Persistent calls ---- */

#ifdef SWP_HAVE_PERSISTENT

DEFINE_CALL(init_small, _init, counts, displs, comm, MPI_INFO_NULL, request)
#ifdef SWP_HAVE_LARGE_COUNTS
DEFINE_CALL(init_large, _init_c, large_counts, large_displs, comm, MPI_INFO_NULL, request)
#else
#define init_large init_small
#endif

static MPI_Request make_request(enum function function, const struct side *send, const struct side *recv,
                                MPI_Comm comm) {
  static int calls;
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQUAL((calls++ % 2 == 0 ? init_small : init_large)(function, send, recv, comm, &request),
               MPI_SUCCESS);
  return request;
}

/* Each way to wait in turn, for this request and a message around the ring. */
static void wait_in_some_way(int way, MPI_Request *request) {
  MPI_Request both[2];
  int in = -1, out = rank, index, done = 0, indices[2];
  MPI_Irecv(&in, 1, MPI_INT, (rank + procs - 1) % procs, 7, MPI_COMM_WORLD, &both[0]);
  both[1] = *request;
  MPI_Send(&out, 1, MPI_INT, (rank + 1) % procs, 7, MPI_COMM_WORLD);
  switch (way % 6) {
  case 0:
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Wait(&both[0], MPI_STATUS_IGNORE);
    break;
  case 1:
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    break;
  case 2:
    for (int i = 0; i < 2; i++)
      MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
    break;
  case 3:
    for (int count = 0; count < 2; count += done)
      MPI_Waitsome(2, both, &done, indices, MPI_STATUSES_IGNORE);
    break;
  case 4:
    while (!done)
      MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
    break;
  default:
    while (!done)
      MPI_Request_get_status(both[1], &done, MPI_STATUS_IGNORE);
    for (done = 0; !done;)
      MPI_Test(&both[1], &done, MPI_STATUS_IGNORE);
    MPI_Wait(&both[0], MPI_STATUS_IGNORE);
  }
  EXPECT_EQUAL(in, (rank + procs - 1) % procs);
}

/* Every other rank is sent its number, and gets it, by the functions with large counts. */
static void send_number(int to) {
#ifdef SWP_HAVE_LARGE_COUNTS
  if (to % 2 == 0) {
    MPI_Send_c(&to, 1, MPI_INT, to, 8, MPI_COMM_WORLD);
    return;
  }
#endif
  MPI_Send(&to, 1, MPI_INT, to, 8, MPI_COMM_WORLD);
}

static void receive_number(int *number, MPI_Status *status) {
#ifdef SWP_HAVE_LARGE_COUNTS
  if (rank % 2 == 0) {
    MPI_Recv_c(number, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, status);
    return;
  }
#endif
  MPI_Recv(number, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, status);
}

/* A rank that waits for a message, or looks for one, passes on what others need before they send it. */
static void wait_out_of_order(MPI_Request *request) {
  int number = 0;
  MPI_Status status;
  if (rank == 0) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    for (int i = 1; i < procs; i++)
      send_number(i);
    return;
  }
  MPI_Message message;
  int found = 0;
  if (rank % 4 == 0 || rank % 4 == 1)
    MPI_Probe(0, 8, MPI_COMM_WORLD, &status);
  while (rank % 4 == 2 && !found)
    MPI_Iprobe(0, 8, MPI_COMM_WORLD, &found, &status);
  while (rank % 4 == 3 && !found)
    MPI_Improbe(0, 8, MPI_COMM_WORLD, &found, &message, &status);
  if (rank % 4 == 3)
    MPI_Mrecv(&number, 1, MPI_INT, &message, &status);
  else
    receive_number(&number, &status);
  EXPECT_EQUAL(number, rank);
  EXPECT_EQUAL(status.MPI_TAG, 8);
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void check_request(enum function function, MPI_Comm comm, struct side *send, struct side *recv,
                          uint64_t seed) {
  make_side(send, function, seed, (int)(mix(seed, (uint64_t)rank, 46, 0) % LAYOUTS), true);
  make_side(recv, function, seed, (int)(mix(seed, (uint64_t)rank, 47, 0) % LAYOUTS), false);
  MPI_Request request = make_request(function, send, recv, comm);
  for (int i = 0; i < 7; i++) {
    fill(function, send, seed + (uint64_t)i);
    if (i % 2 == 0)
      MPI_Start(&request);
    else
      MPI_Startall(1, &request);
    if (i < 6)
      wait_in_some_way(i, &request);
    else
      wait_out_of_order(&request);
    check(function, recv, seed + (uint64_t)i);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* of what is not active: at once */
  MPI_Request_free(&request);
  EXPECT(request == MPI_REQUEST_NULL, "the request is still there");
  side_end(send);
  side_end(recv);
}

static void check_persistent(void) {
  for (uint64_t graph = 0; graph < GRAPHS; graph++) {
    struct side send, recv;
    MPI_Comm comm = make_graph(graph, &send, &recv, MPI_INFO_NULL);
    for (int function = 0; function < FUNCTIONS; function++) {
      test_case("persistent %d, graph %d", function, (int)graph);
      check_request((enum function)function, comm, &send, &recv, graph);
    }
    free(send.ranks);
    free(recv.ranks);
    MPI_Comm_free(&comm);
  }
}

/* Types, and the communicator, are freed before the request, which ranks do at different times. */
static void check_freed_early(void) {
  struct side send, recv;
  MPI_Request requests[2];
  MPI_Datatype gap;
  MPI_Comm comm = make_graph(1, &send, &recv, MPI_INFO_NULL);
  test_case("what is freed before its request");
  make_side(&send, ALLTOALLV, 3, 1, true);
  make_side(&recv, ALLTOALLV, 3, 4, false);
  MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &gap);
  MPI_Type_commit(&gap);
  for (int i = 0; i < 2; i++)
    MPI_Neighbor_alltoallv_init(send.memory, send.counts, send.displs, gap, recv.memory, recv.counts,
                                recv.displs, gap, comm, MPI_INFO_NULL, &requests[i]);
  MPI_Type_free(&gap);
  fill(ALLTOALLV, &send, 9);
  MPI_Start(&requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  check(ALLTOALLV, &recv, 9);
  if (rank % 2 == 0)
    MPI_Request_free(&requests[0]);
  MPI_Comm_free(&comm);
  fill(ALLTOALLV, &send, 10);
  MPI_Start(&requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  check(ALLTOALLV, &recv, 10);
  MPI_Request_free(&requests[1]);
  if (rank % 2 != 0)
    MPI_Request_free(&requests[0]);
  side_end(&send);
  side_end(&recv);
  free(send.ranks);
  free(recv.ranks);
}

/* Where they are more than there are communicators, those that are freed make room. */
static void check_many(int count) {
  struct side send, recv;
  MPI_Comm comm = make_graph(2, &send, &recv, MPI_INFO_NULL);
  make_side(&send, ALLTOALLV, 5, 0, true);
  make_side(&recv, ALLTOALLV, 5, 0, false);
  for (int i = 0; i < count; i++) {
    if (i % 100 == 0)
      test_case("request %d of %d", i, count);
    MPI_Request request = make_request(ALLTOALLV, &send, &recv, comm);
    MPI_Request_free(&request);
  }
  side_end(&send);
  side_end(&recv);
  free(send.ranks);
  free(recv.ranks);
  MPI_Comm_free(&comm);
}
#endif

/* ---- Wrong use ---- */

/* One rank calls with other counts than before, and its neighbours know: right without the promise. */
static void break_promise(void) {
  int ring[2] = {(rank + procs - 1) % procs, (rank + 1) % procs}, displs[2] = {0, 8};
  int sent[2] = {3, 3}, received[2] = {3, 3}, from[16] = {0}, to[16];
  MPI_Info info = promise("true");
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, ring, MPI_UNWEIGHTED, 2, ring, MPI_UNWEIGHTED, info, 0,
                                 &comm);
  for (int i = 0; i < 3; i++)
    MPI_Neighbor_alltoallv(from, sent, displs, MPI_INT, to, received, displs, MPI_INT, comm);
  if (rank == 1)
    sent[1] = 5;
  if (rank == 2)
    received[0] = 5;
  MPI_Neighbor_alltoallv(from, sent, displs, MPI_INT, to, received, displs, MPI_INT, comm);
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
}

static void promise_on_one_rank(void) {
  MPI_Info info = promise(rank == 1 ? "true" : "false");
  MPI_Comm_set_info(MPI_COMM_WORLD, info);
  MPI_Info_free(&info);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  test_begin(&argc, &argv, "swp_neighbors");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  sides_begin();
  if (argc > 1 && strcmp(argv[1], "--break-promise") == 0) {
    test_case("a broken promise");
    break_promise();
  } else if (argc > 1 && strcmp(argv[1], "--half-a-promise") == 0) {
    test_case("a promise of one rank");
    promise_on_one_rank();
  } else if (argc > 1) {
#ifdef SWP_HAVE_PERSISTENT
    check_persistent();
    check_freed_early();
    check_many(argc > 2 ? atoi(argv[2]) : 0);
#endif
  } else {
    check_plain();
    check_fixed();
    check_many_types();
    check_grids();
  }
  sides_end();
  return test_end();
}
