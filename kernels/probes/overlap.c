/*
 * swpbench overlap: races the methods of a kernel with amounts of computation, in rounds of random order.
 * What a rank spends its time with is averaged over ranks; the computation is also timed without
 * communication.
 */
#include "overlap.h"

#include "emit.h"
#include "error.h"
#include "json.h"
#include "precision.h"
#include "rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct overlap_kernel overlap_ft, overlap_spmv;

static const struct overlap_kernel *const kernels[] = {&overlap_ft, &overlap_spmv, NULL};

enum { WARM_UPS = 2, VERIFY_EVERY = 10 };
enum command { STOP, RUN, RUN_VERIFIED };

/* Seconds of one execution: of the rank that it took longest, and means over ranks. */
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
  int64_t begin_ns;
  struct sync sync;
  struct facts facts;
  struct launch launch;
  char pattern[128];
  struct output output; /* on rank 0 */
  struct overlap_method *methods;
  struct overlap_work *works;
  struct entry *entries;
  int nmethods, nworks, nentries, samples, verified;
};

const struct overlap_kernel *overlap_kernel(int index) {
  return kernels[index];
}

static int parse_pattern(struct race *race) {
  const char *text = race->options->pattern_text;
  const size_t length = strcspn(text, ":");
  struct overlap *overlap = &race->overlap;
  for (int i = 0; kernels[i] && !overlap->kernel; i++)
    if (strlen(kernels[i]->name) == length && strncmp(kernels[i]->name, text, length) == 0)
      overlap->kernel = kernels[i];
  if (!overlap->kernel)
    return failure_set("--pattern \"%s\" is none of overlap; see swpbench --help", text);
  const struct pattern_parameter *parameters = overlap->kernel->parameters;
  if (parameters_parse(text[length] ? text + length + 1 : NULL, parameters, PATTERN_PARAMETERS,
                       overlap->values)) {
    failure_place("--pattern \"%s\"", text);
    return -1;
  }
  size_t used = (size_t)snprintf(race->pattern, sizeof race->pattern, "%s", overlap->kernel->name);
  for (int i = 0; i < PATTERN_PARAMETERS && parameters[i].name; i++)
    used += (size_t)snprintf(race->pattern + used, sizeof race->pattern - used, "%c%s=%lld", i ? ',' : ':',
                             parameters[i].name, (long long)overlap->values[i]);
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

/* Reads numbers of flops, and of % of those of full rows. */
static int parse_computation(struct race *race) {
  const char *without = race->overlap.kernel->without ? race->overlap.kernel->without() : NULL;
  const char *text = race->options->computation;
  const double full = (double)race->overlap.full_flops;
  if (!text && without && race->overlap.team->rank == 0)
    printf("swpbench: no computation: %s\n", without);
  if (!text)
    text = without ? "0" : "0,25%,50%,75%,100%";
  for (const char *rest = text; rest;) {
    char *end;
    const double number = strtod(rest, &end), flops = *end == '%' ? number / 100 * full : number;
    if (end == rest || !(number >= 0) || (end += *end == '%', *end && *end != ','))
      return failure_set("--computation \"%s\": write a list of flops or percentages, as 0,25%%,2e6", text);
    if (flops > full)
      return failure_set("--computation: %g flops; full rows have %g", flops, full);
    if (flops > 0 && without)
      return failure_set("--computation: %s; only 0 is possible", without);
    add_work(race, *end == '\0' && number == 100 ? full : flops);
    rest = *end ? end + 1 : NULL;
  }
  return 0;
}

static void make_entries(struct race *race) {
  const size_t most = (size_t)race->options->max_samples;
  race->nentries = race->nmethods * race->nworks;
  race->entries = allocate((size_t)race->nentries * sizeof *race->entries);
  for (int i = 0; i < race->nentries; i++)
    race->entries[i] = (struct entry){&race->methods[i / race->nworks], &race->works[i % race->nworks],
                                      allocate(most * sizeof(struct seen))};
}

static int prepare(struct race *race) {
  const struct team *team = race->overlap.team;
  const struct options *options = race->options;
  int status = parse_pattern(race);
  if (status == 0)
    status = parse_methods(race);
  if (team_agree(team, status) || team_agree(team, race->overlap.kernel->create(&race->overlap)))
    return -1;
  status = parse_computation(race);
  if (status == 0 && team->rank == 0)
    status = output_open(&race->output, options->out);
  if (team_agree(team, status))
    return -1;
  make_entries(race);
  facts_collect(team, &race->facts);
  race->sync = sync_create(team, options->sync);
  race->launch = (struct launch){.team = team,
                                 .options = options,
                                 .facts = &race->facts,
                                 .sync = &race->sync,
                                 .tick_ns = clock_tick_ns(),
                                 .operation = "overlap",
                                 .pattern = race->pattern};
  return team_agree(team, team->rank == 0 ? emit_header(&race->output, &race->launch) : 0);
}

/* One execution, as this rank sees it. */
static struct seen execute(struct race *race, const struct entry *entry, bool communicates) {
  struct overlap *overlap = &race->overlap;
  struct stopwatch watch = {0};
  struct seen seen;
  overlap->repetition++;
  overlap->kernel->prepare(overlap);
  race->sync.scheme->start(&race->sync);
  const int64_t begin_ns = watch.last_ns = clock_ns();
  overlap->kernel->run(overlap, entry->method, entry->work, communicates, &watch);
  seen.total_s = (double)(watch.last_ns - begin_ns) * 1e-9;
  for (int i = 0; i < OVERLAP_PARTS; i++)
    seen.part_s[i] = (double)watch.spent_ns[i] * 1e-9;
  seen.alone_s = 0;
  return seen;
}

/* Reduces what the ranks saw of a round: of each entry the longest total, and the means of the rest. */
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
  rng_permutation(&(struct rng){hash_pair(seed, (uint64_t)(number + WARM_UPS))}, race->nentries, order);
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

static bool all_precise(const struct race *race, double *seconds) {
  for (int i = 0; i < race->nentries; i++) {
    for (int s = 0; s < race->samples; s++)
      seconds[s] = race->entries[i].samples[s].total_s;
    if (!precise(median_interval(seconds, race->samples)))
      return false;
  }
  return true;
}

/* What is next when some rounds are measured; the last one, whenever it comes, is a verified one. */
static enum command next_command(const struct race *race, enum command last, double *seconds) {
  const int n = race->samples, most = race->options->max_samples;
  const double budget_s = race->options->budget_s, spent_s = (double)(clock_ns() - race->begin_ns) * 1e-9;
  if (n == most || (precision_look(n) && all_precise(race, seconds)))
    return STOP;
  const bool over = budget_s > 0 && spent_s > budget_s;
  if (over && n > 0 && last == RUN_VERIFIED)
    return STOP;
  return over || n % VERIFY_EVERY == 0 || precision_look(n + 1) || n + 1 == most ? RUN_VERIFIED : RUN;
}

static int run_rounds(struct race *race) {
  const struct team *team = race->overlap.team;
  struct seen *round = allocate((size_t)race->nentries * sizeof *round);
  int *order = allocate((size_t)race->nentries * sizeof *order);
  double *seconds = allocate((size_t)race->options->max_samples * sizeof *seconds);
  int status = 0, command = STOP;
  sync_prepare(&race->sync);
  for (int warm_up = -WARM_UPS; status == 0 && warm_up < 0; warm_up++)
    status = run_round(race, warm_up, false, round, order);
  while (status == 0) {
    if (team->rank == 0)
      command = next_command(race, command, seconds);
    team_bcast(team, &command, 1, MPI_INT);
    if (command == STOP)
      break;
    status = run_round(race, race->samples, command == RUN_VERIFIED, round, order);
    race->samples++;
    race->verified += command == RUN_VERIFIED;
  }
  free(round);
  free(order);
  free(seconds);
  return status;
}

static double median(const struct entry *entry, const double *first, int samples, double *room) {
  const size_t offset = (size_t)((const char *)first - (const char *)entry->samples);
  for (int i = 0; i < samples; i++)
    memcpy(&room[i], (const char *)&entry->samples[i] + offset, sizeof *room);
  return median_interval(room, samples).median;
}

static void print_entry(const struct race *race, const struct entry *entry) {
  const struct seen *first = entry->samples;
  const char *names[OVERLAP_PARTS] = {"computation", "initiation", "wait", "barrier"};
  double *room = allocate((size_t)race->samples * sizeof *room);
  printf("%s, %lld flops: %.1f us,", entry->method->spec, (long long)entry->work->flops,
         1e6 * median(entry, &first->total_s, race->samples, room));
  for (int i = 0; i < OVERLAP_PARTS; i++)
    printf(" %s %.1f", names[i], 1e6 * median(entry, &first->part_s[i], race->samples, room));
  printf("\n");
  free(room);
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
  race->output.cases++;
  race->output.samples += n;
  if (!race->options->quiet)
    print_entry(race, entry);
  return json_write(&json, race->output.file, race->output.path);
}

static void race_free(struct race *race) {
  const struct overlap_kernel *kernel = race->overlap.kernel;
  output_close(&race->output);
  for (int i = 0; i < race->nentries; i++)
    free(race->entries[i].samples);
  for (int i = 0; i < race->nworks; i++)
    kernel->work_free(&race->works[i]);
  if (kernel)
    kernel->free(&race->overlap);
  free(race->entries);
  free(race->works);
  free(race->methods);
  free(race->facts.hostnames);
}

/* 0, or -1 on every rank after the failure was told. */
static int write_all(struct race *race) {
  const struct team *team = race->overlap.team;
  int status = 0;
  for (int i = 0; status == 0 && team->rank == 0 && i < race->nentries; i++)
    status = write_entry(race, &race->entries[i]);
  if (team_agree(team, status))
    return -1;
  return emit_end(&race->output, team, (double)(clock_ns() - race->begin_ns) * 1e-9, NULL, 0);
}

int overlap(const struct team *team, const struct options *options) {
  struct race race = {.options = options, .begin_ns = clock_ns()};
  race.overlap.team = team;
  race.overlap.seed = (uint64_t)options->seed;
  int status = prepare(&race);
  if (status == 0)
    status = run_rounds(&race);
  if (status == 0)
    status = write_all(&race);
  race_free(&race);
  return status;
}
