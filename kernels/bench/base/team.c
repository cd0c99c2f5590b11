#define _GNU_SOURCE /* sched_getaffinity */
#include "team.h"

#include "error.h"
#include "machine.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if SWP_SIMULATED
#include <simgrid/host.h>

/* The cores of the machine's model, however many ranks it has. */
static int shared_cores(MPI_Comm node) {
  (void)node;
  return sg_host_core_count(sg_host_self());
}
#else
/* The cores that the ranks of a node or machine could use, whether each is bound to one or none to any. Where
   the set has no room for all of the machine (1024), all of them. */
static int shared_cores(MPI_Comm comm) {
  int online = 0;
  cpu_set_t mine, all;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine))
    online = (int)sysconf(_SC_NPROCESSORS_ONLN);
  MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, comm);
  MPI_Allreduce(MPI_IN_PLACE, &online, 1, MPI_INT, MPI_MAX, comm);
  return online > 0 ? online : CPU_COUNT(&all);
}
#endif

/* How many machines there are, and whether one has more ranks than cores. */
static void find_machines(struct team *team) {
  MPI_Comm machine = MPI_COMM_NULL; /* errors of MPI end the job */
  team->machine = team->leaders = MPI_COMM_NULL;
  team->oversubscribed = false;
  team->machines = 1;
  if (SWP_SIMULATED)
    return;
  swp_machine_split(team->comm, swp_machine_hash(), team->rank, &machine);
  int ranks_here, rank_here;
  MPI_Comm_size(machine, &ranks_here);
  MPI_Comm_rank(machine, &rank_here);
  int oversubscribed = ranks_here > shared_cores(machine), machines = rank_here == 0;
  MPI_Allreduce(MPI_IN_PLACE, &oversubscribed, 1, MPI_INT, MPI_MAX, team->comm);
  MPI_Allreduce(MPI_IN_PLACE, &machines, 1, MPI_INT, MPI_SUM, team->comm);
  team->oversubscribed = oversubscribed;
  team->machines = machines;
  if (machines == 1) {
    MPI_Comm_free(&machine);
    return;
  }
  team->machine = machine;
  MPI_Comm_split(team->comm, rank_here == 0 ? 0 : MPI_UNDEFINED, team->rank, &team->leaders);
}

/* MPICH's launcher may end before it has read the last output of the ranks. */
enum { LAST_WORDS_US = 200000 };

static bool has_ended;
static int own_rank;

/* MPICH 4 takes a rank that exits in the midst for one that is done; simulated ranks are one process. */
static void check_end(void) {
  if (has_ended)
    return;
  fprintf(stderr, "swpbench: rank %d exits before the end\n", own_rank);
  fflush(NULL);
  usleep(LAST_WORDS_US);
  kill(getpid(), SIGKILL);
}

void team_create(struct team *team) {
  MPI_Comm_dup(MPI_COMM_WORLD, &team->comm);
  MPI_Comm_rank(team->comm, &team->rank);
  MPI_Comm_size(team->comm, &team->procs);
  own_rank = team->rank;
  if (!SWP_SIMULATED)
    atexit(check_end);
  MPI_Comm_split_type(team->comm, MPI_COMM_TYPE_SHARED, team->rank, MPI_INFO_NULL, &team->node);
  int ranks_here, rank_here;
  MPI_Comm_size(team->node, &ranks_here);
  MPI_Comm_rank(team->node, &rank_here);
  team->cores = shared_cores(team->node);
  team->ppn = ranks_here;
  team->nodes = rank_here == 0;
  MPI_Allreduce(MPI_IN_PLACE, &team->ppn, 1, MPI_INT, MPI_MAX, team->comm);
  MPI_Allreduce(MPI_IN_PLACE, &team->nodes, 1, MPI_INT, MPI_SUM, team->comm);
  find_machines(team);
}

static void free_comm(MPI_Comm *comm) {
  if (*comm != MPI_COMM_NULL)
    MPI_Comm_free(comm);
}

void team_free(struct team *team) {
  has_ended = true;
  free_comm(&team->leaders);
  free_comm(&team->machine);
  MPI_Comm_free(&team->node);
  MPI_Comm_free(&team->comm);
}

static int virtual_node(const struct team *team, const struct swp_hints *hints, int rank) {
  const int nodes = (team->procs - 1) / hints->ppn + 1;
  return hints->placement == SWP_PLACEMENT_CYCLIC ? rank % nodes : rank / hints->ppn;
}

void team_find_near(const struct team *team, const struct swp_hints *hints, int n, const int *ranks,
                    bool *near) {
  if (hints->ppn > 0) {
    for (int i = 0; i < n; i++)
      near[i] = virtual_node(team, hints, ranks[i]) == virtual_node(team, hints, team->rank);
    return;
  }
  int *places = allocate((size_t)n * sizeof *places);
  MPI_Group all, node;
  MPI_Comm_group(team->comm, &all);
  MPI_Comm_group(team->node, &node);
  MPI_Group_translate_ranks(all, n, ranks, node, places);
  for (int i = 0; i < n; i++)
    near[i] = places[i] != MPI_UNDEFINED;
  MPI_Group_free(&all);
  MPI_Group_free(&node);
  free(places);
}

void team_wait(const struct team *team, int count, MPI_Request *requests) {
  int done = 0;
  while (team->oversubscribed && !done) {
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (!done)
      sched_yield();
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

void team_send(const struct team *team, MPI_Comm comm, const int64_t *data, int count, int target, int tag) {
  MPI_Request request;
  MPI_Isend(data, count, MPI_INT64_T, target, tag, comm, &request);
  team_wait(team, 1, &request);
}

void team_receive(const struct team *team, MPI_Comm comm, int64_t *data, int count, int source, int tag) {
  MPI_Request request;
  MPI_Irecv(data, count, MPI_INT64_T, source, tag, comm, &request);
  team_wait(team, 1, &request);
}

void team_bcast(const struct team *team, void *data, int count, MPI_Datatype type) {
  if (!team->oversubscribed) {
    MPI_Bcast(data, count, type, 0, team->comm);
    return;
  }
  MPI_Request request;
  MPI_Ibcast(data, count, type, 0, team->comm, &request);
  team_wait(team, 1, &request);
}

void team_allreduce(const struct team *team, void *data, int count, MPI_Datatype type, MPI_Op op) {
  if (!team->oversubscribed) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, team->comm);
    return;
  }
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, data, count, type, op, team->comm, &request);
  team_wait(team, 1, &request);
}

void team_alltoall(const struct team *team, const int64_t *sent, int64_t *received) {
  if (!team->oversubscribed) {
    MPI_Alltoall(sent, 1, MPI_INT64_T, received, 1, MPI_INT64_T, team->comm);
    return;
  }
  MPI_Request request;
  MPI_Ialltoall(sent, 1, MPI_INT64_T, received, 1, MPI_INT64_T, team->comm, &request);
  team_wait(team, 1, &request);
}

int team_agree(const struct team *team, int status) {
  int first = status ? team->rank : team->procs;
  team_allreduce(team, &first, 1, MPI_INT, MPI_MIN);
  if (first == team->rank)
    fprintf(stderr, "swpbench: %s\n", failure_text());
  return first == team->procs ? 0 : -1;
}

_Noreturn void team_fail(const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  failure_set("%s", text);
  fprintf(stderr, "swpbench: %s\n", failure_text());
  fflush(NULL);
  has_ended = true;
  usleep(LAST_WORDS_US);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  abort();
}

void *reallocate(void *memory, size_t bytes) {
  void *moved = realloc(memory, bytes ? bytes : 1);
  if (!moved)
    team_fail("out of memory: cannot get %zu bytes", bytes);
  return moved;
}

void *allocate(size_t bytes) {
  return reallocate(NULL, bytes);
}

void *allocate_zeros(size_t bytes) {
  void *memory = allocate(bytes);
  memset(memory, 0, bytes);
  return memory;
}
