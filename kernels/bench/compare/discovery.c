/*
 * The library's discovery methods against an exchange whose receivers know their senders, and against peers.
 * Usage: swp_compare_discovery [SECONDS [window|hca|barrier]]     (seconds for each size; 2)
 */
#include "race.h"
#include "rival.h"

#include "../error.h"
#include "../methods.h"

#include <stdio.h>
#include <stdlib.h>

enum { ENTRANTS_MOST = 32, NEIGHBOURS = 3 };

static const int64_t sizes_bytes[] = {8, 1024, 65536};
enum { SIZES = sizeof sizes_bytes / sizeof *sizes_bytes };

static const struct rival *const rivals[] = {
    &known_senders,
#ifdef COMPARE_MPI_ADVANCE
    &mpi_advance,
#endif
#ifdef COMPARE_PETSC
    &petsc,
#endif
};
enum { RIVALS = sizeof rivals / sizeof *rivals };

/* One entrant's side: a plan of the library, or a variant of a rival. */
struct runner {
  struct workload *workload;
  swp_plan *plan;
  const struct rival *rival;
  int variant;
  struct delivery delivery;
};

static void prepare(void *context) {
  const struct runner *runner = context;
  runner->workload->payload.repetition++;
  runner->workload->operation->prepare(runner->workload);
  if (runner->rival && runner->rival->prepare)
    runner->rival->prepare();
}

static void run_method(void *context) {
  const struct runner *runner = context;
  if (runner->workload->operation->execute(runner->workload, runner->plan) == SWP_SUCCESS)
    return;
  failure_set("%s", swp_error_message());
  team_abort();
}

static int finish_method(void *context) {
  const struct runner *runner = context;
  return runner->workload->operation->verify(runner->workload);
}

static void run_rival(void *context) {
  struct runner *runner = context;
  runner->delivery =
      runner->rival->execute(runner->workload, (int)runner->workload->payload.item_bytes, runner->variant);
}

/* Each expected message must be among those delivered, in any order. */
static int verify_delivery(const struct workload *workload, const struct delivery *delivery) {
  const struct lists *recvs = &workload->pattern->recvs;
  if (delivery->count != recvs->n)
    return failure_set("wrong delivery: %d messages, expected %d", delivery->count, recvs->n);
  for (int i = 0; i < recvs->n; i++) {
    int found = 0;
    while (found < delivery->count && delivery->sources[found] != recvs->ranks[i])
      found++;
    if (found == delivery->count)
      return failure_set("wrong delivery: nothing from rank %d", recvs->ranks[i]);
    if (payload_compare(&workload->payload, recvs->ranks[i], &recvs->items[i], 1,
                        delivery->data + found * workload->payload.item_bytes))
      return -1;
  }
  return 0;
}

static int finish_rival(void *context) {
  const struct runner *runner = context;
  const int status = verify_delivery(runner->workload, &runner->delivery);
  if (runner->rival->release)
    runner->rival->release();
  return status;
}

/* The entrants of one workload: the lower bound, the peers, the library's methods. */
struct field {
  struct entrant entrants[ENTRANTS_MOST];
  struct runner runners[ENTRANTS_MOST];
  int count, peers; /* the peers are entrants 1 .. peers */
  struct method *methods;
};

static void enter(struct field *field, const char *name, struct runner runner) {
  const bool rival = runner.rival != NULL;
  field->runners[field->count] = runner;
  field->entrants[field->count] = (struct entrant){.name = name,
                                                   .context = &field->runners[field->count],
                                                   .prepare = prepare,
                                                   .execute = rival ? run_rival : run_method,
                                                   .finish = rival ? finish_rival : finish_method};
  field->count++;
}

static int enter_methods(struct field *field, struct workload *workload) {
  int nmethods;
  if (methods_expand(SWP_DISCOVERY, "all", workload->team->procs, &field->methods, &nmethods))
    return -1;
  for (int i = 0; i < nmethods && field->count < ENTRANTS_MOST; i++) {
    swp_plan *plan;
    const int error = workload->operation->plan(workload, field->methods[i].spec, &plan);
    if (error == SWP_ERR_NOT_APPLICABLE)
      continue;
    if (error)
      return failure_set("cannot plan %s: %s", field->methods[i].spec, swp_error_message());
    enter(field, field->methods[i].spec, (struct runner){.workload = workload, .plan = plan});
  }
  return 0;
}

static int enter_all(struct field *field, struct workload *workload) {
  for (int r = 0; r < RIVALS; r++) {
    if (rivals[r]->open)
      rivals[r]->open(workload);
    for (int variant = 0; rivals[r]->variants[variant]; variant++)
      enter(field, rivals[r]->variants[variant],
            (struct runner){.workload = workload, .rival = rivals[r], .variant = variant});
  }
  field->peers = field->count - 1;
  return team_agree(workload->team, enter_methods(field, workload));
}

static void leave_all(struct field *field) {
  for (int i = 0; i < field->count; i++)
    swp_plan_free(&field->runners[i].plan);
  for (int r = 0; r < RIVALS; r++)
    if (rivals[r]->close)
      rivals[r]->close();
  race_free(field->entrants, field->count);
  free(field->methods);
}

/* The fastest of the entrants first .. last, as multiples of the lower bound tell. */
static const struct entrant *fastest(const struct field *field, int first, int last, int rounds) {
  const struct entrant *best = NULL;
  double least = 0;
  for (int i = first; i <= last; i++) {
    const double ratio = race_ratio(&field->entrants[i], &field->entrants[0], rounds).median;
    if (best && ratio >= least)
      continue;
    best = &field->entrants[i];
    least = ratio;
  }
  return best;
}

static void print_best(const struct entrant *best, const struct entrant *other, int rounds) {
  const struct interval ratio = race_ratio(best, other, rounds);
  printf("  %s / %s: %.3f [%.3f, %.3f]\n", best->name, other->name, ratio.median, ratio.low, ratio.high);
}

static void report(const struct field *field, const struct workload *workload, int messages, int rounds) {
  const struct entrant *bound = &field->entrants[0];
  const struct entrant *best = fastest(field, 1 + field->peers, field->count - 1, rounds);
  printf("discovery, %d ranks, %d message(s) a rank, %lld B, %d rounds\n", workload->team->procs, messages,
         (long long)workload->payload.item_bytes, rounds);
  printf("  %-32s %12s  %s\n", "", "median", "ratio to known senders, 95 % interval");
  for (int i = 0; i < field->count; i++) {
    const struct entrant *entrant = &field->entrants[i];
    const struct interval ratio = race_ratio(entrant, bound, rounds);
    printf("  %-32s %9.2f us  %6.3f [%.3f, %.3f]\n", entrant->name,
           1e6 * median_interval(entrant->seconds, rounds).median, ratio.median, ratio.low, ratio.high);
  }
  print_best(best, bound, rounds);
  if (field->peers > 0)
    print_best(best, fastest(field, 1, field->peers, rounds), rounds);
  fflush(stdout);
}

static int compare(const struct team *team, struct sync *sync, const struct pattern *pattern, int64_t bytes,
                   double seconds) {
  struct pattern_features features;
  struct workload workload;
  struct field field = {.count = 0};
  pattern_measure(team, pattern, &features);
  int status =
      workload_create(team, operation_by_name("discovery"), pattern, &features, bytes, 1, NULL, &workload);
  if (status == 0) {
    status = enter_all(&field, &workload);
    const int rounds = status ? -1 : race(team, sync, field.entrants, field.count, seconds);
    if (team->rank == 0 && rounds > 0)
      report(&field, &workload, (int)features.messages_max, rounds);
    leave_all(&field);
    status = rounds < 0 ? -1 : 0;
  }
  workload_free(&workload);
  return status;
}

static int compare_sizes(const struct team *team, double seconds, const char *scheme_name) {
  char text[64];
  struct pattern_spec spec;
  struct pattern pattern;
  if (seconds <= 0 || (*scheme_name && !sync_find(scheme_name)))
    return team_agree(team, failure_set("usage: swp_compare_discovery [SECONDS [window|hca|barrier]]"));
  snprintf(text, sizeof text, "random:degree=%d,seed=1", NEIGHBOURS);
  if (team_agree(team, pattern_parse(text, &spec)) || pattern_generate(team, &spec, &pattern))
    return -1;
  struct sync sync = sync_create(team, scheme_name);
  int status = 0;
  for (int i = 0; status == 0 && i < SIZES; i++)
    status = compare(team, &sync, &pattern, sizes_bytes[i], seconds);
  pattern_free(&pattern);
  return status;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  struct team team;
  team_create(&team);
  const int status = compare_sizes(&team, argc > 1 ? atof(argv[1]) : 2, argc > 2 ? argv[2] : "");
  team_free(&team);
  MPI_Finalize();
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
