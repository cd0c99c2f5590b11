/*
 * Two threads of each rank at once. Each with a communicator of its own: plans are made, executed, overlapped
 * and freed in both, by methods that differ, and one thread may forward for the other's exchanges; also plans
 * of an allreduce. Then both
 * with one communicator and its arena: one plans and frees, while the other executes a plan and frees it.
 */
#include "oracle.h"
#include "testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, MOST_SPECS = 64, ROUNDS = 2 };

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

/* Sums by an allreduce with all methods but those that set variables of the whole process. */
static void check_sums(const struct worker *worker) {
  enum { CALLS = 20 };
  const struct specs *specs = &worker->specs[SWP_ALLREDUCE];
  const struct swp_collective problem = {
      .operation = SWP_ALLREDUCE, .recv_count = 1, .recv_type = MPI_INT, .op = MPI_SUM};
  int procs;
  MPI_Comm_size(worker->comm, &procs);
  for (int i = 0; i < specs->count; i++) {
    swp_plan *plan = NULL;
    const char *method = spec(worker, SWP_ALLREDUCE, i);
    test_case("allreduce %s in a thread", method);
    if (strstr(method, "algorithm=") != NULL)
      continue;
    int error = test_agreed(worker->comm, swp_collective_plan(worker->comm, &problem, method, NULL, &plan));
    EXPECT(error == SWP_SUCCESS || error == SWP_ERR_NOT_APPLICABLE, "error %d: %s", error,
           swp_error_message());
    for (int call = 0; error == SWP_SUCCESS && call < CALLS; call++) {
      int sum = -1;
      EXPECT_ERROR(swp_collective_execute(plan, &call, &sum), SWP_SUCCESS);
      EXPECT_EQUAL(sum, call * procs);
    }
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
}

static void check_round(const struct worker *worker) {
  check_sums(worker);
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
  for (int i = 0; i < nfamilies; i++)
    check_exchange(worker->comm, "shared", &families[i], 24);
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
  int provided;
  struct specs specs[SWP_ALLREDUCE + 1] = {{0}};
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  test_begin(&argc, &argv, "swp_threads");
  for (int operation = SWP_EXCHANGE; operation <= SWP_DISCOVERY; operation++)
    gather_specs(operation, &specs[operation]);
  gather_specs(SWP_ALLREDUCE, &specs[SWP_ALLREDUCE]);
  EXPECT(provided == MPI_THREAD_MULTIPLE, "this MPI does not let several threads call it");
  if (provided == MPI_THREAD_MULTIPLE) {
    run_threads(specs);
    share_a_communicator(&specs[SWP_EXCHANGE]);
  }
  free(specs[SWP_EXCHANGE].words);
  free(specs[SWP_DISCOVERY].words);
  free(specs[SWP_ALLREDUCE].words);
  return test_end();
}
