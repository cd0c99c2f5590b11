/*
 * The library's discovery methods against an exchange whose receivers know their senders, and against peers.
 * Usage: swp_compare_discovery [SECONDS [window|hca|barrier]]     (seconds for each size; 2)
 */
#include "race.h"
#include "rival.h"

#include "error.h"
#include "methods.h"

#include <stdio.h>
#include <stdlib.h>

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
  team_fail("%s", swp_error_message());
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
  struct entrant *entrants;
  struct runner *runners;
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

static int enter_methods(struct field *field, struct workload *workload, int nmethods) {
  for (int i = 0; i < nmethods; i++) {
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

static int count_rivals(void) {
  int count = 0;
  for (int r = 0; r < RIVALS; r++)
    for (int variant = 0; rivals[r]->variants[variant]; variant++)
      count++;
  return count;
}

static int enter_all(struct field *field, struct workload *workload) {
  int nmethods = 0;
  int status = methods_expand(SWP_DISCOVERY, "all", workload->team->procs, &field->methods, &nmethods);
  const size_t most = (size_t)(count_rivals() + nmethods);
  field->entrants = allocate(most * sizeof *field->entrants);
  field->runners = allocate(most * sizeof *field->runners);
  for (int r = 0; r < RIVALS; r++) {
    if (rivals[r]->open)
      rivals[r]->open(workload);
    for (int variant = 0; rivals[r]->variants[variant]; variant++)
      enter(field, rivals[r]->variants[variant],
            (struct runner){.workload = workload, .rival = rivals[r], .variant = variant});
  }
  field->peers = field->count - 1;
  if (status == 0)
    status = enter_methods(field, workload, nmethods);
  return team_agree(workload->team, status);
}

static void leave_all(struct field *field) {
  for (int i = 0; i < field->count; i++)
    swp_plan_free(&field->runners[i].plan);
  for (int r = 0; r < RIVALS; r++)
    if (rivals[r]->close)
      rivals[r]->close();
  race_free(field->entrants, field->count);
  free(field->entrants);
  free(field->runners);
  free(field->methods);
}

/* The fastest of the entrants first .. last, by their multiples of the lower bound. */
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
    race_print(&field->entrants[i], bound, rounds);
    printf("\n");
  }
  print_best(best, bound, rounds);
  if (field->peers > 0)
    print_best(best, fastest(field, 1, field->peers, rounds), rounds);
  fflush(stdout);
}

static int compare(struct workload *workload, const struct pattern_features *features, struct sync *sync,
                   const char *pattern, double seconds) {
  struct field field = {.count = 0};
  (void)pattern;
  const int status = enter_all(&field, workload);
  const int rounds = status ? -1 : race(workload->team, sync, field.entrants, field.count, seconds);
  if (workload->team->rank == 0 && rounds > 0)
    report(&field, workload, (int)features->messages_max, rounds);
  leave_all(&field);
  return rounds < 0 ? -1 : 0;
}

int main(int argc, char **argv) {
  static const char *const patterns[] = {"random:degree=3,seed=1", NULL};
  return comparison_main(argc, argv,
                         &(struct comparison){"swp_compare_discovery", "discovery", patterns, compare});
}
