/*
 * What collective calls do, whatever the MPI library says of itself. `switchpoint check table` compiles this
 * program with the wrapper of the library that is asked.
 *
 * Usage: witness HOW OPERATION:BYTES...; prints a line for each: OPERATION BYTES SEEN..., by HOW as
 *
 * messages: SENDER>RECEIVER:MESSAGES:BYTES, as Open MPI's monitoring counts them, and SENDER>:RECEIVER,... in
 * the order of their first messages. The program must export its symbols (-rdynamic).
 *
 * cards: RANK:BYTES, sent by the network card of the rank's node.
 *
 * stacks: RANK.LATE:FUNCTION of the library in which the rank waited for a late one, with an exclamation mark
 * before FUNCTION if it was in most stacks of every call that was watched.
 */
#define _GNU_SOURCE
#include "stacks.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_CALLS = 8, CALLS = 8 }; /* counted ones */
enum { OBSERVATIONS = 4, LATES = 2, ENOUGH = 8, ATTEMPTS = 6, LATE_US = 2000, EVERY_US = 100 };

static int rank, procs;

struct problem {
  const char *operation;
  int bytes, items; /* of a block or vector; its integers */
  void *send, *recv;
  int *counts, *places;
  int *to, *from; /* of an alltoallv: to some ranks only, as algorithms differ in empty messages and order */
};

_Noreturn static void fail(const char *reason) {
  fprintf(stderr, "witness: %s\n", reason);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(EXIT_FAILURE);
}

static void *room(size_t count, size_t bytes) {
  void *memory = calloc(count + 1, bytes);
  if (memory == NULL)
    fail("not enough memory");
  return memory;
}

static void call(const struct problem *p) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const char *operation = p->operation;
  if (!strcmp(operation, "bcast"))
    MPI_Bcast(p->send, p->bytes, MPI_BYTE, 0, world);
  else if (!strcmp(operation, "gather"))
    MPI_Gather(p->send, p->bytes, MPI_BYTE, p->recv, p->bytes, MPI_BYTE, 0, world);
  else if (!strcmp(operation, "scatter"))
    MPI_Scatter(p->send, p->bytes, MPI_BYTE, p->recv, p->bytes, MPI_BYTE, 0, world);
  else if (!strcmp(operation, "reduce"))
    MPI_Reduce(p->send, p->recv, p->items, MPI_INT, MPI_SUM, 0, world);
  else if (!strcmp(operation, "allreduce"))
    MPI_Allreduce(p->send, p->recv, p->items, MPI_INT, MPI_SUM, world);
  else if (!strcmp(operation, "reduce_scatter_block"))
    MPI_Reduce_scatter_block(p->send, p->recv, p->items, MPI_INT, MPI_SUM, world);
  else if (!strcmp(operation, "allgather"))
    MPI_Allgather(p->send, p->bytes, MPI_BYTE, p->recv, p->bytes, MPI_BYTE, world);
  else if (!strcmp(operation, "allgatherv"))
    MPI_Allgatherv(p->send, p->bytes, MPI_BYTE, p->recv, p->counts, p->places, MPI_BYTE, world);
  else if (!strcmp(operation, "alltoall"))
    MPI_Alltoall(p->send, p->bytes, MPI_BYTE, p->recv, p->bytes, MPI_BYTE, world);
  else if (!strcmp(operation, "alltoallv"))
    MPI_Alltoallv(p->send, p->to, p->places, MPI_BYTE, p->recv, p->from, p->places, MPI_BYTE, world);
  else if (!strcmp(operation, "barrier"))
    MPI_Barrier(world);
  else
    fail("no such operation");
}

static void make(struct problem *p, char *word) {
  char *colon = strchr(word, ':');
  if (colon == NULL)
    fail("write OPERATION:BYTES");
  *colon = '\0';
  p->operation = word;
  p->bytes = atoi(colon + 1);
  p->items = p->bytes / (int)sizeof(int);
  p->send = room((size_t)procs, (size_t)p->bytes + 1);
  p->recv = room((size_t)procs, (size_t)p->bytes + 1);
  p->counts = room((size_t)procs, sizeof(int));
  p->places = room((size_t)procs, sizeof(int));
  p->to = room((size_t)procs, sizeof(int));
  p->from = room((size_t)procs, sizeof(int));
  for (int distance = 1; distance < procs; distance += 2)
    p->to[(rank + distance) % procs] = p->from[(rank + procs - distance) % procs] = p->bytes;
  for (int i = 0; i < procs; i++) {
    p->counts[i] = p->bytes;
    p->places[i] = i * p->bytes;
  }
}

static void release(struct problem *p) {
  free(p->send);
  free(p->recv);
  free(p->counts);
  free(p->places);
  free(p->to);
  free(p->from);
}

/* Libraries may run another algorithm after the first calls. */
static void repeat(const struct problem *p, int calls) {
  for (int i = 0; i < calls; i++)
    call(p);
}

/* ---- Messages and bytes ---- */

static struct {
  size_t messages, bytes;
} *sent;                           /* to each receiver */
static int *receivers, nreceivers; /* in the order of their first messages */

/* Open MPI's monitoring calls this function instead of its own, as the program exports it. Its own counters
   are gone in version 4 before a program can read them. */
void mca_common_monitoring_record_pml(int receiver, size_t bytes, int tag);

void mca_common_monitoring_record_pml(int receiver, size_t bytes, int tag) {
  (void)tag;
  if (sent == NULL)
    return;
  if (sent[receiver].messages == 0)
    receivers[nreceivers++] = receiver;
  sent[receiver].messages++;
  sent[receiver].bytes += bytes;
}

static void open_counters(void) {
  sent = room((size_t)procs, sizeof *sent);
  receivers = room((size_t)procs, sizeof *receivers);
  MPI_Barrier(MPI_COMM_WORLD);
  if (procs > 1 && nreceivers == 0)
    fail("this Open MPI has no component pml_monitoring");
}

static void close_counters(void) {
  free(sent);
  free(receivers);
  sent = NULL;
}

static void count_messages(const struct problem *p, FILE *out) {
  nreceivers = 0;
  memset(sent, 0, (size_t)procs * sizeof *sent);
  repeat(p, CALLS);
  for (int i = 0; i < nreceivers; i++)
    fprintf(out, " %d>%d:%zu:%zu", rank, receivers[i], sent[receivers[i]].messages, sent[receivers[i]].bytes);
  fprintf(out, " %d>:", rank);
  for (int i = 0; i < nreceivers; i++)
    fprintf(out, "%d,", receivers[i]);
}

static size_t read_card(void) {
  size_t bytes = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  FILE *file = fopen("/sys/class/net/eth0/statistics/tx_bytes", "r");
  if (file == NULL || fscanf(file, "%zu", &bytes) != 1)
    fail("the node's card cannot be read");
  fclose(file);
  MPI_Barrier(MPI_COMM_WORLD);
  return bytes;
}

static void count_bytes(const struct problem *p, FILE *out) {
  const size_t before = read_card();
  repeat(p, CALLS);
  fprintf(out, " %d:%zu", rank, read_card() - before);
}

/* ---- Stacks ---- */

static void watch(const struct problem *p, int late, long late_us, struct stacks *stacks) {
  const struct timespec wait = {0, late_us * 1000};
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == late)
    nanosleep(&wait, NULL);
  stacks_begin(stacks, EVERY_US);
  call(p);
  stacks_end();
}

static bool is_complete(const struct stacks *observed) {
  for (int i = 0; i < OBSERVATIONS; i++)
    if (observed[i].count < ENOUGH)
      return false;
  return true;
}

/* Returns whether all others waited for the late root, or the root for the late rank beside it. */
static bool is_seen(struct stacks observed[LATES][OBSERVATIONS]) {
  int waited[LATES], seen[LATES];
  waited[0] = rank == 0 || is_complete(observed[0]);
  waited[1] = rank != 0 || is_complete(observed[1]);
  MPI_Allreduce(waited, seen, LATES, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return seen[0] || seen[1];
}

/* Names the function by its place in its file, which has no symbol for it. */
static void print_function(FILE *out, int late, const struct stacks *observed, void *function) {
  Dl_info info = {0};
  bool in_most = true;
  for (int i = 0; i < OBSERVATIONS; i++)
    in_most =
        in_most && observed[i].count >= ENOUGH && 2 * stacks_seen(&observed[i], function) > observed[i].count;
  if (!dladdr(function, &info) || info.dli_fname == NULL)
    return;
  const char *slash = strrchr(info.dli_fname, '/');
  fprintf(out, " %d.%d:%s%s+%lx", rank, late, in_most ? "!" : "", slash ? slash + 1 : info.dli_fname,
          (unsigned long)((char *)function - (char *)info.dli_fbase));
}

static void print_stacks(FILE *out, int late, const struct stacks *observed) {
  for (int last = 0; last < OBSERVATIONS; last++)
    for (int i = 0; i < observed[last].nfunctions; i++) {
      void *function = observed[last].functions[i];
      bool is_new = true;
      for (int earlier = 0; earlier < last; earlier++)
        is_new = is_new && stacks_seen(&observed[earlier], function) == 0;
      if (is_new)
        print_function(out, late, observed, function);
    }
}

/* Ranks come later and later, until they were seen waiting for each other. */
static void see_stacks(const struct problem *p, FILE *out) {
  static struct stacks observed[LATES][OBSERVATIONS];
  bool seen = false;
  for (int attempt = 0; attempt < ATTEMPTS && !seen; attempt++) {
    for (int i = 0; i < LATES * OBSERVATIONS; i++)
      watch(p, i % LATES * (procs - 1), (long)LATE_US << attempt, &observed[i % LATES][i / LATES]);
    seen = is_seen(observed);
  }
  for (int late = 0; seen && late < LATES; late++)
    print_stacks(out, late, observed[late]);
}

/* ---- The lines ---- */

/* Prints what all ranks have seen, in the order of ranks. */
static void print_all(const struct problem *p, const char *own, size_t own_length) {
  int length = (int)own_length, *lengths = room((size_t)procs, sizeof(int));
  int *places = room((size_t)procs, sizeof(int)), total = 0;
  MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < procs; i++) {
    places[i] = total;
    total += lengths[i];
  }
  char *all = room((size_t)total, 1);
  MPI_Gatherv(own, length, MPI_CHAR, all, lengths, places, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s %d%.*s\n", p->operation, p->bytes, total, all);
  free(all);
  free(lengths);
  free(places);
}

typedef void see_function(const struct problem *p, FILE *out);

static void answer(char *word, see_function *see) {
  struct problem problem;
  char *text;
  size_t length;
  FILE *out = open_memstream(&text, &length);
  if (out == NULL)
    fail("not enough memory");
  make(&problem, word);
  repeat(&problem, WARM_CALLS);
  see(&problem, out);
  fclose(out);
  print_all(&problem, text, length);
  release(&problem);
  free(text);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  const char *how = argc > 1 ? argv[1] : "";
  const bool messages = !strcmp(how, "messages");
  see_function *see = messages                 ? count_messages
                      : !strcmp(how, "cards")  ? count_bytes
                      : !strcmp(how, "stacks") ? see_stacks
                                               : NULL;
  if (see == NULL)
    fail("write messages, cards or stacks, then OPERATION:BYTES...");
  if (messages)
    open_counters();
  for (int i = 2; i < argc; i++)
    answer(argv[i], see);
  if (messages)
    close_counters();
  MPI_Finalize();
  return 0;
}
