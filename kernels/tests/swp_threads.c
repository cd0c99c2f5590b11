/*
 * Two threads of each rank at once. Each with a communicator of its own: plans are made, executed, overlapped
 * and freed in both, by methods that differ, and one thread may forward for the other's exchanges; also plans
 * of collectives. Then both with one communicator and its arenas: one plans and frees, while the other
 * executes a plan and frees it. All of it again on nodes of two ranks.
 */
#include "nodes.h"
#include "oracle.h"
#include "testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, MOST_SPECS = 64, ROUNDS = 2, OPERATIONS = SWP_ALLREDUCE + 1 };

static const enum swp_operation collectives[] = {SWP_ALLREDUCE, SWP_BCAST, SWP_GATHER};

struct specs {
  int count;
  const char *list[MOST_SPECS];
  char *words; /* storage */
};

struct worker {
  pthread_t thread;
  pthread_barrier_t *begin; /* of all threads */
  int number;
  MPI_Comm comm;
  const struct specs *specs; /* for each operation */
};

static void gather_specs(enum swp_operation operation, struct specs *specs) {
  int procs;
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  *specs = (struct specs){.words = all_specs(operation, procs)};
  for (char *word = strtok(specs->words, " "); word != NULL && specs->count < MOST_SPECS;
       word = strtok(NULL, " "))
    specs->list[specs->count++] = word;
}

/* The i-th spec for an operation; the threads are half the list apart. */
static const char *spec(const struct worker *worker, enum swp_operation operation, int i) {
  const struct specs *specs = &worker->specs[operation];
  return specs->list[(i + worker->number * specs->count / THREADS) % specs->count];
}

/* The text of an error is this thread's, whatever the other one fails at meanwhile. */
static void check_error(const struct worker *worker) {
  char method[32];
  swp_plan *plan = NULL;
  snprintf(method, sizeof method, "thread%d", worker->number);
  test_case("an unknown method");
  EXPECT_ERROR(test_agreed(worker->comm, swp_discovery_plan(worker->comm, method, NULL, &plan)),
               SWP_ERR_METHOD);
  EXPECT(strstr(swp_error_message(), method) != NULL, "another thread's error: %s", swp_error_message());
}

static int value_of(int rank, int call) {
  return 1000 * call + rank;
}

static void expect_received(const struct swp_collective *problem, MPI_Comm comm, int call,
                            const int *received) {
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  if (problem->operation == SWP_ALLREDUCE)
    EXPECT_EQUAL(received[0], procs * value_of(0, call) + procs * (procs - 1) / 2);
  if (problem->operation == SWP_BCAST)
    EXPECT_EQUAL(received[0], value_of(problem->root, call));
  for (int i = 0; problem->operation == SWP_GATHER && rank == problem->root && i < procs; i++)
    EXPECT_EQUAL(received[i], value_of(i, call));
}

/* An item of each rank, from or to another root in each call. */
static void execute_collective(MPI_Comm comm, struct swp_collective *problem, swp_plan *plan) {
  enum { CALLS = 20 };
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  int *received = test_allocate((size_t)procs * sizeof *received);
  for (int call = 0; call < CALLS; call++) {
    const int sent = received[0] = value_of(rank, call);
    problem->root = call % procs;
    EXPECT_ERROR(swp_collective_set(plan, problem), SWP_SUCCESS);
    EXPECT_ERROR(swp_collective_execute(plan, &sent, received), SWP_SUCCESS);
    expect_received(problem, comm, call, received);
  }
  free(received);
}

/* Of all methods but those that set variables of the whole process. */
static void check_collectives(const struct worker *worker, enum swp_operation operation) {
  struct swp_collective problem = {.operation = operation,
                                   .send_count = 1,
                                   .send_type = MPI_INT,
                                   .recv_count = 1,
                                   .recv_type = MPI_INT,
                                   .op = MPI_SUM};
  for (int i = 0; i < worker->specs[operation].count; i++) {
    swp_plan *plan = NULL;
    const char *method = spec(worker, operation, i);
    test_case("%s %s in a thread, %d ranks a node", swp_operation_name(operation), method, oracle_hints.ppn);
    if (strstr(method, "algorithm=") != NULL)
      continue;
    int error =
        test_agreed(worker->comm, swp_collective_plan(worker->comm, &problem, method, &oracle_hints, &plan));
    const bool must = oracle_hints.ppn > 0 && strcmp(method, "twolevel:node=shared") == 0;
    EXPECT(error == SWP_SUCCESS || (error == SWP_ERR_NOT_APPLICABLE && !must), "error %d: %s", error,
           swp_error_message());
    if (error == SWP_SUCCESS)
      execute_collective(worker->comm, &problem, plan);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
}

static void check_round(const struct worker *worker) {
  for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++)
    check_collectives(worker, collectives[i]);
  for (int i = 0; i < worker->specs[SWP_EXCHANGE].count; i++) {
    const char *three[3];
    for (int k = 0; k < 3; k++)
      three[k] = spec(worker, SWP_EXCHANGE, i + k);
    check_exchange(worker->comm, three[0], &families[i % nfamilies], 24);
    check_exchange_outstanding(worker->comm, three);
    check_error(worker);
    check_discovery_during_exchange(worker->comm, three[0], spec(worker, SWP_DISCOVERY, i));
  }
  for (int i = 0; i < worker->specs[SWP_DISCOVERY].count; i++)
    check_discovery(worker->comm, spec(worker, SWP_DISCOVERY, i), &families[i % nfamilies], 24);
}

static void *work(void *argument) {
  const struct worker *worker = argument;
  pthread_barrier_wait(worker->begin);
  check_exchange(worker->comm, "neighbor", &families[0], 24); /* the process's first graph, in both at once */
  for (int round = 0; round < ROUNDS; round++)
    check_round(worker);
  return NULL;
}

static void run_threads(const struct specs *specs) {
  struct worker workers[THREADS];
  pthread_barrier_t begin;
  pthread_barrier_init(&begin, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){.number = i, .begin = &begin, .specs = specs};
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
  }
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
      MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(workers[i].thread, NULL);
    MPI_Comm_free(&workers[i].comm);
  }
  pthread_barrier_destroy(&begin);
}

static void *plan_meanwhile(void *argument) {
  const struct worker *worker = argument;
  for (int i = 0; i < nfamilies; i++) {
    check_exchange(worker->comm, "shared", &families[i], 24);
    check_exchange(worker->comm, "nap:node=shared", &families[i], 24);
  }
  return NULL;
}

static void *execute_and_free(void *argument) {
  enum { CALLS = 50 };
  struct exchange_run *run = argument;
  for (uint64_t call = 0; call < CALLS; call++) {
    run_fill(run, call);
    EXPECT_ERROR(run_execute(run), SWP_SUCCESS);
    run_check(run, call);
  }
  run_close(run);
  return NULL;
}

static void share_a_communicator(const struct specs *specs) {
  struct worker worker = {.comm = MPI_COMM_WORLD};
  for (int i = 0; i < specs->count; i++) {
    struct exchange_run run;
    pthread_t thread;
    test_case("%s, while another thread plans on the communicator", specs->list[i]);
    if (!run_open(&run, worker.comm, specs->list[i], &families[0], (uint64_t)i, 24, 0))
      continue;
    if (pthread_create(&thread, NULL, execute_and_free, &run) != 0)
      MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    plan_meanwhile(&worker);
    pthread_join(thread, NULL);
  }
}

int main(int argc, char **argv) {
  int provided, procs;
  struct specs specs[OPERATIONS] = {{0}};
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  test_begin(&argc, &argv, "swp_threads");
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  for (int operation = SWP_EXCHANGE; operation < OPERATIONS; operation++)
    gather_specs(operation, &specs[operation]);
  EXPECT(provided == MPI_THREAD_MULTIPLE, "this MPI does not let several threads call it");
  const int most_ppn = provided != MPI_THREAD_MULTIPLE ? -1 : procs > 2 ? 2 : 0;
  for (oracle_hints.ppn = 0; oracle_hints.ppn <= most_ppn; oracle_hints.ppn += 2) {
    run_threads(specs);
    share_a_communicator(&specs[SWP_EXCHANGE]);
  }
  for (int operation = SWP_EXCHANGE; operation < OPERATIONS; operation++)
    free(specs[operation].words);
  return test_end();
}
