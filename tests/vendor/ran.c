/*
 * Which functions of the MPI library run in a collective call, whatever the library says of itself: one rank
s late, a timer interrupts the others while they wait inside the call, and their stacks are read.
 * Usage: ran BYTES[,BYTES]... OPERATION...; prints a line for each: OPERATION BYTES FUNCTION..., of all
ranks,
 * with an exclamation mark where a function was in most stacks of a rank.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { FRAMES = 48, FUNCTIONS = 256, TEXT = 96, TICK_US = 250, LATE_US = 5000, ENOUGH = 5, ATTEMPTS = 8 };

/* Of libgcc: the function around an address, found by the tables of exceptions, symbols or not. */
void *_Unwind_FindEnclosingFunction(void *address);

static int rank, procs;
static void *functions[FUNCTIONS];
static int stacks_with[FUNCTIONS]; /* each function */
static volatile sig_atomic_t inside, nfunctions, nstacks;

static void add_function(void *function) {
  int i = 0;
  while (i < nfunctions && functions[i] != function)
    i++;
  if (i == FUNCTIONS)
    return;
  if (i == nfunctions) {
    functions[i] = function;
    stacks_with[i] = 0;
    nfunctions = i + 1;
  }
  stacks_with[i]++;
}

static void add_stack(int signal) {
  void *frames[FRAMES];
  int n = inside ? backtrace(frames, FRAMES) : 0;
  (void)signal;
  for (int i = 0; i < n; i++) {
    void *function = _Unwind_FindEnclosingFunction((char *)frames[i] - 1);
    if (function)
      add_function(function);
  }
  nstacks = nstacks + (n > 0);
}

static void set_timer(int us) {
  struct itimerval timer = {{0, us}, {0, us}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void call(MPI_Comm comm, const char *operation, void *send, void *recv, int bytes) {
  int integers = bytes / (int)sizeof(int);
  if (!strcmp(operation, "bcast"))
    MPI_Bcast(send, bytes, MPI_BYTE, 0, comm);
  else if (!strcmp(operation, "reduce"))
    MPI_Reduce(send, recv, integers, MPI_INT, MPI_SUM, 0, comm);
  else if (!strcmp(operation, "allreduce"))
    MPI_Allreduce(send, recv, integers, MPI_INT, MPI_SUM, comm);
  else if (!strcmp(operation, "reduce_scatter_block"))
    MPI_Reduce_scatter_block(send, recv, integers, MPI_INT, MPI_SUM, comm);
  else if (!strcmp(operation, "gather"))
    MPI_Gather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, comm);
  else if (!strcmp(operation, "scatter"))
    MPI_Scatter(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, comm);
  else if (!strcmp(operation, "allgather"))
    MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm);
  else if (!strcmp(operation, "alltoall"))
    MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm);
  else if (!strcmp(operation, "allgatherv")) {
    int *counts = malloc((size_t)procs * sizeof(int)), *places = malloc((size_t)procs * sizeof(int));
    for (int i = 0; i < procs; i++) {
      counts[i] = bytes;
      places[i] = i * bytes;
    }
    MPI_Allgatherv(send, bytes, MPI_BYTE, recv, counts, places, MPI_BYTE, comm);
    free(counts);
    free(places);
  } else {
    fprintf(stderr, "ran: no operation %s\n", operation);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* The rank for which others wait: who sends in the end, or the root. */
static bool is_late(const char *operation) {
  bool to_root = !strcmp(operation, "gather") || !strcmp(operation, "reduce");
  return rank == (to_root ? procs - 1 : 0);
}

/* Module and offset; with a mark when the function was in most stacks. */
static void name_function(int i, char *text) {
  Dl_info info = {0};
  if (!dladdr(functions[i], &info) || !info.dli_fname)
    return;
  const char *slash = strrchr(info.dli_fname, '/');
  snprintf(text, TEXT, "%s%.60s+%lx", nstacks >= ENOUGH && 2 * stacks_with[i] > nstacks ? "!" : "",
           slash ? slash + 1 : info.dli_fname,
           (unsigned long)((char *)functions[i] - (char *)info.dli_fbase));
}

static void print_functions(const char *operation, int bytes) {
  char mine[FUNCTIONS][TEXT] = {0}, *all = calloc((size_t)procs, sizeof mine);
  for (int i = 0; i < nfunctions; i++)
    name_function(i, mine[i]);
  MPI_Gather(mine, (int)sizeof mine, MPI_CHAR, all, (int)sizeof mine, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%s %d", operation, bytes);
    for (int i = 0; i < procs * FUNCTIONS; i++)
      if (all[i * TEXT])
        printf(" %s", all + i * TEXT);
    printf("\n");
  }
  free(all);
}

/* Until some rank was seen waiting; a rank that comes later than the late one waits for nobody. */
static void observe(MPI_Comm comm, const char *operation, int bytes) {
  size_t room = (size_t)bytes * (size_t)procs;
  void *send = calloc(room + 1, 1), *recv = calloc(room + 1, 1);
  int seen = 0;
  call(comm, operation, send, recv, bytes);
  for (int attempt = 0; attempt < ATTEMPTS && !seen; attempt++) {
    MPI_Barrier(MPI_COMM_WORLD);
    nfunctions = 0;
    nstacks = 0;
    if (is_late(operation))
      usleep(LATE_US << attempt);
    else
      set_timer(TICK_US);
    inside = 1;
    call(comm, operation, send, recv, bytes);
    inside = 0;
    set_timer(0);
    int mine = nstacks >= ENOUGH;
    MPI_Allreduce(&mine, &seen, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  print_functions(operation, bytes);
  free(send);
  free(recv);
}

int main(int argc, char **argv) {
  void *frame;
  struct sigaction action = {.sa_handler = add_stack, .sa_flags = SA_RESTART};
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  backtrace(&frame, 1); /* loads what it needs before a signal can */
  sigaction(SIGALRM, &action, NULL);
  for (int i = 2; i < argc; i++) {
    char *sizes = strdup(argv[1]);
    for (char *size = strtok(sizes, ","); size; size = strtok(NULL, ","))
      observe(comm, argv[i], atoi(size));
    free(sizes);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
