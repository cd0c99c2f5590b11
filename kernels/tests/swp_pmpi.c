/*
 * A program that knows nothing of Switchpoint calls collectives, and gets what MPI itself gives by the names
 * that no preload stands before. Run with libswitchpoint_pmpi.so preloaded, and without.
 * Usage: swp_pmpi [--brief] [--wild] [--one-thread] [--truncation] [--communicators N]
 *        swp_pmpi --table PROCS     writes a table that uses every method on so many ranks, and ends
 *        swp_pmpi --break-promise | --break-large
 *                                   rank 1 changes the counts of an alltoallv that it promised to keep
 *        swp_pmpi --unmatched       rank 1 expects less of rank 0 than it gets, and rank 0 as much more
 *   --brief          no random calls, and few communicators freed
 *   --wild           calls that MPI libraries themselves get wrong, for tables without them
 *   --one-thread     no calls of two threads at once
 *   --truncation     a message too long for its receiver, which MPI libraries report in ways of their own
 *   --communicators  creates and frees so many
 */
#include "application.h"
#include "calls.h"
#include "testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BURST = 8, BURSTS = 6, SMALL_UNITS = 40, LARGE_UNITS = 1500, THREADS = 2, ALIVE = 40 };

static int rank, procs;
static bool wild;

/* ---- The table ---- */

static bool is_vendor(const char *spec) {
  return strncmp(spec, "vendor", 6) == 0;
}

/* Every method has bytes of its own, over and over; where it cannot do a call, some other method does. */
static void write_rules(enum swp_operation operation, int count) {
  const char *name = swp_operation_name(operation);
  char *specs = all_specs(operation, count);
  long long low = 0;
  for (int turn = 0; turn < 6; turn++) {
    char *copy = strcpy(test_allocate(strlen(specs) + 1), specs), *rest = copy;
    for (char *spec; (spec = strtok_r(rest, " ", &rest)) != NULL;) {
      long long high = low + 16 + low / 8;
      if (is_vendor(spec))
        continue;
      printf("rule op=%s bytes=%lld:%lld method=%s\n", name, low, high, spec);
      low = high + 1;
    }
    free(copy);
  }
  char *rest = specs;
  for (char *spec; (spec = strtok_r(rest, " ", &rest)) != NULL;)
    if (!is_vendor(spec))
      printf("rule op=%s method=%s\n", name, spec);
  free(specs);
}

static int write_table(int count) {
  printf("switchpoint-table 1\n");
  for (int operation = SWP_BCAST; swp_operation_name(operation) != NULL; operation++)
    write_rules((enum swp_operation)operation, count);
  return EXIT_SUCCESS;
}

/* ---- Random calls ---- */

/* Calls of all operations back to back, ranks drifting apart, and then what MPI says to all of them. */
static void check_burst(MPI_Comm comm, uint64_t seed, int most_units) {
  struct test_call calls[BURST];
  int size;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < BURST; i++) {
    uint64_t draw = mix(seed, (uint64_t)i, 30, 0);
    enum swp_operation operation = (enum swp_operation)(SWP_BCAST + draw % (SWP_BARRIER - SWP_BCAST + 1));
    if (!wild && size == 1 && operation == SWP_ALLGATHERV)
      operation = SWP_ALLGATHER; /* MPICH 4.0.2 takes no notice of displs on one rank */
    calls[i] = call_make(comm, operation, draw, most_units, wild ? CALL_ANY : CALL_TAME);
  }
  for (int i = 0; i < BURST; i++) {
    if (mix(seed, (uint64_t)rank, (uint64_t)i, 31) % 32 == 0)
      usleep(200);
    const bool large = mix(seed, (uint64_t)i, 33, 0) % 4 == 0;
    calls[i].entered_s = call_clock_s();
    EXPECT_EQUAL(application_call(&calls[i], comm, large), MPI_SUCCESS);
    calls[i].left_s = call_clock_s();
  }
  for (int i = 0; i < BURST; i++) {
    call_check(&calls[i], comm);
    call_free(&calls[i]);
  }
}

static void check_communicator(MPI_Comm comm, const char *name, uint64_t seed) {
  int size;
  MPI_Comm_size(comm, &size);
  for (int burst = 0; burst < BURSTS; burst++) {
    test_case("%s of %d ranks, burst %d", name, size, burst);
    check_burst(comm, mix(seed, (uint64_t)burst, 32, 0), burst == BURSTS - 1 ? LARGE_UNITS : SMALL_UNITS);
  }
}

/* Every operation often on all ranks, and on parts of them at once. */
static void check_results(void) {
  MPI_Comm half, reversed;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, (rank * 7 + 3) % procs, &reversed);
  for (uint64_t seed = 0; seed < 20; seed++)
    check_communicator(MPI_COMM_WORLD, "MPI_COMM_WORLD", seed);
  check_communicator(MPI_COMM_SELF, "MPI_COMM_SELF", 50);
  for (uint64_t seed = 0; seed < 4; seed++) {
    check_communicator(half, "half", 60 + 2 * seed + (uint64_t)(rank % 2));
    check_communicator(reversed, "reversed", 80 + seed);
  }
  MPI_Comm_free(&half);
  MPI_Comm_free(&reversed);
}

/* ---- Communicators ---- */

static int copies;

static int count_copies(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)key, (void)extra, (void)in, (void)out;
  copies++;
  *flag = 0;
  return MPI_SUCCESS;
}

static void check_sum(MPI_Comm comm, int value) {
  int size, sum = 0, sent = value;
  MPI_Comm_size(comm, &size);
  EXPECT_EQUAL(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  EXPECT_EQUAL(sum, value * size);
  EXPECT_EQUAL(MPI_Bcast(&sent, 1, MPI_INT, 0, comm), MPI_SUCCESS);
  EXPECT_EQUAL(sent, value);
}

/* Attributes of the application are its own business. */
static void check_attributes(void) {
  int key;
  MPI_Comm comm;
  test_case("attributes");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_keyval(count_copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, &key);
  check_sum(comm, 3);
  EXPECT_EQUAL(copies, 0);
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&key);
}

static int sum_last(MPI_Comm comm, int key, void *value, void *extra) {
  (void)key, (void)value, (void)extra;
  check_sum(comm, 5);
  return MPI_SUCCESS;
}

static int free_inner(MPI_Comm comm, int key, void *inner, void *extra) {
  (void)comm, (void)key, (void)extra;
  return MPI_Comm_free(inner);
}

static int sum_on_outer(MPI_Comm comm, int key, void *outer, void *extra) {
  (void)comm, (void)key, (void)extra;
  check_sum(*(MPI_Comm *)outer, 5);
  return MPI_SUCCESS;
}

/* Likewise where it frees another one, which calls on the first. */
static void check_nested_frees(int count) {
  int of_outer, of_inner;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_inner, &of_outer, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sum_on_outer, &of_inner, NULL);
  for (int i = 0; i < count; i++) {
    MPI_Comm outer, inner;
    test_case("calls while two communicators are freed, %d", i);
    if (i % 2 == 0)
      MPI_Comm_dup(MPI_COMM_WORLD, &outer);
    else
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &outer);
    MPI_Comm_dup(outer, &inner);
    check_sum(outer, i);
    check_sum(inner, i);
    MPI_Comm_set_attr(outer, of_outer, &inner);
    MPI_Comm_set_attr(inner, of_inner, &outer);
    MPI_Comm_free(&outer);
  }
  MPI_Comm_free_keyval(&of_outer);
  MPI_Comm_free_keyval(&of_inner);
}

/* Calls on a communicator that is being freed leave nothing to the next one with its handle. */
static void check_last_calls(int count) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sum_last, &key, NULL);
  for (int i = 0; i < count; i++) {
    MPI_Comm comm;
    test_case("calls while a communicator is freed, %d", i);
    if (i % 2 == 0)
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
    check_sum(comm, i);
    MPI_Comm_set_attr(comm, key, &key);
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free_keyval(&key);
}

/* One after the other, and some at a time. */
static void check_many(int count) {
  MPI_Comm alive[ALIVE];
  for (int i = 0; i < count + ALIVE; i++) {
    if (i % 100 == 0)
      test_case("communicator %d of %d", i, count);
    if (i >= ALIVE)
      MPI_Comm_free(&alive[i % ALIVE]);
    if (i >= count)
      continue;
    if (i % 2 == 0)
      MPI_Comm_dup(MPI_COMM_WORLD, &alive[i % ALIVE]);
    else
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &alive[i % ALIVE]);
    check_sum(alive[i % ALIVE], i);
  }
}

static void check_intercommunicator(void) {
  MPI_Comm half, inter;
  int lower = rank < procs / 2, sum = 0, value = 1;
  if (procs < 2)
    return;
  test_case("an intercommunicator");
  MPI_Comm_split(MPI_COMM_WORLD, lower, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, lower ? procs / 2 : 0, 7, &inter);
  EXPECT_EQUAL(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter), MPI_SUCCESS);
  EXPECT_EQUAL(sum, lower ? procs - procs / 2 : procs / 2);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

/* ---- Errors ---- */

static int handled;

static void remember(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  MPI_Error_class(*code, &handled);
}

static void expect_class(int code, int expected) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  EXPECT_EQUAL(class, expected);
  EXPECT_EQUAL(handled, expected);
  handled = MPI_SUCCESS;
}

/* MPICH can be built to look at no arguments. */
static int library_checks_arguments(MPI_Comm comm) {
  int number = 0, code = PMPI_Bcast(&number, -1, MPI_INT, 0, comm);
  handled = MPI_SUCCESS;
  return code != MPI_SUCCESS;
}

static void check_errors(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  int number = 5, sum = 0;
  double real = 1, real_sum = 0;
  test_case("errors");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(remember, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  check_sum(comm, 4); /* the private communicator is there */
  if (library_checks_arguments(comm)) {
    expect_class(MPI_Bcast(&number, 1, MPI_INT, procs, comm), MPI_ERR_ROOT);
    expect_class(MPI_Bcast(&number, -1, MPI_INT, 0, comm), MPI_ERR_COUNT);
    expect_class(MPI_Bcast(&number, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    expect_class(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP);
    expect_class(MPI_Allreduce(&real, &real_sum, 1, MPI_DOUBLE, MPI_BXOR, comm), MPI_ERR_OP);
  }
  check_sum(comm, 5);
  EXPECT_EQUAL(handled, MPI_SUCCESS);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

/* A message that is too long for its receiver. */
static void check_truncation(bool brief) {
  MPI_Comm pair;
  MPI_Errhandler handler;
  int numbers[4] = {1, 2, 3, 4}, sums[4];
  test_case("a truncated message");
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  check_sum(pair, 6);
  MPI_Comm_create_errhandler(remember, &handler);
  MPI_Comm_set_errhandler(pair, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* where MPICH reports to a rank that waits */
  if (rank % 2 == 1)
    expect_class(MPI_Bcast(numbers, 2, MPI_INT, 0, pair), MPI_ERR_TRUNCATE);
  else
    EXPECT_EQUAL(MPI_Bcast(numbers, 4, MPI_INT, 0, pair), MPI_SUCCESS);
  if (brief && rank % 2 == 1) /* by a method that waits for two requests at once */
    expect_class(MPI_Allreduce(numbers, sums, 2, MPI_INT, MPI_SUM, pair), MPI_ERR_TRUNCATE);
  else if (brief && rank % 2 == 0 && rank + 1 < procs)
    EXPECT_EQUAL(MPI_Allreduce(numbers, sums, 4, MPI_INT, MPI_SUM, pair), MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&pair);
}

/* Beside MPI_IN_PLACE a type has no meaning, and may be one that is no more. */
static void check_freed_types(void) {
  MPI_Datatype freed, type;
  MPI_Type_contiguous(3, MPI_INT, &freed);
  type = freed;
  MPI_Type_free(&freed);
  int *all = test_allocate((size_t)procs * sizeof *all);
  int *ones = test_allocate(2 * (size_t)procs * sizeof *ones), *displs = ones + procs;
  test_case("types that were freed, beside MPI_IN_PLACE");
  for (int i = 0; i < procs; i++) {
    ones[i] = 1;
    displs[i] = i;
    all[i] = i == rank ? rank + 1 : -1;
  }
  EXPECT_EQUAL(MPI_Allgather(MPI_IN_PLACE, 7, type, all, 1, MPI_INT, MPI_COMM_WORLD), MPI_SUCCESS);
  EXPECT_EQUAL(MPI_Allgatherv(MPI_IN_PLACE, 7, type, all, ones, displs, MPI_INT, MPI_COMM_WORLD),
               MPI_SUCCESS);
  if (rank == 0) {
    EXPECT_EQUAL(MPI_Gather(MPI_IN_PLACE, 7, type, all, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, 7, type, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  } else {
    EXPECT_EQUAL(MPI_Gather(&all[rank], 1, MPI_INT, NULL, 7, type, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Scatter(NULL, 7, type, &all[rank], 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  }
  for (int i = 0; i < procs; i++)
    EXPECT_EQUAL(all[i], i + 1);
  EXPECT_EQUAL(MPI_Alltoall(MPI_IN_PLACE, 7, type, all, 1, MPI_INT, MPI_COMM_WORLD), MPI_SUCCESS);
  for (int i = 0; i < procs; i++)
    EXPECT_EQUAL(all[i], rank + 1);
  free(all);
  free(ones);
}

/* ---- Threads ---- */

static void *work(void *comm) {
  for (uint64_t seed = 0; seed < 3; seed++)
    check_communicator(*(MPI_Comm *)comm, "a thread's communicator", 100 + seed);
  return NULL;
}

static void check_threads(void) {
  pthread_t threads[THREADS];
  MPI_Comm comms[THREADS];
  for (int i = 0; i < THREADS; i++)
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, &comms[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    MPI_Comm_free(&comms[i]);
  }
}

static void break_promise(void) {
  MPI_Comm comm = application_promise(MPI_COMM_WORLD);
  int *counts = test_allocate(2 * (size_t)procs * sizeof *counts), *displs = counts + procs;
  int *numbers = test_allocate(2 * ((size_t)procs + 1) * sizeof *numbers), *received = numbers + procs + 1;
  for (int i = 0; i < procs; i++) {
    counts[i] = 1;
    displs[i] = i;
  }
  for (int call = 0; call < 2; call++) {
    test_case("an alltoallv with %d numbers of rank 1 for itself", call + 1);
    if (rank == 1)
      counts[1] = call + 1;
    EXPECT_EQUAL(MPI_Alltoallv(numbers, counts, displs, MPI_INT, received, counts, displs, MPI_INT, comm),
                 MPI_SUCCESS);
  }
  free(counts);
  free(numbers);
  MPI_Comm_free(&comm);
}

/* Breaks the promise with counts that no int holds. */
static void break_large_promise(void) {
#ifdef SWP_HAVE_LARGE_COUNTS
  MPI_Comm comm = application_promise(MPI_COMM_WORLD);
  int *ones = test_allocate(2 * (size_t)procs * sizeof *ones), *displs = ones + procs;
  int *numbers = test_allocate(2 * (size_t)procs * sizeof *numbers);
  for (int i = 0; i < procs; i++) {
    ones[i] = 1;
    displs[i] = i;
  }
  struct lists lists = application_widen(ones, displs, comm);
  for (int call = 0; call < 2; call++) {
    test_case("call %d of an alltoallv with large counts", call);
    if (rank == 1)
      lists.counts[1] = call == 0 ? 1 : ((MPI_Count)1 << 32) + 1;
    EXPECT_EQUAL(MPI_Alltoallv_c(numbers, lists.counts, lists.displs, MPI_INT, numbers + procs, lists.counts,
                                 lists.displs, MPI_INT, comm),
                 MPI_SUCCESS);
  }
  free(lists.counts), free(lists.displs);
  free(ones);
  free(numbers);
  MPI_Comm_free(&comm);
#else
  if (rank == 0)
    printf("no large counts\n");
#endif
}

/* All ranks together receive what they send. An error is MPI's, on some ranks. */
static void check_unmatched(void) {
  MPI_Comm comm = application_promise(MPI_COMM_WORLD);
  int *counts = test_allocate(2 * (size_t)procs * sizeof *counts), *displs = counts + procs;
  int *numbers = test_allocate(4 * (size_t)procs * sizeof *numbers);
  for (int i = 0; i < procs; i++) {
    counts[i] = rank == 0 && i == 1 ? 2 : 1;
    displs[i] = 2 * i;
    numbers[2 * i] = numbers[2 * i + 1] = rank;
  }
  test_case("blocks that do not match");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* where MPICH reports to a rank that waits */
  MPI_Alltoallv(numbers, counts, displs, MPI_INT, numbers + 2 * (size_t)procs, counts, displs, MPI_INT, comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  free(counts);
  free(numbers);
  MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
  int communicators = 200, provided;
  bool brief = false, one_thread = false, truncation = false;
  if (argc == 3 && strcmp(argv[1], "--table") == 0)
    return write_table(atoi(argv[2]));
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  test_begin(&argc, &argv, "swp_pmpi");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  if (argc == 2 && strncmp(argv[1], "--break-", 8) == 0) {
    (strcmp(argv[1], "--break-promise") == 0 ? break_promise : break_large_promise)();
    return test_end();
  }
  if (argc == 2 && strcmp(argv[1], "--unmatched") == 0) {
    check_unmatched();
    return test_end();
  }
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--brief") == 0)
      brief = true;
    else if (strcmp(argv[i], "--wild") == 0)
      wild = true;
    else if (strcmp(argv[i], "--one-thread") == 0)
      one_thread = true;
    else if (strcmp(argv[i], "--truncation") == 0)
      truncation = true;
    else if (strcmp(argv[i], "--communicators") == 0 && i + 1 < argc)
      communicators = atoi(argv[++i]);
    else
      EXPECT(false, "unknown argument '%s'", argv[i]);
  }
  calls_begin();
  if (!brief)
    check_results();
  if (!brief && !one_thread && provided == MPI_THREAD_MULTIPLE)
    check_threads();
  calls_end();
  check_freed_types();
  check_attributes();
  check_last_calls(brief ? 4 : 2 * ALIVE);
  check_nested_frees(brief ? 4 : ALIVE);
  check_intercommunicator();
  check_errors();
  if (truncation)
    check_truncation(brief);
  check_many(communicators);
  return test_end();
}
