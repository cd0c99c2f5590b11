/* The node's memory cannot be had, or is off at a site: all ranks get the same refusal, or the default. */
#define _GNU_SOURCE /* memfd_create */
#include "attempt.h"
#include "memory_left.h"
#include "oracle.h"
#include "table_file.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int __real_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit(int resource, struct rlimit *limit);

static int rank, procs;

enum lack {
  LACKS_NOTHING,
  LACKS_FILES,
  HAS_SMALL_FILES,
  LACKS_DESCRIPTORS, /* to read how much memory is left */
  LACKS_MEMORY,
  LACKS_ROOM,
  SEES_OTHER_PROCESSES,
  LACKS
};

static enum lack lack;
static int files_made;
static int64_t mapped_before;   /* when a file was made last */
static bool others_take_memory; /* as soon as this rank has some */
static bool is_in_other_namespace, is_on_other_machine;
static int files_opened; /* of processes */
static char machine_without_memory[64];

int stat(const char *restrict path, struct stat *restrict found) {
  int failed = (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, 0);
  if (is_in_other_namespace && strcmp(path, "/proc/self/ns/pid") == 0)
    found->st_ino++;
  return failed;
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  if (lack == LACKS_DESCRIPTORS && strcmp(path, "/proc/meminfo") == 0) {
    errno = EMFILE;
    return -1;
  }
  files_opened += strncmp(path, "/proc/", 6) == 0 && strstr(path, "/fd/") != NULL;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
  if (is_on_other_machine && strstr(path, "/boot_id") != NULL)
    path = "/proc/self/stat"; /* which no other rank has */
  const int file = open(path, mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0600);
  return file < 0 ? NULL : fdopen(file, mode);
}

/* Bytes of the library's files that this process has. */
static int64_t mapped_bytes(void) {
  char line[512];
  int64_t bytes = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin, end;
    if (strstr(line, "memfd:switchpoint") != NULL && sscanf(line, "%lx-%lx", &begin, &end) == 2)
      bytes += (int64_t)(end - begin);
  }
  if (maps != NULL)
    fclose(maps);
  return bytes;
}

int memfd_create(const char *name, unsigned flags) {
  mapped_before = mapped_bytes();
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
  if (others_take_memory && offset > 0) /* what comes first is the token */
    swp_memory_root = machine_without_memory;
  return (int)syscall(SYS_fallocate, file, mode, offset, bytes);
}

/* A limit that is set would end MPICH 5 by SIGXFSZ, which makes files of its own meanwhile. */
int __wrap_getrlimit(int resource, struct rlimit *limit) {
  const int failed = __real_getrlimit(resource, limit);
  if (lack == HAS_SMALL_FILES && resource == RLIMIT_FSIZE)
    limit->rlim_cur = 4096;
  return failed;
}

/* Another process has the first rank's number where this rank is in a container of its own. */
int fstat(int file, struct stat *found) {
  int failed = (int)syscall(SYS_newfstatat, file, "", found, AT_EMPTY_PATH);
  if (lack == SEES_OTHER_PROCESSES)
    found->st_size++;
  return failed;
}

/* A root of files that describe a machine with less memory left than twice the least file. */
static void make_machine_without_memory(void) {
  char path[128];
  snprintf(machine_without_memory, sizeof machine_without_memory, "/tmp/swp_node_memory.%d", (int)getpid());
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
    {SWP_EXCHANGE, "shared", true},
    {SWP_EXCHANGE, "nap:node=shared", true},
    {SWP_DISCOVERY, "nap:node=shared", true},
    {SWP_DISCOVERY, "nap:find=dense,node=shared", true},
    {SWP_ALLREDUCE, "twolevel:node=shared", true},
};
enum { MOST_PROCS = 4, METHODS_BY_MEMORY = sizeof methods_by_memory / sizeof *methods_by_memory };

static int plan_by_memory_on(MPI_Comm comm, const struct by_memory *by, swp_plan **plan) {
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
  attempt_make(&attempt);
  attempt.hints.ppn = by->on_nodes ? 2 : 0;
  if (by->operation == SWP_EXCHANGE)
    return swp_exchange_plan(comm, &attempt.problem, by->method, &attempt.hints, plan);
  if (by->operation == SWP_DISCOVERY)
    return swp_discovery_plan(comm, by->method, &attempt.hints, plan);
  return swp_collective_plan(comm, &collective, by->method, &attempt.hints, plan);
}

/* Plans on a communicator of its own, as others may have memory already. */
static int plan_by_memory(const struct by_memory *by, swp_plan **plan) {
  MPI_Comm fresh;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  int error = plan_by_memory_on(fresh, by, plan);
  MPI_Comm_free(&fresh);
  return error;
}

/* One rank alone has no message for slots, and two have one node. */
static bool is_for_so_many(const struct by_memory *by) {
  return by->on_nodes ? procs > 2 : procs > 1 || by->operation != SWP_EXCHANGE;
}

/* The first rank of a file's ranks makes it. */
static bool makes_file(const struct by_memory *by, int culprit) {
  return by->on_nodes ? culprit % 2 == 0 : culprit == 0;
}

/* One rank lacks something; all are refused, with the reason, also those of nodes that have their memory. */
static void check_lack(const struct by_memory *by, int culprit, enum lack each) {
  static const char *const reasons[LACKS] = {"",
                                             "not implemented",
                                             "File too large",
                                             "for lack of a descriptor",
                                             "more than half of the 102400 left",
                                             "No space left",
                                             "not seen"};
  swp_plan *plan = NULL;
  test_case("%s %s, no memory of the node: %s on rank %d", swp_operation_name(by->operation), by->method,
            reasons[each], culprit);
  set_lack(rank == culprit ? each : LACKS_NOTHING);
  int error = test_agreed(MPI_COMM_WORLD, plan_by_memory(by, &plan));
  set_lack(LACKS_NOTHING);
  if ((each == LACKS_FILES || each == HAS_SMALL_FILES) && !makes_file(by, culprit)) {
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
}

static int plan_lent(MPI_Comm comm, int64_t item_bytes, swp_plan **plan) {
  struct attempt attempt;
  attempt_make(&attempt);
  attempt.problem.item_bytes = item_bytes;
  return swp_exchange_plan(comm, &attempt.problem, "lent", &attempt.hints, plan);
}

static void expect_refusal(const char *why) {
  swp_plan *plan = NULL;
  MPI_Comm fresh;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  int error = plan_lent(fresh, 1 << 20, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_ERR_NOT_APPLICABLE);
  EXPECT(strstr(swp_error_message(), why) != NULL, "'%s' does not say '%s'", swp_error_message(), why);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  MPI_Comm_free(&fresh);
}

/* Other plans may reserve memory at the same time, so that there was enough for each. */
static void memory_that_others_take_meanwhile_is_missed_by_all(int culprit) {
  test_case("others take the memory while rank %d takes its own", culprit);
  others_take_memory = rank == culprit;
  expect_refusal("more than the 102400 left");
  others_take_memory = false;
  swp_memory_root = "";
}

/* The first rank's number may be that of the other rank itself, or of any process. */
static void a_stranger_opens_nothing(int culprit, bool *is_stranger, const char *why) {
  test_case("'%s' on rank %d", why, culprit);
  *is_stranger = rank == culprit;
  files_opened = 0;
  expect_refusal(why);
  const bool opens = culprit > 0 && rank > 0 && rank != culprit;
  EXPECT((files_opened > 0) == opens, "%d files were opened", files_opened);
  *is_stranger = false;
}

/* A communicator's plans share an arena, those of virtual nodes too. */
static void a_second_plan_makes_no_file(void) {
  for (int i = 0; i < METHODS_BY_MEMORY; i++) {
    const struct by_memory *by = &methods_by_memory[i];
    swp_plan *plan = NULL;
    MPI_Comm fresh;
    test_case("%s %s, planned twice", swp_operation_name(by->operation), by->method);
    if (!is_for_so_many(by))
      continue;
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    for (int k = 0; k < 2; k++) {
      const int before = files_made;
      EXPECT_ERROR(plan_by_memory_on(fresh, by, &plan), SWP_SUCCESS);
      EXPECT_EQUAL(files_made - before, k == 0 && makes_file(by, rank));
      EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    }
    MPI_Comm_free(&fresh);
  }
}

/* Little memory stays for the next plan, but is not counted against one that needs more. */
static void memory_of_a_freed_plan_is_kept_only_if_little(void) {
  const int64_t before = mapped_bytes();
  swp_plan *plan = NULL;
  MPI_Comm fresh;
  test_case("memory of freed plans");
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  for (int i = 0; i < 2; i++) {
    EXPECT_ERROR(plan_lent(fresh, 8, &plan), SWP_SUCCESS);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    EXPECT(mapped_bytes() > before, "nothing is kept");
    mapped_before = before;
    EXPECT_ERROR(plan_lent(fresh, 1 << 20, &plan), SWP_SUCCESS);
    EXPECT_EQUAL(mapped_before, before);
    EXPECT(mapped_bytes() > before + (1 << 20), "%lld bytes", (long long)mapped_bytes());
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
    EXPECT_EQUAL(mapped_bytes(), before);
  }
  MPI_Comm_free(&fresh);
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

/* A method that the caller did not name gives way to the default, which says why. */
static void without_memory_of_the_node_the_default_takes_the_place_of_a_rule(void) {
  struct attempt attempt;
  struct swp_hints hints;
  struct swp_statistics statistics;
  char text[1024];
  attempt_make(&attempt);
  hints = attempt.hints;
  swp_table *table = table_file_make(
      "switchpoint-table 1\nrule op=exchange method=shared\nrule op=discovery method=shared\n");
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

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_node_memory");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  table_file_begin();
  make_machine_without_memory();
  a_lack_of_memory_of_the_node_is_an_error_of_all();
  for (int culprit = 0; procs > 1 && culprit < procs; culprit++) {
    memory_that_others_take_meanwhile_is_missed_by_all(culprit);
    a_stranger_opens_nothing(culprit, &is_in_other_namespace, "process numbers of their own");
    a_stranger_opens_nothing(culprit, &is_on_other_machine, "on several machines");
  }
  remove_machine_without_memory();
  a_second_plan_makes_no_file();
  if (procs > 1) /* one rank alone has no message to lend */
    memory_of_a_freed_plan_is_kept_only_if_little();
  with_node_memory_off_no_plan_makes_a_file();
  without_memory_of_the_node_the_default_takes_the_place_of_a_rule();
  table_file_end();
  return test_end();
}
