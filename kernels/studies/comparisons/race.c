#include "race.h"

#include "clock.h"
#include "error.h"
#include "rng.h"

#include <stdio.h>
#include <stdlib.h>

static const int64_t sizes_bytes[] = {8, 1024, 65536};
enum { SIZES = sizeof sizes_bytes / sizeof *sizes_bytes };

enum { WARM_UPS = 5, ROUNDS_LEAST = 20, ROUNDS_MOST = 2000 };

static int run_one(const struct team *team, struct sync *sync, struct entrant *entrant, double *seconds) {
  if (entrant->prepare)
    entrant->prepare(entrant->context);
  const struct sync_start start = sync->scheme->start(sync);
  entrant->execute(entrant->context);
  *seconds = (double)(clock_ns() - start.origin_ns) * 1e-9;
  const int status = entrant->finish(entrant->context);
  if (status)
    failure_place("%s", entrant->name);
  team_allreduce(team, seconds, 1, MPI_DOUBLE, MPI_MAX);
  return team_agree(team, status);
}

/* The order comes from a generator without a clock, which is the same on all ranks. */
static int run_round(const struct team *team, struct sync *sync, struct entrant *entrants, int count,
                     int round, struct rng *rng, int *order) {
  double discarded;
  rng_permutation(rng, count, order);
  for (int i = 0; i < count; i++) {
    struct entrant *entrant = &entrants[order[i]];
    if (run_one(team, sync, entrant, round < 0 ? &discarded : &entrant->seconds[round]))
      return -1;
  }
  return 0;
}

int race(const struct team *team, struct sync *sync, struct entrant *entrants, int count, double seconds) {
  struct rng rng = {1};
  int *order = allocate((size_t)count * sizeof *order);
  int round = -WARM_UPS, over = 0, status = 0;
  for (int i = 0; i < count; i++)
    entrants[i].seconds = allocate(ROUNDS_MOST * sizeof(double));
  sync_prepare(sync);
  const int64_t deadline_ns = clock_ns() + (int64_t)(seconds * 1e9);
  for (; status == 0 && round < ROUNDS_MOST && !over; round++) {
    status = run_round(team, sync, entrants, count, round, &rng, order);
    over = round + 1 >= ROUNDS_LEAST && clock_ns() > deadline_ns;
    team_bcast(team, &over, 1, MPI_INT);
  }
  free(order);
  return status ? -1 : round;
}

void race_free(struct entrant *entrants, int count) {
  for (int i = 0; i < count; i++)
    free(entrants[i].seconds);
}

struct interval race_ratio(const struct entrant *entrant, const struct entrant *other, int rounds) {
  double *ratios = allocate((size_t)rounds * sizeof *ratios);
  for (int i = 0; i < rounds; i++)
    ratios[i] = entrant->seconds[i] / other->seconds[i];
  const struct interval interval = median_interval(ratios, rounds);
  free(ratios);
  return interval;
}

void race_print(const struct entrant *entrant, const struct entrant *other, int rounds) {
  const struct interval ratio = race_ratio(entrant, other, rounds);
  printf("  %-32s %9.2f us  %6.3f [%.3f, %.3f]", entrant->name,
         1e6 * median_interval(entrant->seconds, rounds).median, ratio.median, ratio.low, ratio.high);
}

static int compare_pattern(const struct team *team, const struct comparison *comparison, const char *text,
                           const char *scheme, double seconds) {
  struct pattern_spec spec;
  struct pattern pattern = {0};
  struct pattern_features features;
  struct sync sync = sync_create(team, scheme);
  int status = team_agree(team, pattern_parse(text, &spec));
  if (status == 0)
    status = pattern_generate(team, &spec, &pattern);
  if (status == 0)
    pattern_measure(team, &pattern, &features);
  for (int i = 0; status == 0 && i < SIZES; i++) {
    struct workload workload;
    status = workload_create(team, operation_by_name(comparison->operation), &pattern, &features,
                             sizes_bytes[i], 1, NULL, &workload);
    if (status == 0)
      status = comparison->compare(&workload, &features, &sync, text, seconds);
    workload_free(&workload);
  }
  pattern_free(&pattern);
  return status;
}

int comparison_main(int argc, char **argv, const struct comparison *comparison) {
  MPI_Init(&argc, &argv);
  struct team team;
  team_create(&team);
  const double seconds = argc > 1 ? atof(argv[1]) : 2;
  const char *scheme = argc > 2 ? argv[2] : "";
  int status = sync_check_scheme(&team, scheme);
  if (seconds <= 0 || (*scheme && !sync_find(scheme)))
    status = failure_set("usage: %s [SECONDS [window|hca|barrier]]", comparison->program);
  status = team_agree(&team, status);
  for (int i = 0; status == 0 && comparison->patterns[i]; i++)
    status = compare_pattern(&team, comparison, comparison->patterns[i], scheme, seconds);
  team_free(&team);
  MPI_Finalize();
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
