/*
 * A program with a known mix of calls, which does not know of Switchpoint: swp_mix STEPS BYTES COMPUTE_US
 * [END]. Each step computes so long, then calls MPI_Alltoall with blocks of so many bytes; every tenth also
 * reduces a double on one half of the ranks or the other. It ends without MPI_Finalize if END is "exit", with
 * MPI_Abort if it is "abort", and "late" where rank 0 is in MPI_Finalize; "threads" has two threads call at
 * the same time, "shuffled" has the ranks in another order in each step, for one MPI_Barrier; "waits" has
 * messages of a rank to itself instead of MPI_Alltoall; "uneven" has an MPI_Allgatherv of a double of rank 0
 * alone; "many" has more different calls than profiles hold, then one MPI_Barrier; "freed" has each step make
 * a communicator of all ranks or of one, for one MPI_Barrier, and free it, which ends in an MPI_Allreduce on
 * it. It prints the time of all steps, and the median of a step.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOGETHER = 32 }; /* steps that are timed, as a clock's tick is much of one */

static int steps, bytes, procs, rank;
static double compute_s;
static bool waits;

/* What a thread does, and the median time of its steps. */
struct part {
  MPI_Comm comm;
  double step_s;
};

static int by_value(const void *one, const void *other) {
  const double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static void send_to_self(const char *send, char *recv) {
  int found;
  MPI_Request requests[2];
  MPI_Iprobe(0, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  MPI_Irecv(recv, bytes, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(send, bytes, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void *communicate(void *argument) {
  struct part *part = argument;
  double *steps_s = calloc((size_t)steps + 1, sizeof *steps_s), before = MPI_Wtime();
  const int together = steps < TOGETHER ? steps : TOGETHER;
  int timed = 0;
  MPI_Comm world, half;
  char *send = calloc((size_t)procs, (size_t)bytes + 1), *recv = calloc((size_t)procs, (size_t)bytes + 1);
  MPI_Comm_dup(part->comm, &world);
  MPI_Comm_split(world, rank % 2, rank, &half);
  for (int step = 0; step < steps; step++) {
    double one = 1, sum, began = MPI_Wtime();
    while (compute_s > 0 && MPI_Wtime() < began + compute_s)
      ;
    if (waits)
      send_to_self(send, recv);
    else
      MPI_Alltoall(send, bytes, MPI_CHAR, recv, bytes, MPI_CHAR, world);
    if (step % 10 == 0)
      MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
    if (step % together == together - 1) {
      const double now = MPI_Wtime();
      steps_s[timed++] = (now - before) / together;
      before = now;
    }
  }
  qsort(steps_s, (size_t)timed, sizeof *steps_s, by_value);
  part->step_s = steps_s[timed / 2];
  MPI_Barrier(world);
  MPI_Comm_free(&half);
  MPI_Comm_free(&world);
  free(steps_s);
  free(send);
  free(recv);
  return NULL;
}

/* Makes a communicator in each step, most of which differ in their order. */
static void shuffle(void) {
  for (int step = 0; step < steps; step++) {
    unsigned hash = (unsigned)(step * procs + rank + 1) * 2654435761u;
    hash = (hash ^ hash >> 15) * 2246822519u;
    MPI_Comm shuffled;
    MPI_Comm_split(MPI_COMM_WORLD, 0, (int)(hash >> 8), &shuffled);
    MPI_Barrier(shuffled);
    MPI_Comm_free(&shuffled);
  }
}

static void gather_one(void) {
  int *counts = calloc(2 * (size_t)procs, sizeof *counts);
  double one = 1, all;
  counts[0] = 1;
  MPI_Allgatherv(&one, counts[rank], MPI_DOUBLE, &all, counts, counts + procs, MPI_DOUBLE, MPI_COMM_WORLD);
  free(counts);
}

static void differ(void) {
  enum { MOST_BYTES = 1 << 22 };
  const MPI_Datatype types[] = {MPI_CHAR,   MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE,
                                MPI_INT8_T, MPI_UINT8_T,     MPI_C_BOOL,        MPI_INT};
  char *buffer = calloc(MOST_BYTES, sizeof(int));
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (int items = 1; items < MOST_BYTES; items += 1 + items / 16)
      MPI_Bcast(buffer, items, types[i], 0, MPI_COMM_SELF);
  MPI_Barrier(MPI_COMM_WORLD);
  free(buffer);
}

static int reduce_last(MPI_Comm comm, int key, void *value, void *extra) {
  double one = 1, sum;
  (void)key, (void)value, (void)extra;
  return MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
}

/* Sets an attribute before any other is set, so that it is deleted last. */
static void call_while_freeing(void) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, reduce_last, &key, NULL);
  for (int step = 0; step < steps; step++) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, step % 2 * rank, rank, &comm);
    MPI_Comm_set_attr(comm, key, NULL);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv) {
  int provided;
  const char *end = argc > 4 ? argv[4] : "";
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  steps = atoi(argv[1]);
  bytes = atoi(argv[2]);
  compute_s = 1e-6 * atof(argv[3]);
  waits = strcmp(end, "waits") == 0;
  const double began = MPI_Wtime();
  struct part mine[2] = {{.comm = MPI_COMM_WORLD}, {.comm = MPI_COMM_NULL}};
  if (strcmp(end, "threads") == 0) {
    pthread_t thread;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine[1].comm);
    pthread_create(&thread, NULL, communicate, &mine[1]);
    communicate(&mine[0]);
    pthread_join(thread, NULL);
    MPI_Comm_free(&mine[1].comm);
  } else if (strcmp(end, "shuffled") == 0) {
    shuffle();
  } else if (strcmp(end, "uneven") == 0) {
    gather_one();
  } else if (strcmp(end, "many") == 0) {
    differ();
  } else if (strcmp(end, "freed") == 0) {
    call_while_freeing();
  } else {
    communicate(&mine[0]);
  }
  if (rank == 0)
    printf("mixed in %.6f s, a step in %.9f s\n", MPI_Wtime() - began, mine[0].step_s), fflush(stdout);
  if (strcmp(end, "exit") == 0)
    exit(EXIT_SUCCESS);
  if (strcmp(end, "late") == 0 && rank > 0)
    sleep(1); /* until rank 0 is in MPI_Finalize */
  if (strcmp(end, "abort") == 0 || (strcmp(end, "late") == 0 && rank > 0))
    MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Finalize();
  return EXIT_SUCCESS;
}
