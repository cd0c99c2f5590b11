/*
 * swpbench overlap: races the methods of a kernel with amounts of computation, in rounds of random order. The
 * parts of a rank's time are averaged over ranks; the computation is also timed without communication.
 */
#include "overlap.h"

#include "error.h"
#include "hang.h"
#include "launch.h"
#include "measure.h"
#include "precision.h"
#include "rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct overlap_kernel overlap_ft, overlap_spmv;

static const struct overlap_kernel *const kernels[] = {&overlap_ft, &overlap_spmv, NULL};

enum { OVERLAP_WARM_UPS = 2 };

/* Seconds of one execution: on the slowest rank, and means over ranks. */
struct seen {
  double total_s, part_s[OVERLAP_PARTS], alone_s;
};

enum { SUMMED = OVERLAP_PARTS + 1 }; /* of which the mean is taken */

/* A method with an amount of computation. */
struct entry {
  const struct overlap_method *method;
  const struct overlap_work *work;
  struct seen *samples;
};

struct race {
  struct overlap overlap;
  const struct options *options;
  struct launch launch;
  struct overlap_method *methods;
  struct overlap_work *works;
  struct entry *entries;
  int nmethods, nworks, nentries, samples, verified;
};

void overlap_help(void) {
  printf("\npatterns of overlap, and its methods:\n");
  for (int i = 0; kernels[i]; i++) {
    const struct overlap_kernel *kernel = kernels[i];
    printf("  %s:", kernel->name);
    for (int p = 0; p < PATTERN_PARAMETERS && kernel->parameters[p].name; p++)
      printf("%s%s=%lld", p ? "," : "", kernel->parameters[p].name,
             (long long)kernel->parameters[p].standard);
    printf("  %s\n", kernel->summary);
    for (const struct overlap_family *family = kernel->families; family->name; family++)
      printf("    %-10s %s\n", family->name, family->summary);
  }
}

static int parse_pattern(struct race *race, const char *text) {
  const size_t length = strcspn(text, ":");
  struct overlap *overlap = &race->overlap;
  for (int i = 0; kernels[i] && !overlap->kernel; i++)
    if (strlen(kernels[i]->name) == length && strncmp(kernels[i]->name, text, length) == 0)
      overlap->kernel = kernels[i];
  if (!overlap->kernel)
    return failure_set("--pattern \"%s\" is not a pattern of overlap; see swpbench --help", text);
  const struct pattern_parameter *parameters = overlap->kernel->parameters;
  if (parameters_parse(text[length] ? text + length + 1 : NULL, parameters, PATTERN_PARAMETERS,
                       overlap->values)) {
    failure_place("--pattern \"%s\"", text);
    return -1;
  }
  size_t used =
      (size_t)snprintf(race->launch.pattern, sizeof race->launch.pattern, "%s", overlap->kernel->name);
  for (int i = 0; i < PATTERN_PARAMETERS && parameters[i].name; i++)
    used += (size_t)snprintf(race->launch.pattern + used, sizeof race->launch.pattern - used, "%c%s=%lld",
                             i ? ',' : ':', parameters[i].name, (long long)overlap->values[i]);
  return 0;
}

static int parse_methods(struct race *race) {
  if (overlap_methods(&race->overlap, race->options->methods, &race->methods, &race->nmethods))
    return -1;
  for (int i = 0; i < race->nmethods; i++)
    race->overlap.puts |= race->methods[i].by == BY_PUT;
  return 0;
}

/* Adds an amount of computation, unless it is there already. */
static void add_work(struct race *race, double flops) {
  struct overlap_work work;
  race->overlap.kernel->work_create(&race->overlap, (int64_t)flops, &work);
  for (int i = 0; i < race->nworks; i++)
    if (race->works[i].flops == work.flops) {
      race->overlap.kernel->work_free(&work);
      return;
    }
  race->works = reallocate(race->works, ((size_t)race->nworks + 1) * sizeof *race->works);
  race->works[race->nworks++] = work;
}

/* Reads flops, and percentages of those of full rows. */
static int parse_computation(struct race *race, const char *text) {
  const char *without = race->overlap.kernel->without ? race->overlap.kernel->without() : NULL;
  const double full = (double)race->overlap.full_flops;
  bool impossible = false;
  if (!text && without && race->overlap.team->rank == 0)
    printf("swpbench: no computation: %s\n", without);
  if (!text)
    text = without ? "0" : "0,25%,50%,75%,100%";
  for (const char *rest = text; rest;) {
    char *end;
    const double number = strtod(rest, &end), flops = *end == '%' ? number / 100 * full : number;
    if (end == rest || !(number >= 0 && isfinite(number)) || (end += *end == '%', *end && *end != ','))
      return failure_set("--computation \"%s\": write a list of flops or percentages, as 0,25%%,2e6", text);
    if (flops > full)
      return failure_set("--computation: %g flops; full rows have %g", flops, full);
    if (flops > 0 && without)
      impossible = true;
    else
      add_work(race, flops);
    rest = *end ? end + 1 : NULL;
  }
  return impossible ? failure_set("--computation: %s; only 0 is possible", without) : 0;
}

static void make_entries(struct race *race) {
  const size_t most = (size_t)race->options->max_samples;
  race->nentries = race->nmethods * race->nworks;
  race->entries = allocate((size_t)race->nentries * sizeof *race->entries);
  for (int i = 0; i < race->nentries; i++)
    race->entries[i] = (struct entry){&race->methods[i / race->nworks], &race->works[i % race->nworks],
                                      allocate(most * sizeof(struct seen))};
}

static int prepare(struct race *race, const char *pattern, const char *computation) {
  const struct team *team = race->overlap.team;
  int status = parse_pattern(race, pattern);
  if (status == 0)
    status = parse_methods(race);
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): where all ranks succeeded, each has a kernel */
  if (team_agree(team, status) || team_agree(team, race->overlap.kernel->create(&race->overlap)))
    return -1;
  if (launch_open(&race->launch, parse_computation(race, computation)))
    return -1;
  make_entries(race);
  return launch_begin(&race->launch);
}

/* One execution, as this rank sees it. */
static struct seen execute(struct race *race, const struct entry *entry, bool communicates) {
  struct overlap *overlap = &race->overlap;
  struct stopwatch watch = {0};
  struct seen seen;
  hang_next("execution of", entry->method->spec, 0);
  overlap->repetition++;
  overlap->kernel->prepare(overlap);
  race->launch.sync.scheme->start(&race->launch.sync);
  const int64_t begin_ns = watch.last_ns = clock_ns();
  overlap->kernel->run(overlap, entry->method, entry->work, communicates, &watch);
  seen.total_s = (double)(watch.last_ns - begin_ns) * 1e-9;
  for (int i = 0; i < OVERLAP_PARTS; i++)
    seen.part_s[i] = (double)watch.spent_ns[i] * 1e-9;
  seen.alone_s = 0;
  return seen;
}

/* Reduces the ranks' times of a round: of each entry the longest total, and the means of the rest. */
static void reduce(const struct race *race, struct seen *round) {
  const struct team *team = race->overlap.team;
  double *totals = allocate((size_t)race->nentries * sizeof *totals);
  for (int i = 0; i < race->nentries; i++)
    totals[i] = round[i].total_s;
  team_allreduce(team, totals, race->nentries, MPI_DOUBLE, MPI_MAX);
  team_allreduce(team, round, race->nentries * (int)(sizeof *round / sizeof(double)), MPI_DOUBLE, MPI_SUM);
  for (int i = 0; i < race->nentries; i++) {
    round[i].total_s = totals[i];
    round[i].alone_s /= team->procs;
    for (int part = 0; part < OVERLAP_PARTS; part++)
      round[i].part_s[part] /= team->procs;
  }
  free(totals);
}

/* All entries in random order; negative rounds are not kept. 0, or -1 on every rank for wrong data. */
static int run_round(struct race *race, int number, bool verified, struct seen *round, int *order) {
  struct overlap *overlap = &race->overlap;
  const uint64_t seed = hash_pair((uint64_t)race->options->seed, (uint64_t)race->options->launch);
  rng_permutation(&(struct rng){hash_pair(seed, (uint64_t)(number + OVERLAP_WARM_UPS))}, race->nentries,
                  order);
  int status = 0;
  for (int i = 0; i < race->nentries; i++) {
    const struct entry *entry = &race->entries[order[i]];
    round[order[i]] = execute(race, entry, true);
    /* All ranks take part in verification, also those that have found something wrong. */
    if (verified && overlap->kernel->verify(overlap, entry->work) && status == 0) {
      failure_place("%s with %lld flops", entry->method->spec, (long long)entry->work->flops);
      status = -1;
    }
    if (entry->work->state)
      round[order[i]].alone_s = execute(race, entry, false).part_s[COMPUTATION];
  }
  if (verified && team_agree(overlap->team, status))
    return -1;
  reduce(race, round);
  for (int i = 0; i < race->nentries && number >= 0; i++)
    race->entries[i].samples[number] = round[i];
  return 0;
}

static bool all_precise(const struct race *race) {
  bool all = true;
  for (int i = 0; i < race->nentries && all; i++) {
    const struct seen *first = race->entries[i].samples;
    all = precise(member_interval(&first->total_s, sizeof *first, race->samples));
  }
  return all;
}

static int run_rounds(struct race *race) {
  const struct team *team = race->overlap.team;
  struct seen *round = allocate((size_t)race->nentries * sizeof *round);
  int *order = allocate((size_t)race->nentries * sizeof *order);
  const char *why;
  int status = 0, next = STOP;
  sync_prepare(&race->launch.sync);
  for (int warm_up = -OVERLAP_WARM_UPS; status == 0 && warm_up < 0; warm_up++)
    status = run_round(race, warm_up, false, round, order);
  while (status == 0) {
    if (team->rank == 0)
      next = next_round(race->samples, race->options->max_samples,
                        precision_look(race->samples) && all_precise(race), launch_is_over(&race->launch),
                        (enum next_round)next, &why);
    team_bcast(team, &next, 1, MPI_INT);
    if (next == STOP)
      break;
    if (sync_is_due(race->samples))
      sync_prepare(&race->launch.sync);
    status = run_round(race, race->samples, next == RUN_VERIFIED, round, order);
    race->samples++;
    race->verified += next == RUN_VERIFIED;
  }
  free(round);
  free(order);
  return status;
}

static double median_us(const double *first, int samples) {
  return 1e6 * member_interval(first, sizeof(struct seen), samples).median;
}

static void print_entry(const struct race *race, const struct entry *entry) {
  const struct seen *first = entry->samples;
  const char *names[OVERLAP_PARTS] = {"computation", "initiation", "wait", "barrier"};
  printf("%s, %lld flops: %.1f us,", entry->method->spec, (long long)entry->work->flops,
         median_us(&first->total_s, race->samples));
  for (int i = 0; i < OVERLAP_PARTS; i++)
    printf(" %s %.1f", names[i], median_us(&first->part_s[i], race->samples));
  printf("\n");
}

static int write_entry(struct race *race, const struct entry *entry) {
  const struct overlap *overlap = &race->overlap;
  const struct seen *first = entry->samples;
  const size_t stride = sizeof *first;
  const int n = race->samples;
  int64_t messages, message_bytes;
  overlap->kernel->measure(overlap, entry->method, &messages, &message_bytes);
  struct json json;
  json_begin(&json, "overlap");
  json_string(&json, "method", entry->method->spec);
  json_int(&json, "flops", entry->work->flops);
  json_int(&json, "full_flops", overlap->full_flops);
  json_int(&json, "messages", messages);
  json_int(&json, "message_bytes", message_bytes);
  json_doubles(&json, "samples_s", &first->total_s, stride, n);
  json_doubles(&json, "computation_s", &first->part_s[COMPUTATION], stride, n);
  json_doubles(&json, "initiation_s", &first->part_s[INITIATION], stride, n);
  json_doubles(&json, "wait_s", &first->part_s[WAIT], stride, n);
  json_doubles(&json, "barrier_s", &first->part_s[BARRIER], stride, n);
  json_doubles(&json, "alone_s", &first->alone_s, stride, n);
  json_int(&json, "verified", race->verified);
  if (!race->options->quiet)
    print_entry(race, entry);
  return launch_write(&race->launch, &json, n);
}

static void race_free(struct race *race) {
  const struct overlap_kernel *kernel = race->overlap.kernel;
  launch_free(&race->launch);
  for (int i = 0; i < race->nentries; i++)
    free(race->entries[i].samples);
  if (kernel) {
    for (int i = 0; i < race->nworks; i++)
      kernel->work_free(&race->works[i]);
    kernel->free(&race->overlap);
  }
  free(race->entries);
  free(race->works);
  free(race->methods);
}

/* 0, or -1 on every rank after the failure was printed. */
static int write_all(struct race *race) {
  const struct team *team = race->overlap.team;
  int status = 0;
  for (int i = 0; status == 0 && team->rank == 0 && i < race->nentries; i++)
    status = write_entry(race, &race->entries[i]);
  return team_agree(team, status) ? -1 : launch_end(&race->launch);
}

int overlap(const struct team *team, const struct options *options, const char *pattern,
            const char *computation) {
  struct race race = {.options = options, .launch = launch_create(team, options, "overlap")};
  race.overlap.team = team;
  race.overlap.seed = (uint64_t)options->seed;
  hang_watch(team->rank, PREPARATION_LIMITS * options->limit_s);
  int status = prepare(&race, pattern, computation);
  hang_watch(team->rank, options->limit_s);
  if (status == 0)
    status = run_rounds(&race);
  if (status == 0)
    status = write_all(&race);
  hang_watch(team->rank, 0);
  race_free(&race);
  return status;
}
