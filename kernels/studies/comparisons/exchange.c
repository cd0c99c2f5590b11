/*
 * `direct`, `shared` and `lent` against a hand-written exchange, also with persistent requests: once, back to
 * back, and back to back with data that are written before each; and the costs of store-and-forward:
 * planning, break-even, memory, copies. Usage: swp_compare_exchange [SECONDS [window|hca|barrier]] (seconds
 * for each size; 2)
 */
#include "race.h"

#include "clock.h"
#include "operation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS_MOST = 30, ENTRANTS_MOST = DIMS_MOST + 8, BACK_TO_BACK = 100 };
/* The first entrants. Both run twice a round: this shows the precision, and code that runs more often is more
   often in the cache. */
enum { BY_HAND, BY_HAND_AGAIN, DIRECT, DIRECT_AGAIN };

/* How often entrants execute, and whether what they send is written before each execution. */
struct mode {
  int executions;
  bool writes;
  const char *name;
};

static const struct mode modes[] = {{1, false, ""},
                                    {BACK_TO_BACK, false, "back to back, "},
                                    {BACK_TO_BACK, true, "written and sent back to back, "}};

/* One entrant: a plan, or the requests of the exchange written by hand. */
struct runner {
  struct workload *workload;
  const struct mode *mode;
  char name[48], method[32];
  bool lends;          /* it sends from the plan's memory */
  unsigned char *data; /* that are written */
  swp_plan *plan;
  double plan_s;
  MPI_Comm comm; /* of the hand-written one: its own, like a plan's; the bench's is always in the cache */
  MPI_Request *requests;
  int nrequests;
};

static size_t sent_bytes(const struct workload *workload) {
  return (size_t)workload->pattern->sends.n * (size_t)workload->payload.item_bytes;
}

static void prepare(void *context) {
  const struct runner *runner = context;
  struct workload *workload = runner->workload;
  workload->payload.repetition++;
  workload->operation->prepare(workload);
  if (runner->mode->writes)
    memcpy(runner->data, workload->send, sent_bytes(workload));
}

static int verify(void *context) {
  const struct workload *workload = ((struct runner *)context)->workload;
  return workload->operation->verify(workload);
}

/* Returns what is sent, when it is written. */
static void *write_data(const struct runner *runner) {
  void *send = runner->workload->send;
  if (runner->lends && swp_exchange_buffer(runner->plan, &send) != SWP_SUCCESS)
    team_fail("%s", swp_error_message());
  if (runner->mode->writes)
    memcpy(send, runner->data, sent_bytes(runner->workload));
  return send;
}

static void run_plan(void *context) {
  const struct runner *runner = context;
  for (int i = 0; i < runner->mode->executions; i++)
    if (swp_exchange_execute(runner->plan, write_data(runner), runner->workload->recv) != SWP_SUCCESS)
      team_fail("%s", swp_error_message());
}

/* The code of a programmer who knows senders and receivers; every message is one item. */
static void exchange_by_hand(const struct runner *runner) {
  const struct workload *workload = runner->workload;
  const struct lists *sends = &workload->pattern->sends, *recvs = &workload->pattern->recvs;
  const int bytes = (int)workload->payload.item_bytes;
  const MPI_Comm comm = runner->comm;
  const unsigned char *send = write_data(runner);
  for (int i = 0; i < recvs->n; i++)
    MPI_Irecv(workload->recv + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, recvs->ranks[i], 0, comm,
              &runner->requests[i]);
  for (int i = 0; i < sends->n; i++)
    MPI_Isend(send + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, sends->ranks[i], 0, comm,
              &runner->requests[recvs->n + i]);
  MPI_Waitall(recvs->n + sends->n, runner->requests, MPI_STATUSES_IGNORE);
}

static void run_by_hand(void *context) {
  const struct runner *runner = context;
  for (int i = 0; i < runner->mode->executions; i++)
    exchange_by_hand(runner);
}

/* The same with persistent requests, as buffers stay. */
static void make_persistent(const struct runner *runner) {
  const struct workload *workload = runner->workload;
  const struct lists *sends = &workload->pattern->sends, *recvs = &workload->pattern->recvs;
  const int bytes = (int)workload->payload.item_bytes;
  for (int i = 0; i < recvs->n; i++)
    MPI_Recv_init(workload->recv + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, recvs->ranks[i], 0,
                  runner->comm, &runner->requests[i]);
  for (int i = 0; i < sends->n; i++)
    MPI_Send_init(workload->send + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, sends->ranks[i], 0,
                  runner->comm, &runner->requests[recvs->n + i]);
}

static void run_persistent(void *context) {
  const struct runner *runner = context;
  for (int i = 0; i < runner->mode->executions; i++) {
    write_data(runner);
    MPI_Startall(runner->nrequests, runner->requests);
    MPI_Waitall(runner->nrequests, runner->requests, MPI_STATUSES_IGNORE);
  }
}

static void enter_persistent(struct runner *runner, struct entrant *entrant) {
  make_persistent(runner);
  snprintf(runner->name, sizeof runner->name, "by hand, persistent");
  entrant->execute = run_persistent;
}

/* Plans by the given method, timed over all ranks. False when it is not applicable; other errors end the job.
 */
static bool plan(struct runner *runner) {
  const struct workload *workload = runner->workload;
  sync_barrier(workload->team);
  const int64_t begin = clock_ns();
  const int error = workload->operation->plan(workload, runner->method, &runner->plan);
  runner->plan_s = (double)(clock_ns() - begin) * 1e-9;
  if (error == SWP_ERR_NOT_APPLICABLE)
    return false;
  if (error)
    team_fail("cannot plan %s: %s", runner->method, swp_error_message());
  team_allreduce(workload->team, &runner->plan_s, 1, MPI_DOUBLE, MPI_MAX);
  return true;
}

/* In how many coordinates two ranks differ in the grid that dims=n has on 2^lg ranks. */
static int hamming(int a, int b, int lg, int n) {
  int differing = 0;
  for (int d = 0, shift = 0; d < n; d++) {
    const int bits = lg / n + (d < lg % n);
    differing += ((a >> shift) ^ (b >> shift)) % (1 << bits) != 0;
    shift += bits;
  }
  return differing;
}

/* The bytes that all messages need on their routes, over all ranks: the sum of size x Hamming distance. */
static int64_t needed_hop_bytes(const struct workload *workload, int n) {
  const struct lists *sends = &workload->pattern->sends;
  int64_t sum = 0;
  int lg = 0;
  while (1 << (lg + 1) <= workload->team->procs)
    lg++;
  for (int i = 0; i < sends->n; i++)
    sum += hamming(workload->team->rank, sends->ranks[i], lg, n);
  sum *= workload->payload.item_bytes;
  team_allreduce(workload->team, &sum, 1, MPI_INT64_T, MPI_SUM);
  return sum;
}

/* The cost of a plan: its time and memory, and after how many executions it is earned back. */
static void print_plan(const struct entrant *entrant, const struct entrant *direct, int rounds,
                       int64_t needed_bytes) {
  const struct runner *runner = entrant->context, *base = direct->context;
  struct swp_statistics statistics;
  swp_plan_statistics(runner->plan, NULL, &statistics);
  const double won_s =
      median_interval(direct->seconds, rounds).median - median_interval(entrant->seconds, rounds).median;
  printf("  plan %.0f us, %lld B here", runner->plan_s * 1e6, (long long)statistics.plan_bytes);
  if (strcmp(runner->method, base->method) == 0)
    return;
  const double lost_s = runner->plan_s > base->plan_s ? runner->plan_s - base->plan_s : 0;
  if (won_s > 0)
    printf(", earned back after %.0f executions", lost_s / won_s);
  else
    printf(", not faster than direct");
  if (needed_bytes)
    printf(", bytes over size x Hamming: sent %.3f, copied %.3f",
           (double)statistics.hop_bytes / (double)needed_bytes,
           (double)statistics.copied_bytes / (double)needed_bytes);
}

static void report(const struct workload *workload, const struct entrant *entrants, int count, int rounds,
                   const char *pattern, const int64_t *needed_bytes) {
  if (workload->team->rank)
    return;
  const struct runner *first = entrants->context;
  printf("exchange, %d ranks, %s, %lld B, %s%d rounds\n", workload->team->procs, pattern,
         (long long)workload->payload.item_bytes, first->mode->name, rounds);
  printf("  %-32s %12s  %s\n", "", "median", "ratio to the one by hand, 95 % interval");
  for (int i = 0; i < count; i++) {
    race_print(&entrants[i], &entrants[BY_HAND], rounds);
    if (((const struct runner *)entrants[i].context)->plan != NULL)
      print_plan(&entrants[i], &entrants[DIRECT], rounds, needed_bytes[i]);
    printf("\n");
  }
  fflush(stdout);
}

/* Adds an entrant by a method, or by hand where it is NULL; 0 when that cannot be. */
static int enter(struct workload *workload, const struct mode *mode, const char *method, bool lends,
                 struct runner *runner, struct entrant *entrant) {
  *runner = (struct runner){.workload = workload,
                            .mode = mode,
                            .lends = lends,
                            .comm = MPI_COMM_NULL,
                            .nrequests = workload->pattern->sends.n + workload->pattern->recvs.n};
  snprintf(runner->name, sizeof runner->name, "%s%s", method != NULL ? method : "by hand",
           lends ? ", in the plan's memory" : "");
  if (mode->writes)
    runner->data = allocate(sent_bytes(workload));
  if (method == NULL) {
    MPI_Comm_dup(workload->team->comm, &runner->comm);
    runner->requests = allocate((size_t)runner->nrequests * sizeof(MPI_Request));
  } else
    snprintf(runner->method, sizeof runner->method, "%s", method);
  if (method != NULL && !plan(runner))
    return 0;
  *entrant = (struct entrant){.name = runner->name,
                              .context = runner,
                              .prepare = prepare,
                              .execute = method != NULL ? run_plan : run_by_hand,
                              .finish = verify};
  return 1;
}

/* All entrants, and of store-and-forward the bytes that its messages need to travel. Returns how many. */
static int enter_all(struct workload *workload, const struct mode *mode, struct runner *runners,
                     struct entrant *entrants, int64_t *needed_bytes) {
  const int procs = workload->team->procs;
  const bool is_power_of_two = (procs & (procs - 1)) == 0;
  int count = 0;
  memset(needed_bytes, 0, ENTRANTS_MOST * sizeof *needed_bytes);
  for (; count < DIRECT_AGAIN + 1; count++)
    enter(workload, mode, count >= DIRECT ? "direct" : NULL, false, &runners[count], &entrants[count]);
  enter(workload, mode, NULL, false, &runners[count], &entrants[count]);
  enter_persistent(&runners[count], &entrants[count]);
  count++;
  count += enter(workload, mode, "shared", false, &runners[count], &entrants[count]);
  count += enter(workload, mode, "lent", false, &runners[count], &entrants[count]);
  if (mode->writes)
    count += enter(workload, mode, "lent", true, &runners[count], &entrants[count]);
  for (int n = 2; n <= DIMS_MOST && 1 << n <= procs && mode->executions == 1; n++) {
    char method[32];
    snprintf(method, sizeof method, "stfw:dims=%d", n);
    needed_bytes[count] = is_power_of_two ? needed_hop_bytes(workload, n) : 0;
    count += enter(workload, mode, method, false, &runners[count], &entrants[count]);
  }
  return count;
}

static int compare_in(const struct mode *mode, struct workload *workload, struct sync *sync,
                      const char *pattern, double seconds) {
  struct runner runners[ENTRANTS_MOST];
  struct entrant entrants[ENTRANTS_MOST];
  int64_t needed_bytes[ENTRANTS_MOST];
  const int count = enter_all(workload, mode, runners, entrants, needed_bytes);
  const int rounds = race(workload->team, sync, entrants, count, seconds);
  if (rounds > 0)
    report(workload, entrants, count, rounds, pattern, needed_bytes);
  for (int i = 0; i < count; i++) {
    swp_plan_free(&runners[i].plan);
    if (entrants[i].execute == run_persistent)
      for (int j = 0; j < runners[i].nrequests; j++)
        MPI_Request_free(&runners[i].requests[j]);
    free(runners[i].requests);
    free(runners[i].data);
    if (runners[i].comm != MPI_COMM_NULL)
      MPI_Comm_free(&runners[i].comm);
  }
  race_free(entrants, count);
  return rounds < 0 ? -1 : 0;
}

static int compare(struct workload *workload, const struct pattern_features *features, struct sync *sync,
                   const char *pattern, double seconds) {
  (void)features;
  int status = 0;
  for (size_t i = 0; i < sizeof modes / sizeof *modes && status == 0; i++)
    status = compare_in(&modes[i], workload, sync, pattern, seconds);
  return status;
}

int main(int argc, char **argv) {
  static const char *const patterns[] = {"random:degree=3,seed=1", "hub:hubs=1,seed=1", NULL};
  return comparison_main(argc, argv,
                         &(struct comparison){"swp_compare_exchange", "exchange", patterns, compare});
}
