/* A failure below the library, in MPI or the machine, becomes an error of the library's own. */
#define _GNU_SOURCE /* cpu_set_t, memfd_create */
#include "attempt.h"
#include "memory_left.h"
#include "oracle.h"
#include "outstanding.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
static void a_failure_in_the_background_is_told_by_the_wait(void) {
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

enum lack { LACKS_NOTHING, LACKS_FILES, LACKS_MEMORY, LACKS_ROOM, SEES_OTHER_PROCESSES, LACKS };

static enum lack lack;
static int files_made;

int memfd_create(const char *name, unsigned flags) {
  files_made += strcmp(name, "switchpoint") == 0;
  if (lack == LACKS_FILES) {
    errno = ENOSYS;
    return -1;
  }
  return (int)syscall(SYS_memfd_create, name, flags);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
  if (lack == LACKS_ROOM) {
    errno = ENOSPC;
    return -1;
  }
  return (int)syscall(SYS_fallocate, file, mode, offset, bytes);
}

/* Another process has the first rank's number where this rank is in a container of its own. */
int fstat(int file, struct stat *found) {
  int failed = (int)syscall(SYS_newfstatat, file, "", found, AT_EMPTY_PATH);
  if (lack == SEES_OTHER_PROCESSES)
    found->st_size++;
  return failed;
}

static char machine_without_memory[64];

/* A root of files that tell of a machine with less memory left than twice the least file. */
static void make_machine_without_memory(void) {
  char path[128];
  snprintf(machine_without_memory, sizeof machine_without_memory, "/tmp/swp_faults.%d", (int)getpid());
  snprintf(path, sizeof path, "%s/proc", machine_without_memory);
  EXPECT(mkdir(machine_without_memory, 0700) == 0 && mkdir(path, 0700) == 0, "%s cannot be made", path);
  snprintf(path, sizeof path, "%s/proc/meminfo", machine_without_memory);
  FILE *file = fopen(path, "wb");
  EXPECT(file != NULL && fputs("MemTotal: 24683652 kB\nMemAvailable: 100 kB\n", file) >= 0 &&
             fclose(file) == 0,
         "%s cannot be written", path);
}

static void remove_machine_without_memory(void) {
  static const char *const names[] = {"/proc/meminfo", "/proc", ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128];
    snprintf(path, sizeof path, "%s%s", machine_without_memory, names[i]);
    remove(path);
  }
}

static void set_lack(enum lack each) {
  lack = each;
  swp_memory_root = each == LACKS_MEMORY ? machine_without_memory : "";
}

/* Methods that need memory of a node, of all ranks or of each node of two. */
static const struct by_memory {
  enum swp_operation operation;
  const char *method;
  bool on_nodes;
} methods_by_memory[] = {
    {SWP_EXCHANGE, "shared", false},
    {SWP_EXCHANGE, "lent", false},
    {SWP_DISCOVERY, "shared", false},
    {SWP_ALLREDUCE, "shared", false},
    {SWP_EXCHANGE, "nap:node=shared", true},
    {SWP_DISCOVERY, "nap:node=shared", true},
    {SWP_DISCOVERY, "nap:find=dense,node=shared", true},
    {SWP_ALLREDUCE, "twolevel:node=shared", true},
};
enum { MOST_PROCS = 4, METHODS_BY_MEMORY = sizeof methods_by_memory / sizeof *methods_by_memory };

/* On a communicator of its own, as others may have memory already. */
static int plan_by_memory(const struct by_memory *by, swp_plan **plan) {
  struct attempt attempt;
  static const int counts[MOST_PROCS] = {1, 1, 1, 1}, displs[MOST_PROCS] = {0, 1, 2, 3};
  const struct swp_collective collective = {.operation = by->operation,
                                            .send_count = 1,
                                            .send_type = MPI_INT,
                                            .recv_count = 1,
                                            .recv_type = MPI_INT,
                                            .recv_counts = counts,
                                            .displs = displs,
                                            .op = MPI_SUM,
                                            .send_counts = counts,
                                            .send_displs = displs};
  MPI_Comm fresh;
  int error;
  attempt_make(&attempt);
  attempt.hints.ppn = by->on_nodes ? 2 : 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  if (by->operation == SWP_EXCHANGE)
    error = swp_exchange_plan(fresh, &attempt.problem, by->method, &attempt.hints, plan);
  else if (by->operation == SWP_DISCOVERY)
    error = swp_discovery_plan(fresh, by->method, &attempt.hints, plan);
  else
    error = swp_collective_plan(fresh, &collective, by->method, &attempt.hints, plan);
  MPI_Comm_free(&fresh);
  return error;
}

/* One rank alone has no message for slots, and two have one node. */
static bool is_for_so_many(const struct by_memory *by) {
  return by->on_nodes ? procs > 2 : procs > 1 || by->operation != SWP_EXCHANGE;
}

/* The first rank of a file's ranks makes it; others need none. */
static bool makes_file(const struct by_memory *by, int culprit) {
  return by->on_nodes ? culprit % 2 == 0 : culprit == 0;
}

/* One rank lacks something; all are refused, with the reason, also those of nodes that have their memory. */
static void check_lack(const struct by_memory *by, int culprit, enum lack each) {
  static const char *const reasons[LACKS] = {"", "not implemented", "more than half of the 102400 left",
                                             "No space left", "not seen"};
  swp_plan *plan = NULL;
  test_case("%s %s, no memory of the node: %s on rank %d", swp_operation_name(by->operation), by->method,
            reasons[each], culprit);
  set_lack(rank == culprit ? each : LACKS_NOTHING);
  int error = test_agreed(MPI_COMM_WORLD, plan_by_memory(by, &plan));
  set_lack(LACKS_NOTHING);
  if ((each == LACKS_FILES || each == LACKS_MEMORY) && !makes_file(by, culprit)) {
    EXPECT_ERROR(error, SWP_SUCCESS);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  } else {
    EXPECT_ERROR(error, SWP_ERR_NOT_APPLICABLE);
    EXPECT(strstr(swp_error_message(), reasons[each]) != NULL, "'%s' does not say '%s'", swp_error_message(),
           reasons[each]);
  }
  EXPECT(plan == NULL, "a plan was made");
}

static void a_lack_of_memory_of_the_node_is_an_error_of_all(void) {
  make_machine_without_memory();
  for (int i = 0; i < METHODS_BY_MEMORY; i++) {
    const struct by_memory *by = &methods_by_memory[i];
    swp_plan *plan = NULL;
    for (int culprit = 0; is_for_so_many(by) && culprit < procs; culprit++)
      for (enum lack each = LACKS_FILES; each < LACKS; each++)
        check_lack(by, culprit, each);
    test_case("%s %s, memory of the node", swp_operation_name(by->operation), by->method);
    if (is_for_so_many(by)) {
      EXPECT_ERROR(plan_by_memory(by, &plan), SWP_SUCCESS);
      EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    }
  }
  remove_machine_without_memory();
}

static void expect_no_file(enum swp_operation operation, const char *spec) {
  for (int on_nodes = 0; on_nodes < 2; on_nodes++) {
    const struct by_memory by = {operation, spec, on_nodes == 1};
    swp_plan *plan = NULL;
    test_case("%s %s, node-memory is off, nodes: %d", swp_operation_name(operation), spec, on_nodes);
    int error = plan_by_memory(&by, &plan);
    EXPECT(error == SWP_SUCCESS || error == SWP_ERR_NOT_APPLICABLE || error == SWP_ERR_METHOD, "error %d: %s",
           error, swp_error_message());
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    EXPECT_EQUAL(files_made, 0);
  }
}

static void with_node_memory_off_no_plan_makes_a_file(void) {
  static const char *const untried[] = {"nap:sharing=no,node=shared", "nap:find=put,node=shared",
                                        "twolevel:node=shared,leaders=3"};
  test_case("files of earlier cases");
  EXPECT(rank > 0 || files_made > 0, "they are not counted");
  setenv("SWITCHPOINT_OFF", "node-memory", 1);
  files_made = 0;
  for (int operation = 0; swp_operation_name(operation) != NULL; operation++) {
    char *specs = all_specs((enum swp_operation)operation, procs);
    for (const char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
      expect_no_file((enum swp_operation)operation, spec);
    free(specs);
    for (size_t i = 0; i < sizeof untried / sizeof *untried; i++)
      expect_no_file((enum swp_operation)operation, untried[i]);
  }
  unsetenv("SWITCHPOINT_OFF");
}

static swp_table *table_of_shared(void) {
  char path[64] = "";
  swp_table *table = NULL;
  if (rank == 0) {
    snprintf(path, sizeof path, "/tmp/swp_faults.%d.table", (int)getpid());
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL &&
               fputs("switchpoint-table 1\nrule op=exchange method=shared\nrule op=discovery method=shared\n",
                     file) >= 0 &&
               fclose(file) == 0,
           "%s cannot be written", path);
  }
  MPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, swp_table_read(MPI_COMM_WORLD, path, &table)), SWP_SUCCESS);
  if (rank == 0)
    unlink(path);
  return table;
}

/* A method that the caller did not name gives way to the default, which says why. */
static void without_memory_of_the_node_the_default_takes_the_place_of_a_rule(void) {
  struct attempt attempt;
  struct swp_hints hints;
  struct swp_statistics statistics;
  char text[1024];
  attempt_make(&attempt);
  hints = attempt.hints;
  swp_table *table = table_of_shared();
  hints.table = table;
  for (int operation = 0; operation < 2; operation++) {
    swp_plan *plan = NULL;
    MPI_Comm fresh;
    test_case("a rule without memory of the node: operation %d", operation);
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    lack = rank == 0 ? LACKS_ROOM : LACKS_NOTHING;
    int error = operation == 0 ? swp_exchange_plan(fresh, &attempt.problem, "auto", &hints, &plan)
                               : swp_discovery_plan(fresh, "auto", &hints, &plan);
    lack = LACKS_NOTHING;
    EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_SUCCESS);
    EXPECT_ERROR(swp_plan_describe(plan, text, sizeof text), SWP_SUCCESS);
    const char *why = operation == 0 && procs == 1 ? "no message is of" : "No space left";
    EXPECT(strstr(text, "shared is passed over") != NULL && strstr(text, why) != NULL,
           "'%s' does not say why", text);
    if (operation == 0) { /* what the method had counted counts no more */
      EXPECT_ERROR(swp_plan_statistics(plan, NULL, &statistics), SWP_SUCCESS);
      EXPECT_EQUAL(statistics.mmax, procs > 1);
    }
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    MPI_Comm_free(&fresh);
  }
  swp_table_free(&table);
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

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_faults");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  a_failing_mpi_call_poisons_the_plan();
  a_failing_mpi_call_poisons_a_plan_of_fields();
  a_message_after_a_failure_hurts_nobody();
  if (procs == 4) {
    a_failing_mpi_call_refuses_the_plan();
    a_failure_in_the_background_is_told_by_the_wait();
  }
  running_out_of_communicators_is_an_error();
  a_lack_of_memory_of_the_node_is_an_error_of_all();
  with_node_memory_off_no_plan_makes_a_file();
  without_memory_of_the_node_the_default_takes_the_place_of_a_rule();
  the_cores_of_a_huge_machine_are_counted();
  the_callers_error_handler_stays();
  planning_sends_nothing_on_the_callers_communicator();
  what_ints_cannot_carry_is_refused();
  return test_end();
}
