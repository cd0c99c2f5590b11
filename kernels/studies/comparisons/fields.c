/*
 * Three fields in one exchange against three exchanges, one after the other and started together, all by
 * `direct`. Usage: swp_compare_fields [SECONDS [window|hca|barrier]]     (seconds for each size; 2)
 */
#include "race.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIELDS = 3 };

/* One entrant: a plan of all fields, or one of each. */
struct runner {
  struct workload *workload;
  swp_plan *plans[FIELDS];
  char *send[FIELDS], *recv[FIELDS];
};

/* The exchange of a field: its buffers, and its data in a repetition. */
static struct workload exchange_of(const struct runner *runner, int field) {
  struct workload workload = *runner->workload;
  workload.payload.repetition = FIELDS * workload.payload.repetition + (uint64_t)field;
  workload.send = runner->send[field];
  workload.recv = runner->recv[field];
  return workload;
}

static void prepare(void *context) {
  const struct runner *runner = context;
  runner->workload->payload.repetition++;
  for (int f = 0; f < FIELDS; f++) {
    struct workload workload = exchange_of(runner, f);
    workload.operation->prepare(&workload);
  }
}

static int verify(void *context) {
  for (int f = 0; f < FIELDS; f++) {
    const struct workload workload = exchange_of(context, f);
    if (workload.operation->verify(&workload))
      return -1;
  }
  return 0;
}

static void expect_success(int error) {
  if (error != SWP_SUCCESS)
    team_fail("%s", swp_error_message());
}

static void run_one_by_one(void *context) {
  const struct runner *runner = context;
  for (int f = 0; f < FIELDS; f++)
    expect_success(swp_exchange_execute(runner->plans[f], runner->send[f], runner->recv[f]));
}

static void run_together(void *context) {
  const struct runner *runner = context;
  for (int f = 0; f < FIELDS; f++)
    expect_success(swp_exchange_start(runner->plans[f], runner->send[f], runner->recv[f]));
  for (int f = 0; f < FIELDS; f++)
    expect_success(swp_wait(runner->plans[f]));
}

static void run_fused(void *context) {
  struct runner *runner = context;
  const void *const send[FIELDS] = {runner->send[0], runner->send[1], runner->send[2]};
  void *const recv[FIELDS] = {runner->recv[0], runner->recv[1], runner->recv[2]};
  expect_success(swp_fields_execute(runner->plans[0], send, recv));
}

static void plan_fused(struct runner *runner) {
  const struct workload *workload = runner->workload;
  const struct swp_exchange problem = exchange_problem(workload);
  const int64_t bytes[FIELDS] = {workload->payload.item_bytes, workload->payload.item_bytes,
                                 workload->payload.item_bytes};
  expect_success(swp_fields_plan(workload->team->comm, &problem, FIELDS, bytes, "direct", &workload->hints,
                                 &runner->plans[0]));
}

static void plan_each(struct runner *runner) {
  for (int f = 0; f < FIELDS; f++)
    expect_success(runner->workload->operation->plan(runner->workload, "direct", &runner->plans[f]));
}

static const struct {
  const char *name;
  void (*plan)(struct runner *runner);
  void (*run)(void *context);
} ways[] = {{"three exchanges", plan_each, run_one_by_one},
            {"three exchanges again", plan_each, run_one_by_one},
            {"three exchanges together", plan_each, run_together},
            {"fields", plan_fused, run_fused}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void report(const struct workload *workload, const struct entrant *entrants, int rounds,
                   const char *pattern) {
  if (workload->team->rank)
    return;
  printf("%d fields, %d ranks, %s, %lld B, %d rounds\n", FIELDS, workload->team->procs, pattern,
         (long long)workload->payload.item_bytes, rounds);
  printf("  %-32s %12s  %s\n", "", "median", "ratio to three exchanges, 95 % interval");
  for (int i = 0; i < WAYS; i++) {
    race_print(&entrants[i], &entrants[0], rounds);
    printf("\n");
  }
  fflush(stdout);
}

static void runner_free(struct runner *runner) {
  for (int f = 0; f < FIELDS; f++) {
    swp_plan_free(&runner->plans[f]);
    free(runner->send[f]);
    free(runner->recv[f]);
  }
}

static int compare(struct workload *workload, const struct pattern_features *features, struct sync *sync,
                   const char *pattern, double seconds) {
  struct runner runners[WAYS];
  struct entrant entrants[WAYS];
  (void)features;
  for (int i = 0; i < WAYS; i++) {
    runners[i] = (struct runner){.workload = workload};
    for (int f = 0; f < FIELDS; f++) {
      runners[i].send[f] = allocate((size_t)workload->send_bytes);
      runners[i].recv[f] = allocate((size_t)workload->recv_bytes);
    }
    ways[i].plan(&runners[i]);
    entrants[i] = (struct entrant){ways[i].name, &runners[i], prepare, ways[i].run, verify, NULL};
  }
  const int rounds = race(workload->team, sync, entrants, WAYS, seconds);
  if (rounds > 0)
    report(workload, entrants, rounds, pattern);
  for (int i = 0; i < WAYS; i++)
    runner_free(&runners[i]);
  race_free(entrants, WAYS);
  return rounds < 0 ? -1 : 0;
}

int main(int argc, char **argv) {
  static const char *const patterns[] = {"random:degree=3,seed=1", NULL};
  return comparison_main(argc, argv,
                         &(struct comparison){"swp_compare_fields", "exchange", patterns, compare});
}
