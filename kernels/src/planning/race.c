/* The races of SWP_MEASURE. */
#include "race.h"

#include "off.h"
#include "order.h"
#include "random.h"
#include "trial.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_LEAST = 9, ROUNDS_MOST = 49, BATCH_MOST = 1000, WARM_UPS = 2 };

static const double BUDGET_S = 1;        /* where the hints set none */
static const double BATCH_S = 2e-4;      /* executions are repeated to take so long, as starts differ */
static const double PLAN_AGAIN_S = 0.01; /* a plan that took longer is not made again only to time it */
static const double HOPELESS = 4;        /* times as slow as the default, while warming up */
static const double CLEARLY = 0.98;      /* of the default's time */
static const double ERROR_LEVEL = 0.05;  /* how often one of equals may beat the default */

struct runner {
  struct swp_plan *trial;
  double plan_s, warm_s, median_s;
  double seconds[ROUNDS_MOST];
  bool out;
  int turn; /* in a round: the runner that has this one's place in the order */
};

struct race {
  struct swp_plan *plan;
  struct buffers buffers;              /* of its own: the application's are not known yet, and not for this */
  double begin_s, budget_s, elapsed_s; /* elapsed: on the rank that began first, known to all */
  int count, rounds;
  struct runner *runners; /* the default is the first */
  uint64_t random;        /* the same on all ranks */
  bool alike;             /* variants, on all ranks */
  bool failed;            /* an execution did: MPI may still use what it was given */
};

/* ---- One sample ---- */

/* Seconds per execution on the slowest rank, from this many consecutive ones. All ranks leave with the same
   values, or the same error. */
static int sample(struct race *race, struct swp_plan *trial, int executions, double *seconds) {
  int error = SWP_SUCCESS, own = SWP_SUCCESS;
  MPI_Comm comm = race->plan->comm;
  MPI_TRY(MPI_Barrier(comm));
  double begin_s = MPI_Wtime();
  for (int i = 0; i < executions && own == SWP_SUCCESS; i++)
    own = swp_trial_execute(trial, &race->buffers);
  double end_s = MPI_Wtime();
  double mine[] = {(end_s - begin_s) / executions, end_s - race->begin_s, own != SWP_SUCCESS}, all[3];
  MPI_TRY(MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, comm));
  *seconds = all[0];
  race->elapsed_s = all[1];
  race->failed = all[2] > 0;
  if (race->failed)
    error = swp_agree(comm, own);
done:
  return error;
}

/* The same for all: starts that differ between ranks are then the same share of every method's time. Rooted
   collectives are executed once, as several would be under way at the same time. */
static int batch(const struct race *race) {
  if (swp_shapes[race->plan->operation].rooted)
    return 1;
  double least_s = race->runners[0].warm_s;
  for (int i = 1; i < race->count; i++)
    if (race->runners[i].warm_s < least_s)
      least_s = race->runners[i].warm_s;
  double times = least_s > 0 ? BATCH_S / least_s : BATCH_MOST;
  return times < 1 ? 1 : times > BATCH_MOST ? BATCH_MOST : (int)times;
}

/* ---- Candidates ---- */

static int plan_once(struct race *race, const struct spec *spec, struct runner *runner, double *seconds) {
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Barrier(race->plan->comm));
  double begin_s = MPI_Wtime();
  TRY(swp_trial_plan(race->plan, spec, NULL, &runner->trial));
  double mine = MPI_Wtime() - begin_s;
  MPI_TRY(MPI_Allreduce(&mine, seconds, 1, MPI_DOUBLE, MPI_MAX, race->plan->comm));
done:
  return error;
}

/* The second time, objects made once per communicator exist already. */
static int plan_runner(struct race *race, const struct spec *spec, struct runner *runner) {
  int error = SWP_SUCCESS;
  double again_s;
  TRY(plan_once(race, spec, runner, &runner->plan_s));
  if (runner->plan_s < PLAN_AGAIN_S) {
    swp_plan_free(&runner->trial);
    TRY(plan_once(race, spec, runner, &again_s));
    runner->plan_s = again_s < runner->plan_s ? again_s : runner->plan_s;
  }
done:
  return error;
}

static int warm_up(struct race *race, struct runner *runner) {
  int error = SWP_SUCCESS;
  for (int i = 0; i < WARM_UPS; i++)
    TRY(sample(race, runner->trial, 1, &runner->warm_s));
  runner->out = runner->warm_s > HOPELESS * race->runners[0].warm_s;
done:
  return error;
}

static void remove_last(struct race *race) {
  swp_plan_free(&race->runners[--race->count].trial);
}

/* Adds a method; one that is not applicable, or cannot be planned, is passed over, on all ranks. */
static int add(struct race *race, const char *text) {
  struct spec spec;
  int error = swp_spec_parse(race->plan->operation, text, &spec);
  if (error != SWP_SUCCESS || !swp_is_candidate(&spec, &race->plan->features))
    return error;
  for (int i = 0; i < race->count; i++)
    if (strcmp(race->runners[i].trial->spec.text, spec.text) == 0)
      return SWP_SUCCESS;
  struct runner *runner = &race->runners[race->count++];
  error = plan_runner(race, &spec, runner);
  if (error == SWP_SUCCESS)
    return warm_up(race, runner);
  if (race->count == 1)
    return error;
  remove_last(race);
  return SWP_SUCCESS;
}

/* How many variants all methods have. */
static int count_variants(const struct swp_plan *plan) {
  const struct method *method;
  char text[SPEC_BYTES];
  int count = 0;
  for (int i = 0; (method = swp_method_at(i)) != NULL; i++)
    for (int index = 0; swp_method_variant(method, plan->operation, index, plan->procs, text, sizeof text);
         index++)
      count++;
  return count;
}

/* Finds whether all ranks have the same variants, also of methods that a process may lack. Collective. */
static int compare_variants(struct race *race) {
  const struct swp_plan *plan = race->plan;
  const struct method *method;
  char text[SPEC_BYTES];
  int64_t mine[2] = {0, 0}, most[2];
  int error = SWP_SUCCESS;
  for (int i = 0; (method = swp_method_at(i)) != NULL; i++)
    for (int index = 0; method->absent != NULL &&
                        swp_method_variant(method, plan->operation, index, plan->procs, text, sizeof text);
         index++)
      mine[0] = (31 * mine[0] + swp_text_hash(text)) % INT32_MAX;
  mine[1] = -mine[0];
  MPI_TRY(MPI_Allreduce(mine, most, 2, MPI_INT64_T, MPI_MAX, plan->comm));
  race->alike = most[0] == -most[1];
done:
  return error;
}

/* The index-th variant of every method; *found when there are any. */
static int add_variants(struct race *race, int index, bool *found) {
  const struct method *method;
  int error = SWP_SUCCESS;
  *found = false;
  for (int i = 0; (method = swp_method_at(i)) != NULL; i++) {
    char text[SPEC_BYTES];
    if (method->absent != NULL && !race->alike)
      continue;
    if (!swp_method_variant(method, race->plan->operation, index, race->plan->procs, text, sizeof text))
      continue;
    *found = true;
    if (race->elapsed_s < race->budget_s / 2)
      TRY(add(race, text));
  }
done:
  return error;
}

/* While they take less than half of the budget: one of each method first. */
static int add_all(struct race *race) {
  int error = compare_variants(race);
  bool found = true;
  if (error == SWP_SUCCESS)
    error = add(race, swp_shapes[race->plan->operation].default_method);
  for (int index = 0; error == SWP_SUCCESS && found && race->elapsed_s < race->budget_s / 2; index++)
    error = add_variants(race, index, &found);
  return error;
}

/* ---- Rounds ---- */

static int run_round(struct race *race) {
  int error = SWP_SUCCESS, executions = batch(race);
  for (int i = 0; i < race->count; i++) {
    int j = (int)(swp_random(&race->random) % (uint64_t)(i + 1));
    race->runners[i].turn = race->runners[j].turn;
    race->runners[j].turn = i;
  }
  for (int i = 0; i < race->count; i++) {
    struct runner *runner = &race->runners[race->runners[i].turn];
    if (!runner->out)
      TRY(sample(race, runner->trial, executions, &runner->seconds[race->rounds]));
  }
  race->rounds++;
done:
  return error;
}

static int count_challengers(const struct race *race) {
  int count = 0;
  for (int i = 1; i < race->count; i++)
    count += !race->runners[i].out;
  return count;
}

static int run_rounds(struct race *race) {
  int error = SWP_SUCCESS;
  double before_s;
  do {
    before_s = race->elapsed_s;
    TRY(run_round(race));
  } while (race->rounds < ROUNDS_MOST && 2 * race->elapsed_s - before_s < race->budget_s &&
           (count_challengers(race) > 0 || race->rounds < ROUNDS_LEAST));
done:
  return error;
}

/* ---- The outcome ---- */

/* A fair coin's lead, squared, is so many times the number of rounds in at most one of
   1 / ERROR_LEVEL races of as many challengers: 2 ln (challengers / ERROR_LEVEL), by Hoeffding's inequality,
   rounded up to the next power of two. */
static double square_lead(int challengers) {
  static const double TWICE_LN2 = 1.3862943611198906;
  int doublings = 0;
  while (challengers > ERROR_LEVEL * (double)(1 << doublings))
    doublings++;
  return TWICE_LN2 * doublings;
}

static bool beats_default(const struct race *race, const struct runner *runner, int challengers) {
  const struct runner *standard = &race->runners[0];
  int wins = 0, n = race->rounds;
  for (int i = 0; i < n; i++)
    wins += runner->seconds[i] < standard->seconds[i];
  int lead = 2 * wins - n;
  return lead > 0 && lead * lead >= n * square_lead(challengers) &&
         runner->median_s < CLEARLY * standard->median_s;
}

/* The one that overtakes the current one first, of those left that are faster. NULL: none. */
static const struct runner *next_best(const struct race *race, const struct runner *now, int64_t *from) {
  const struct runner *next = NULL;
  double least = DBL_MAX;
  for (int i = 0; i < race->count; i++) {
    const struct runner *runner = &race->runners[i];
    if (runner->out || runner->median_s >= now->median_s)
      continue;
    double executions = (runner->plan_s - now->plan_s) / (now->median_s - runner->median_s);
    if (executions < least || (executions == least && next != NULL && runner->median_s < next->median_s)) {
      least = executions;
      next = runner;
    }
  }
  *from = least < 1 ? 0 : least < 1e14 ? (int64_t)least + 1 : (int64_t)1e14;
  return next;
}

static void begin_stretch(struct outcome *outcome, int64_t from, const struct spec *spec) {
  if (outcome->count > 0 && outcome->stretches[outcome->count - 1].from >= from)
    outcome->count--; /* overtaken before it began */
  outcome->stretches[outcome->count++] = (struct stretch){from, *spec};
}

static int by_median(const void *a, const void *b) {
  double x = ((const struct runner *)a)->median_s, y = ((const struct runner *)b)->median_s;
  return (x > y) - (x < y);
}

/* Lists the default, and then the fastest for which there is room. Sorts the runners. */
static void describe(struct race *race, struct outcome *outcome) {
  const size_t room = EVIDENCE_BYTES - 32; /* the words follow */
  size_t used = (size_t)snprintf(outcome->evidence, room, "measurement, %d rounds:", race->rounds);
  int left = 0;
  qsort(race->runners + 1, (size_t)(race->count - 1), sizeof *race->runners, by_median);
  for (int i = 0; i < race->count; i++) {
    const struct runner *runner = &race->runners[i];
    char entry[SPEC_BYTES + 32];
    size_t length = (size_t)snprintf(entry, sizeof entry, "%s %s %.4g us", i > 0 ? "," : "",
                                     runner->trial->spec.text, runner->median_s * 1e6);
    if (runner->median_s == 0) /* out of the race */
      continue;
    if (left > 0 || used + length >= room) {
      left++;
      continue;
    }
    memcpy(outcome->evidence + used, entry, length + 1);
    used += length;
  }
  if (left > 0)
    snprintf(outcome->evidence + used, EVIDENCE_BYTES - used, ", and %d more", left);
}

/* The time of each method, with planning, is a line over the number of executions: finds the lowest ones. */
static void decide(struct race *race, struct outcome *outcome) {
  const struct runner *now = &race->runners[0];
  int64_t from = 0;
  double sorted[ROUNDS_MOST];
  for (int i = 0; i < race->count; i++) {
    struct runner *runner = &race->runners[i];
    runner->median_s = runner->out ? 0 : swp_median(runner->seconds, sorted, race->rounds);
  }
  const int challengers = count_challengers(race);
  /* A method that wins all rounds has won enough. */
  outcome->decided = race->rounds >= ROUNDS_LEAST && race->rounds >= square_lead(challengers);
  begin_stretch(outcome, 0, &now->trial->spec);
  for (int i = 1; i < race->count; i++)
    race->runners[i].out = race->runners[i].out || !beats_default(race, &race->runners[i], challengers);
  while ((now = next_best(race, now, &from)) != NULL)
    begin_stretch(outcome, from, &now->trial->spec);
  describe(race, outcome);
}

const struct spec *swp_outcome_for(const struct outcome *outcome, int64_t executions) {
  int i = outcome->count - 1;
  while (executions > 0 && i > 0 && outcome->stretches[i].from > executions)
    i--;
  return &outcome->stretches[i].spec;
}

void swp_outcome_release(struct outcome *outcome) {
  swp_release(outcome->stretches);
}

/* ---- The race ---- */

static int begin(struct race *race, struct swp_plan *plan, bool in_place, struct outcome *outcome) {
  race->begin_s = MPI_Wtime();
  const size_t most = 1 + (size_t)count_variants(plan); /* the default may be none of them */
  race->plan = plan;
  race->budget_s = plan->hints.budget_s > 0 ? plan->hints.budget_s : BUDGET_S;
  race->runners = swp_allocate(most, sizeof *race->runners, NULL);
  outcome->stretches = swp_allocate(most, sizeof *outcome->stretches, NULL);
  if (race->runners == NULL || outcome->stretches == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory to measure %zu methods", most);
  return swp_buffers_make(plan, in_place, &race->buffers);
}

int swp_race(struct swp_plan *plan, struct outcome *outcome) {
  int error = SWP_SUCCESS;
  *outcome = (struct outcome){0};
  struct race race = {0};
  bool in_place = false;
  TRY(swp_buffers_agree(plan, &in_place));
  TRY(swp_agree(plan->comm, begin(&race, plan, in_place, outcome)));
  TRY(add_all(&race));
  TRY(run_rounds(&race));
  decide(&race, outcome);
done:
  swp_release_keeps(race.failed);
  while (race.count > 0)
    remove_last(&race);
  swp_buffers_free(&race.buffers);
  swp_release_keeps(false);
  swp_release(race.runners);
  return error;
}
