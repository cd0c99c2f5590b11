/*
 * A program that knows nothing of Switchpoint promises to start its persistent collectives together, and
 * starts each several times, after it has freed the types.
 * Usage: swp_together [--orphan | --many]
 *   --orphan  starts a request whose communicator was freed, which the promise excludes
 *   --many    makes more requests than the preload can follow
 */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SWP_HAVE_PERSISTENT

enum function {
  BARRIER,
  BCAST,
  GATHER,
  SCATTER,
  REDUCE,
  ALLREDUCE,
  ALLGATHER,
  ALLGATHERV,
  ALLTOALL,
  ALLTOALLV,
  REDUCE_SCATTER_BLOCK,
  GATHERV,
  SCATTERV,
  ALLTOALLW,
  FUNCTIONS
};

enum { ROUNDS = 4, UNTOUCHED = -1, ROOT = 0 };

static int rank, procs;

/* A request with a number for each rank in both buffers. */
struct persistent {
  enum function function;
  bool in_place; /* on the ranks that may */
  MPI_Request request;
  int *send, *recv, *ones, *displs, *places; /* displacements in items, and in bytes */
  MPI_Datatype *types;
};

static bool is_gather(enum function function) {
  return function == GATHER || function == GATHERV;
}

static bool is_scatter(enum function function) {
  return function == SCATTER || function == SCATTERV;
}

/* Returns whether the rank gives MPI_IN_PLACE for what it sends: its numbers are in `recv` then. */
static bool sends_in_place(const struct persistent *it) {
  const enum function function = it->function;
  return it->in_place && function != BARRIER && function != BCAST && !is_scatter(function) &&
         ((!is_gather(function) && function != REDUCE) || rank == ROOT);
}

static int init(struct persistent *it, MPI_Datatype type, MPI_Comm comm) {
  const MPI_Info none = MPI_INFO_NULL;
  const void *send = sends_in_place(it) ? MPI_IN_PLACE : it->send;
  void *recv = it->in_place && is_scatter(it->function) && rank == ROOT ? MPI_IN_PLACE : it->recv;
  const MPI_Datatype root_type = rank == ROOT ? type : MPI_DATATYPE_NULL; /* it is nothing elsewhere */
  MPI_Request *request = &it->request;
  switch (it->function) {
  case BARRIER:
    return MPI_Barrier_init(comm, none, request);
  case BCAST:
    return MPI_Bcast_init(it->recv, procs, type, ROOT, comm, none, request);
  case GATHER:
    return MPI_Gather_init(send, 1, type, recv, 1, root_type, ROOT, comm, none, request);
  case GATHERV:
    return MPI_Gatherv_init(send, 1, type, recv, it->ones, it->displs, root_type, ROOT, comm, none, request);
  case SCATTER:
    return MPI_Scatter_init(send, 1, root_type, recv, 1, type, ROOT, comm, none, request);
  case SCATTERV:
    return MPI_Scatterv_init(send, it->ones, it->displs, root_type, recv, 1, type, ROOT, comm, none, request);
  case REDUCE:
    return MPI_Reduce_init(send, it->recv, procs, MPI_INT, MPI_SUM, ROOT, comm, none, request);
  case ALLREDUCE:
    return MPI_Allreduce_init(send, it->recv, procs, MPI_INT, MPI_SUM, comm, none, request);
  case ALLGATHER:
    return MPI_Allgather_init(send, 1, type, it->recv, 1, type, comm, none, request);
  case ALLGATHERV:
    return MPI_Allgatherv_init(send, 1, type, it->recv, it->ones, it->displs, type, comm, none, request);
  case ALLTOALL:
    return MPI_Alltoall_init(send, 1, type, it->recv, 1, type, comm, none, request);
  case ALLTOALLV:
    return MPI_Alltoallv_init(send, it->ones, it->displs, type, it->recv, it->ones, it->displs, type, comm,
                              none, request);
  case ALLTOALLW: /* in place, the lists of what is sent are nothing */
    return MPI_Alltoallw_init(send, it->in_place ? NULL : it->ones, it->in_place ? NULL : it->places,
                              it->in_place ? NULL : it->types, it->recv, it->ones, it->places, it->types,
                              comm, none, request);
  default:
    return MPI_Reduce_scatter_block_init(send, it->recv, 1, MPI_INT, MPI_SUM, comm, none, request);
  }
}

static struct persistent make(enum function function, bool in_place, MPI_Comm comm) {
  const size_t length = (size_t)procs * sizeof(int);
  struct persistent made = {function,
                            in_place,
                            MPI_REQUEST_NULL,
                            test_allocate(length),
                            test_allocate(length),
                            test_allocate(length),
                            test_allocate(length),
                            test_allocate(length),
                            test_allocate((size_t)procs * sizeof(MPI_Datatype))};
  MPI_Datatype type;
  MPI_Type_contiguous(1, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < procs; i++) {
    made.ones[i] = 1;
    made.displs[i] = i;
    made.places[i] = i * (int)sizeof(int);
    made.types[i] = type;
  }
  EXPECT_EQUAL(init(&made, type, comm), MPI_SUCCESS);
  MPI_Type_free(&type);
  return made;
}

static void release(struct persistent *it) {
  EXPECT_EQUAL(MPI_Request_free(&it->request), MPI_SUCCESS);
  free(it->send), free(it->recv), free(it->ones), free(it->displs), free(it->places), free(it->types);
}

/* What a rank sends to rank i. */
static int number(int from, int i, int round) {
  return 10000 * round + 100 * from + i;
}

static int sum(int i, int round) {
  int total = 0;
  for (int from = 0; from < procs; from++)
    total += number(from, i, round);
  return total;
}

/* Where MPI looks for the numbers that this rank sends. */
static void fill(struct persistent *it, int round) {
  const bool gathers = it->function == ALLGATHER || it->function == ALLGATHERV || is_gather(it->function);
  for (int i = 0; i < procs; i++) {
    it->send[i] = number(rank, i, round);
    it->recv[i] =
        sends_in_place(it) || (it->function == BCAST && rank == ROOT) ? number(rank, i, round) : UNTOUCHED;
  }
  if (sends_in_place(it) && gathers)
    it->recv[rank] = number(rank, 0, round);
}

static int expected(enum function function, int i, int round) {
  switch (function) {
  case BCAST:
    return number(ROOT, i, round);
  case GATHER:
  case GATHERV:
    return rank == ROOT ? number(i, 0, round) : UNTOUCHED;
  case SCATTER:
  case SCATTERV:
    return i == 0 ? number(ROOT, rank, round) : UNTOUCHED;
  case REDUCE:
    return rank == ROOT ? sum(i, round) : UNTOUCHED;
  case ALLREDUCE:
    return sum(i, round);
  case ALLGATHER:
  case ALLGATHERV:
    return number(i, 0, round);
  case ALLTOALL:
  case ALLTOALLV:
  case ALLTOALLW:
    return number(i, rank, round);
  case REDUCE_SCATTER_BLOCK:
    return i == 0 ? sum(rank, round) : UNTOUCHED;
  default:
    return UNTOUCHED;
  }
}

static void check_numbers(const struct persistent *it, int round) {
  const bool all = !is_scatter(it->function) && it->function != REDUCE_SCATTER_BLOCK;
  if (is_scatter(it->function) && it->in_place && rank == ROOT)
    return;
  for (int i = 0; i < (all ? procs : 1); i++)
    EXPECT_EQUAL(it->recv[i], expected(it->function, i, round));
}

static void check_alone(enum function function, bool in_place, MPI_Comm comm) {
  struct persistent it = make(function, in_place, comm);
  for (int round = 0; round < ROUNDS; round++) {
    test_case("function %d, %s, round %d", function, in_place ? "in place" : "two buffers", round);
    fill(&it, round);
    EXPECT_EQUAL(MPI_Start(&it.request), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Wait(&it.request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    check_numbers(&it, round);
  }
  release(&it);
}

/* All at once, beside a message, and freed in another order than they were made. */
static void check_all_at_once(MPI_Comm comm) {
  struct persistent all[FUNCTIONS];
  MPI_Request requests[FUNCTIONS + 2];
  const int next = (rank + 1) % procs, previous = (rank + procs - 1) % procs;
  int token = rank, received = UNTOUCHED;
  for (int i = 0; i < FUNCTIONS; i++) {
    all[i] = make((enum function)i, false, comm);
    requests[i] = all[i].request;
  }
  MPI_Send_init(&token, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[FUNCTIONS]);
  MPI_Recv_init(&received, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &requests[FUNCTIONS + 1]);
  for (int round = 0; round < ROUNDS; round++) {
    test_case("all at once, round %d", round);
    for (int i = 0; i < FUNCTIONS; i++)
      fill(&all[i], round);
    EXPECT_EQUAL(MPI_Startall(FUNCTIONS + 2, requests), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Waitall(FUNCTIONS + 2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    for (int i = 0; i < FUNCTIONS; i++)
      check_numbers(&all[i], round);
    EXPECT_EQUAL(received, previous);
  }
  for (int i = 0; i < FUNCTIONS; i++)
    release(&all[i * 3 % FUNCTIONS]);
  MPI_Request_free(&requests[FUNCTIONS]);
  MPI_Request_free(&requests[FUNCTIONS + 1]);
}

static void add(void *from, void *into, int *count, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *count; i++)
    ((int *)into)[i] += ((int *)from)[i];
}

/* It is freed before the start. */
static void check_own_operation(MPI_Comm comm) {
  MPI_Request request;
  MPI_Op op;
  int one = 1, total = 0;
  test_case("an operation of the program's own");
  MPI_Op_create(add, 1, &op);
  EXPECT_EQUAL(MPI_Allreduce_init(&one, &total, 1, MPI_INT, op, comm, MPI_INFO_NULL, &request), MPI_SUCCESS);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQUAL(total, procs);
  MPI_Request_free(&request);
  MPI_Op_free(&op);
}

#ifdef SWP_HAVE_LARGE_COUNTS
static void check_large_counts(MPI_Comm comm) {
  int one = 1, total = 0;
  MPI_Request request;
  test_case("large counts");
  EXPECT_EQUAL(MPI_Allreduce_init_c(&one, &total, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request),
               MPI_SUCCESS);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQUAL(total, procs);
  MPI_Request_free(&request);
}
#endif

static MPI_Comm promise(void) {
  MPI_Info info;
  MPI_Comm comm;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_started_together", "true");
  MPI_Info_set(info, "swp_fixed_counts", "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

/* Their types may be anything, such as one that was freed. */
static void check_empty_blocks(void) {
  MPI_Comm comm = promise();
  struct persistent it = make(ALLTOALLW, false, comm);
  MPI_Request_free(&it.request);
  for (int i = 0; i < procs; i++)
    it.ones[i] = 0;
  test_case("blocks of nothing");
  EXPECT_EQUAL(init(&it, MPI_DATATYPE_NULL, comm), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Start(&it.request), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Wait(&it.request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  release(&it);
  MPI_Comm_free(&comm);
}

static void check_orphan(void) {
  MPI_Comm comm = promise();
  struct persistent it = make(ALLREDUCE, false, comm);
  MPI_Comm_free(&comm);
  test_case("its communicator was freed");
  MPI_Start(&it.request);
  MPI_Wait(&it.request, MPI_STATUS_IGNORE);
  release(&it);
}

/* The last three are the MPI library's. */
static void check_many(void) {
  enum { REQUESTS = 32767 + 3 };
  MPI_Comm comm = promise();
  MPI_Request *requests = test_allocate(REQUESTS * sizeof *requests);
  test_case("many requests");
  for (int i = 0; i < REQUESTS; i++)
    EXPECT_EQUAL(MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[i]), MPI_SUCCESS);
  for (int i = 0; i < REQUESTS; i += REQUESTS - 1) {
    EXPECT_EQUAL(MPI_Start(&requests[i]), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), MPI_SUCCESS);
  }
  for (int i = REQUESTS - 1; i >= 0; i--)
    MPI_Request_free(&requests[i]);
  EXPECT_EQUAL(MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[0]), MPI_SUCCESS); /* there is room again */
  MPI_Request_free(&requests[0]);
  free(requests);
  MPI_Comm_free(&comm);
}

static void check_all(void) {
  MPI_Comm comm = promise();
  for (int i = 0; i < FUNCTIONS; i++)
    for (int in_place = 0; in_place < 2; in_place++)
      check_alone((enum function)i, in_place != 0, comm);
  check_all_at_once(comm);
  check_own_operation(comm);
  check_empty_blocks();
#ifdef SWP_HAVE_LARGE_COUNTS
  check_large_counts(comm);
#endif
  MPI_Comm_free(&comm);
}
#endif

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  test_begin(&argc, &argv, "swp_together");
#ifdef SWP_HAVE_PERSISTENT
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  if (argc > 1 && strcmp(argv[1], "--orphan") == 0)
    check_orphan();
  else if (argc > 1 && strcmp(argv[1], "--many") == 0)
    check_many();
  else
    check_all();
#else
  printf("swp_together: this MPI has no persistent collectives\n");
#endif
  return test_end();
}
