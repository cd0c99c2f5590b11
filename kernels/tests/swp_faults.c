/* A failure below the library, in MPI or the machine, becomes an error of the library's own. */
#define _GNU_SOURCE /* cpu_set_t */
#include "attempt.h"
#include "oracle.h"
#include "outstanding.h"
#include "testing.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank, procs;

static bool receives_fail;

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request) {
  return receives_fail ? MPI_ERR_OTHER : PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

static bool sends_fail;

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request) {
  return sends_fail ? MPI_ERR_OTHER : PMPI_Isend(buffer, count, type, destination, tag, comm, request);
}

static bool splits_fail;

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part) {
  return splits_fail ? MPI_ERR_OTHER : PMPI_Comm_split(comm, color, key, part);
}

/* All ranks agree on the error, and each keeps the code of its own. It is the method's own split that fails,
   as earlier cases have found the nodes. */
static void a_failing_mpi_call_refuses_the_plan(void) {
  struct swp_collective problem = {SWP_BCAST, .recv_count = 4, .recv_type = MPI_INT, .op = MPI_OP_NULL};
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  swp_plan *plan = NULL;
  test_case("MPI_Comm_split fails");
  hints.ppn = 2;
  splits_fail = true;
  int error = swp_collective_plan(MPI_COMM_WORLD, &problem, "twolevel", &hints, &plan);
  splits_fail = false;
  EXPECT_ERROR(error, SWP_ERR_MPI);
  EXPECT_EQUAL(swp_error_mpi(), MPI_ERR_OTHER);
}

/* Rank 0 fails when it has begun to receive from rank 1, whose message comes later: into memory that is kept.
 */
static void a_message_after_a_failure_hurts_nobody(void) {
  enum { BYTES = 200000 };
  static char data[BYTES];
  const void *pointers[1] = {data};
  const int64_t bytes[1] = {BYTES};
  const int other = 1 - rank;
  swp_plan *plan = NULL;
  swp_inbox *inbox = NULL;
  test_case("a message after a failure");
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, "pex", NULL, &plan), SWP_SUCCESS);
  memset(data, 1 + rank, sizeof data);
  sends_fail = rank == 0;
  int error = swp_discovery_execute(plan, rank < 2 && procs > 1, &other, bytes, pointers, &inbox);
  sends_fail = false;
  if (rank == 0 && procs > 1) {
    EXPECT_ERROR(error, SWP_ERR_MPI);
    EXPECT(inbox == NULL, "the inbox of the failed call is left");
    MPI_Send(data, BYTES, MPI_BYTE, 1, 0, plan->comm); /* what rank 1 waits for */
  } else {
    EXPECT_ERROR(error, SWP_SUCCESS);
    EXPECT_EQUAL(inbox->nsources, rank == 1);
  }
  swp_inbox_free(&inbox);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* An exchange that forwards may fail while its rank waits for something else. */
static void a_failure_in_the_background_is_reported_by_the_wait(void) {
  struct traffic *traffic = traffic_new(&families[5], procs, 0); /* dense */
  struct swp_exchange problem = exchange_of(traffic, rank, 8, 0);
  static double send[64], recv[64];
  swp_plan *plan = NULL;
  test_case("a failure in the background");
  EXPECT_ERROR(swp_exchange_plan(MPI_COMM_WORLD, &problem, "stfw:dims=2", NULL, &plan), SWP_SUCCESS);
  EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_SUCCESS);
  sends_fail = true;
  while (exchange_plan_of(plan)->background.error == SWP_SUCCESS)
    swp_outstanding_progress();
  sends_fail = false;
  EXPECT_ERROR(swp_plan_free(&plan), SWP_ERR_STATE);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_MPI);
  EXPECT(strstr(swp_error_message(), "MPI_Isend") != NULL, "'%s' does not name it", swp_error_message());
  EXPECT_EQUAL(swp_error_mpi(), MPI_ERR_OTHER);
  EXPECT_ERROR(swp_wait(plan), SWP_ERR_POISONED);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  exchange_free(&problem);
  traffic_free(traffic);
}

static void a_failing_mpi_call_poisons_the_plan(void) {
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL;
  double send[3] = {1, 2, 3}, recv[4];
  test_case("MPI_Irecv fails");
  attempt_plan(&attempt, &plan);
  receives_fail = true;
  int error = swp_exchange_execute(plan, send, recv);
  receives_fail = false;
  if (procs > 1) {
    EXPECT_ERROR(error, SWP_ERR_MPI);
    EXPECT(strstr(swp_error_message(), "MPI_Irecv") != NULL, "'%s' does not name it", swp_error_message());
    EXPECT_ERROR(swp_exchange_execute(plan, send, recv), SWP_ERR_POISONED);
    EXPECT_ERROR(swp_exchange_start(plan, send, recv), SWP_ERR_POISONED);
    EXPECT_ERROR(swp_wait(plan), SWP_ERR_POISONED);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

static void a_failing_mpi_call_poisons_a_plan_of_fields(void) {
  static const int64_t bytes[] = {8, 8};
  static double data[4][4];
  const void *const send[] = {data[0], data[1]};
  void *const recv[] = {data[2], data[3]};
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL;
  test_case("MPI_Irecv fails in an exchange of fields");
  EXPECT_ERROR(swp_fields_plan(MPI_COMM_WORLD, &attempt.problem, 2, bytes, "direct", NULL, &plan),
               SWP_SUCCESS);
  receives_fail = true;
  int error = swp_fields_start(plan, send, recv);
  receives_fail = false;
  if (procs > 1) {
    EXPECT_ERROR(error, SWP_ERR_MPI);
    EXPECT_ERROR(swp_fields_execute(plan, send, recv), SWP_ERR_POISONED);
    EXPECT_ERROR(swp_fields_start(plan, send, recv), SWP_ERR_POISONED);
    EXPECT_ERROR(swp_wait(plan), SWP_ERR_POISONED);
  } else {
    EXPECT_ERROR(swp_wait(plan), SWP_SUCCESS);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* MPICH has 2048 communicators; with an MPI that has more this tests nothing. */
static void running_out_of_communicators_is_an_error(void) {
  enum { MOST = 2100 };
  static swp_plan *plans[MOST];
  int count = 0, error = SWP_SUCCESS;
  test_case("many plans");
  while (procs <= 2 && count < MOST && error == SWP_SUCCESS) {
    error = test_agreed(MPI_COMM_WORLD, swp_discovery_plan(MPI_COMM_WORLD, "pex", NULL, &plans[count]));
    count += error == SWP_SUCCESS;
  }
  EXPECT(error == SWP_SUCCESS || error == SWP_ERR_MPI, "error %d: %s", error, swp_error_message());
  while (count > 0)
    EXPECT_ERROR(swp_plan_free(&plans[--count]), SWP_SUCCESS);
}

static MPI_Comm watched = MPI_COMM_NULL;
static int calls_on_watched;

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  calls_on_watched += comm == watched;
  return PMPI_Allreduce(in, out, count, type, op, comm);
}

/* There, errors end the job. */
static void planning_sends_nothing_on_the_callers_communicator(void) {
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL;
  test_case("the first plan on a communicator");
  MPI_Comm_dup(MPI_COMM_WORLD, &watched);
  calls_on_watched = 0;
  EXPECT_ERROR(swp_exchange_plan(watched, &attempt.problem, "direct", NULL, &plan), SWP_SUCCESS);
  EXPECT_EQUAL(calls_on_watched, 0);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Comm_free(&watched);
}

static bool machine_is_huge;

/* Stands for a machine with more CPUs than a cpu_set_t has room for. */
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set) {
  return machine_is_huge ? -1 : (int)syscall(SYS_sched_getaffinity, process, bytes, set) > 0 ? 0 : -1;
}

static void the_cores_of_a_huge_machine_are_counted(void) {
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL;
  MPI_Comm fresh;
  test_case("more than 1024 CPUs");
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  machine_is_huge = true;
  EXPECT_ERROR(swp_exchange_plan(fresh, &attempt.problem, "direct", NULL, &plan), SWP_SUCCESS);
  machine_is_huge = false;
  EXPECT_EQUAL(plan->yields, procs > sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Comm_free(&fresh);
}

static void the_callers_error_handler_stays(void) {
  struct attempt attempt;
  attempt_make(&attempt);
  swp_plan *plan = NULL;
  MPI_Errhandler handler;
  test_case("an intercommunicator");
  if (procs > 1) {
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
    EXPECT_ERROR(swp_exchange_plan(inter, &attempt.problem, "direct", NULL, &plan), SWP_ERR_ARGUMENT);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  EXPECT(handler == MPI_ERRORS_ARE_FATAL, "the caller's error handler was changed");
  MPI_Errhandler_free(&handler);
}

/* Items of 2 GiB: planned without buffers. What goes through MPI's vector collectives cannot carry them. */
static void what_ints_cannot_carry_is_refused(void) {
  static const struct {
    const char *method;
    int error;
  } rows[] = {{"direct", SWP_SUCCESS},
              {"nap", SWP_SUCCESS},
              {"alltoallv", SWP_ERR_TOO_LARGE},
              {"neighbor", SWP_ERR_TOO_LARGE}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct attempt attempt;
    attempt_make(&attempt);
    swp_plan *plan = NULL;
    attempt.problem.item_bytes = (int64_t)INT_MAX + 1;
    attempt.problem.send_items = NULL;
    attempt.problem.nitems = 4;
    attempt.method = rows[i].method;
    attempt.hints.ppn = 1; /* a node that sends from several ranks gathers in a buffer */
    test_case("%s with items of 2 GiB", attempt.method);
    EXPECT_ERROR(attempt_plan(&attempt, &plan), rows[i].error);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
}

/* Two messages that go to the same rank first; of their data nothing is touched. Ranks for which they could
   have had messages fail, too. */
static void a_letter_that_ints_cannot_carry_poisons_the_plan(void) {
  const size_t length = 1200000000;
  const void *data = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const int ranks[] = {1, 2, 3};
  const int64_t bytes[] = {(int64_t)length, (int64_t)length, (int64_t)length};
  const void *const datas[] = {data, data, data};
  swp_plan *plan = NULL;
  swp_inbox *inbox = NULL;
  test_case("letter of over 2 GiB");
  EXPECT(data != MAP_FAILED, "no room for addresses");
  EXPECT_ERROR(swp_discovery_plan(MPI_COMM_WORLD, "stfw:dims=2", NULL, &plan), SWP_SUCCESS);
  int error = swp_discovery_execute(plan, rank == 0 ? 3 : 0, ranks, bytes, datas, &inbox);
  EXPECT_ERROR(error, SWP_ERR_MEMORY);
  EXPECT(rank > 0 || strstr(swp_error_message(), "to forward to another") != NULL, "'%s'",
         swp_error_message());
  EXPECT(inbox == NULL, "there is an inbox");
  EXPECT_ERROR(swp_discovery_execute(plan, 0, NULL, NULL, NULL, &inbox), SWP_ERR_POISONED);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  munmap((void *)(uintptr_t)data, length);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_faults");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  a_failing_mpi_call_poisons_the_plan();
  a_failing_mpi_call_poisons_a_plan_of_fields();
  a_message_after_a_failure_hurts_nobody();
  if (procs == 4) {
    a_failing_mpi_call_refuses_the_plan();
    a_failure_in_the_background_is_reported_by_the_wait();
    a_letter_that_ints_cannot_carry_poisons_the_plan();
  }
  running_out_of_communicators_is_an_error();
  the_cores_of_a_huge_machine_are_counted();
  the_callers_error_handler_stays();
  planning_sends_nothing_on_the_callers_communicator();
  what_ints_cannot_carry_is_refused();
  return test_end();
}
