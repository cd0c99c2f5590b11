#include "command_line.h"

#include "error.h"
#include "names.h"
#include "overlap.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MOST = 65535, UNSET = -1 };
static const int64_t EXECUTIONS_MOST = INT64_MAX / 8;

static const double BUDGET_MOST_S = 1e9; /* nanoseconds of it fit into 64 bits */
static const double ARRIVAL_MOST_S = 1;

enum {
  RUN = COMMAND_RUN,
  OVERLAP = COMMAND_OVERLAP,
  SOAK = COMMAND_SOAK,
  METHODS = RUN | SOAK, /* of an operation */
  MEASURES = RUN | OVERLAP | COMMAND_PROBE,
  ALL = MEASURES | SOAK
};

/* An option of the commands of a mask, and required by some; those without an argument are flags. */
struct bench_option {
  const char *name, *argument, *help;
  int commands, required;
  /* Called with the argument; returns 0, or -1 with failure_text() set. */
  int (*set)(struct command_line *line, const char *value);
  /* Without `set`, the member of the command line for the argument's text, or for true if it is a flag. */
  size_t place;
  const char *wants; /* what an argument is that may not be empty */
};

#define AT(member) .place = offsetof(struct command_line, member)

static int parse_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *value) {
  char *end;
  errno = 0;
  *value = strtoll(text, &end, 10);
  if (*end || end == text || errno || *value < least || *value > most)
    return failure_set("%s \"%s\": write an integer from %lld to %lld", name, text, (long long)least,
                       (long long)most);
  return 0;
}

static int set_operation(struct command_line *line, const char *value) {
  line->options.operation = operation_by_name(value);
  return line->options.operation
             ? 0
             : failure_set("--op \"%s\": write exchange, discovery, spmv, or a collective such as bcast",
                           value);
}

static int set_pattern(struct command_line *line, const char *value) {
  line->pattern = value;
  if (line->command & METHODS && pattern_parse(value, &line->options.pattern)) {
    failure_place("--pattern \"%s\"", value);
    return -1;
  }
  return 0;
}

static int set_sizes(struct command_line *line, const char *value) {
  if (line->options.nraces)
    return failure_set("--races have sizes of their own: leave out --sizes");
  return sizes_parse(value, &line->sizes);
}

/* Adds sizes to those of the races before. In a soak, methods at one size may differ in executions. */
static int add_sizes(struct command_line *line, const struct items *sizes) {
  struct items *const all = &line->sizes;
  for (int64_t i = 0; line->command != COMMAND_SOAK && i < all->count * sizes->count; i++)
    if (all->list[i / sizes->count] == sizes->list[i % sizes->count])
      return failure_set("--races: %lld B appears in two races", (long long)sizes->list[i % sizes->count]);
  for (int64_t i = 0; i < sizes->count; i++)
    items_add(all, sizes->list[i]);
  return 0;
}

/* Reads "SIZES SAMPLES METHODS", or executions in the place of samples, in place. */
static int add_race(struct command_line *line, char *text) {
  const char *const sizes_text = strsep(&text, " "), *const repeats_text = text ? strsep(&text, " ") : NULL;
  struct options *options = &line->options;
  struct items sizes;
  int64_t repeats = 0;
  if (options->nraces == RACES_MOST || !text)
    return failure_set("--races: write at most %d parts SIZES SAMPLES METHODS, separated by '|'", RACES_MOST);
  if (parse_number("--races", repeats_text, 1, line->command == COMMAND_SOAK ? EXECUTIONS_MOST : SAMPLES_MOST,
                   &repeats))
    return -1;
  const int status = sizes_parse(sizes_text, &sizes) ? -1 : add_sizes(line, &sizes);
  options->races[options->nraces++] = (struct size_race){(int)sizes.count, text, repeats};
  free(sizes.list);
  return status;
}

static int set_races(struct command_line *line, const char *value) {
  if (line->sizes.count > 0)
    return failure_set("--races have sizes of their own: leave out --sizes");
  char *rest = line->races = allocate(strlen(value) + 1);
  strcpy(rest, value);
  int status = 0;
  for (char *part; status == 0 && (part = strsep(&rest, "|"));)
    status = add_race(line, part);
  return status;
}

static int set_campaign(struct command_line *line, const char *value) {
  enum { LONGEST = 200 };
  const bool usable = *value != '\0' && *value != '.' && name_usable(value, LONGEST, "/<>");
  line->options.campaign = value;
  return usable
             ? 0
             : failure_set("--campaign \"%s\": write a name of up to %d characters, without / < > and no dot "
                           "first",
                           value, LONGEST);
}

static int set_budget(struct command_line *line, const char *value) {
  char *end;
  line->options.budget_s = strtod(value, &end);
  if (*end || end == value || !(line->options.budget_s >= 0 && line->options.budget_s <= BUDGET_MOST_S))
    return failure_set("--budget \"%s\": write a number of seconds up to 1e9, 0 for no limit", value);
  return 0;
}

static int set_executions(struct command_line *line, const char *value) {
  return parse_number("--executions", value, 1, EXECUTIONS_MOST, &line->options.executions);
}

static int set_limit(struct command_line *line, const char *value) {
  char *end;
  line->options.limit_s = strtod(value, &end);
  if (*end || end == value || !(line->options.limit_s >= 0.1 && line->options.limit_s <= 86400))
    return failure_set("--limit \"%s\": write a number of seconds from 0.1 to 86400", value);
  return 0;
}

static int set_cores(struct command_line *line, const char *value) {
  return parse_number("--cores", value, 1, INT_MAX, &line->options.cores);
}

static int set_launch(struct command_line *line, const char *value) {
  return parse_number("--launch", value, 0, INT_MAX, &line->options.launch);
}

static int set_seed(struct command_line *line, const char *value) {
  return parse_number("--seed", value, 0, INT64_MAX, &line->options.seed);
}

static int set_sync(struct command_line *line, const char *value) {
  line->options.sync = value;
  return sync_find(value) ? 0 : failure_set("--sync \"%s\": write window, hca or barrier", value);
}

static int set_ppn(struct command_line *line, const char *value) {
  return parse_number("--ppn", value, 1, INT_MAX, &line->options.ppn);
}

static int set_placement(struct command_line *line, const char *value) {
  line->options.placement = strcmp(value, "cyclic") == 0 ? SWP_PLACEMENT_CYCLIC : SWP_PLACEMENT_BLOCK;
  if (line->options.placement == SWP_PLACEMENT_BLOCK && strcmp(value, "block") != 0)
    return failure_set("--placement \"%s\": write block or cyclic", value);
  return 0;
}

static int set_arrival(struct command_line *line, const char *value) {
  char *end;
  line->options.arrival_s = strtod(value, &end);
  const bool timed = *end == '\0' && line->options.arrival_s > 0 && line->options.arrival_s <= ARRIVAL_MOST_S;
  line->options.staggered = timed || strcmp(value, "staggered") == 0;
  if (!line->options.staggered && strcmp(value, "together") != 0)
    return failure_set("--arrival \"%s\": write together, staggered, or seconds, at most 1", value);
  if (line->options.staggered && SWP_SIMULATED)
    return failure_set("--arrival staggered: not in a simulation, which has no warm-up");
  return 0;
}

static int set_cache(struct command_line *line, const char *value) {
  line->options.cold = strcmp(value, "cold") == 0;
  if (!line->options.cold && strcmp(value, "warm") != 0)
    return failure_set("--cache \"%s\": write warm or cold", value);
  if (line->options.cold && SWP_SIMULATED)
    return failure_set("--cache cold: not in a simulation, which has no caches");
  return 0;
}

static int set_proof(struct command_line *line, const char *value) {
  line->options.proved = strcmp(value, "earlier") == 0;
  if (!line->options.proved && strcmp(value, "here") != 0)
    return failure_set("--proof \"%s\": write here or earlier", value);
  return 0;
}

static int set_max_samples(struct command_line *line, const char *value) {
  int64_t number = 0;
  const int status = parse_number("--max-samples", value, 1, SAMPLES_MOST, &number);
  line->options.max_samples = (int)number;
  return status;
}

static const struct bench_option OPTIONS[] = {
    {"--op", "OPERATION", "exchange, discovery, spmv, bcast, gather, ...", METHODS, METHODS,
     .set = set_operation},
    {"--pattern", "SPEC", "who sends to whom", METHODS | OVERLAP, METHODS | OVERLAP, .set = set_pattern},
    {"--sizes", "LIST", "bytes per message or item, for example 8:1M:x2,3000", ALL & ~OVERLAP, ALL & ~OVERLAP,
     .set = set_sizes},
    {"--races", "LIST", "instead of --sizes: parts \"SIZES SAMPLES|EXECUTIONS METHODS\", separated by '|'",
     RUN | SOAK, 0, .set = set_races},
    {"--out", "FILE", "file to write, which must be new", ALL, ALL, AT(options.out), .wants = "a file name"},
    {"--methods", "SPECS", "all, auto, families or specs, separated by spaces or ';' (all)",
     METHODS | OVERLAP, 0, AT(options.methods)},
    {"--computation", "LIST", "per rank, in flops or % of full rows, for example 0,25%,2e6 (0 to 100%)",
     OVERLAP, 0, AT(computation)},
    {"--budget", "SECONDS", "time limit of the launch; 0: none (0)", METHODS | OVERLAP, 0, .set = set_budget},
    {"--max-samples", "N", "maximum samples per case (200)", MEASURES, 0, .set = set_max_samples},
    {"--executions", "N", "executions of each method at each size (10000)", SOAK, 0, .set = set_executions},
    {"--prompt", NULL, "make no rank late between executions", SOAK, 0, AT(options.prompt)},
    {"--limit", "SECONDS", "time without progress after which a rank is taken to hang (20)", ALL, 0,
     .set = set_limit},
    {"--sync", "window|hca|barrier", "how executions start together (window; hca on several machines)",
     MEASURES, 0, .set = set_sync},
    {"--arrival", "together|staggered|SECONDS", "ranks first wait a random part of an execution, or of this",
     RUN, 0, .set = set_arrival},
    {"--cache", "warm|cold", "caches before each sample: as the last one left them, or filled (warm)", RUN, 0,
     .set = set_cache},
    {"--ppn", "N", "virtual nodes of N ranks (real nodes)", METHODS, 0, .set = set_ppn},
    {"--placement", "block|cyclic", "placement of ranks on virtual nodes (block)", METHODS, 0,
     .set = set_placement},
    {"--seed", "N", "seed of the order of methods and of payloads (1)", METHODS | OVERLAP, 0,
     .set = set_seed},
    {"--launch", "N", "number of the launch within the campaign (0)", ALL, 0, .set = set_launch},
    {"--campaign", "NAME", "name that groups launches (the date)", ALL, 0, .set = set_campaign},
    {"--system", "NAME", "system and partition (local:cpu)", ALL, 0, AT(options.system), .wants = "a name"},
    {"--environment", "NAME", "programming environment (default)", ALL, 0, AT(options.environment),
     .wants = "a name"},
    {"--launcher", "NAME", "program that starts the ranks, recorded in the file", ALL, 0,
     AT(options.launcher)},
    {"--cores", "N", "cores of a node, recorded in the file (those that its ranks may use)", ALL, 0,
     .set = set_cores},
    {"--yield", "TEXT", "MPI's yield setting, recorded in the file", ALL, 0, AT(options.yield)},
    {"--proof", "here|earlier", "where it is proved that the MPI library runs the algorithms named (here)",
     RUN, 0, .set = set_proof},
    {"--anonymous", NULL, "write node0, node1, ... instead of host names", ALL, 0, AT(options.anonymous)},
    {"--quiet", NULL, "print no line per size", ALL, 0, AT(options.quiet)},
};

enum { NOPTIONS = sizeof OPTIONS / sizeof OPTIONS[0] };

static const struct {
  const char *name;
  enum command command;
} commands[] = {
    {"run", COMMAND_RUN}, {"probe", COMMAND_PROBE}, {"overlap", COMMAND_OVERLAP}, {"soak", COMMAND_SOAK}};

enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

bool command_find(const char *word, struct command_line *line) {
  *line = (struct command_line){0};
  for (int i = 0; i < NCOMMANDS; i++)
    if (strcmp(commands[i].name, word) == 0)
      line->command = commands[i].command;
  return line->command;
}

/* The name of the first command of a mask. */
static const char *name_of(int mask) {
  int i = 0;
  while (!(commands[i].command & mask))
    i++;
  return commands[i].name;
}

/* Finds the option that argv[*i] names, and its value, in the same argument or the next. */
static int next_option(int argc, char **argv, int *i, int *which, const char **value) {
  const char *argument = argv[(*i)++];
  const size_t length = strcspn(argument, "=");
  for (*which = 0; *which < NOPTIONS; ++*which)
    if (strlen(OPTIONS[*which].name) == length && strncmp(OPTIONS[*which].name, argument, length) == 0)
      break;
  if (*which == NOPTIONS)
    return failure_set("unknown option \"%s\"; see swpbench --help", argument);
  const bool attached = argument[length] == '=';
  *value = attached ? argument + length + 1 : NULL;
  if (!OPTIONS[*which].argument)
    return attached ? failure_set("%s takes no value", OPTIONS[*which].name) : 0;
  if (!attached && *i < argc)
    *value = argv[(*i)++];
  return *value ? 0 : failure_set("%s needs %s", OPTIONS[*which].name, OPTIONS[*which].argument);
}

/* Whether an option says what each race says for itself. */
static bool is_of_races(const struct bench_option *option) {
  return option->set == set_max_samples || option->set == set_executions ||
         (!option->set && option->place == offsetof(struct command_line, options.methods));
}

/* Checks that the options of methods are consistent. */
static int check_methods(struct options *options) {
  if (options->placement != UNSET && options->ppn == 0)
    return failure_set("--placement applies to virtual nodes: give --ppn too");
  if (options->placement == UNSET)
    options->placement = SWP_PLACEMENT_BLOCK;
  const bool is_collective = options->operation->operation >= SWP_BCAST;
  if (options->pattern.family->of_collectives != is_collective)
    return failure_set("--op %s: collectives, and no other operations, use the pattern blocks",
                       options->operation->name);
  if (options->operation->check)
    return options->operation->check(options->operation, &options->pattern, options->sizes_bytes,
                                     options->nsizes);
  return 0;
}

static int set_option(const struct bench_option *option, struct command_line *line, const char *value) {
  if (option->set)
    return option->set(line, value);
  char *place = (char *)line + option->place;
  if (!value) {
    *(bool *)place = true;
    return 0;
  }
  if (option->wants && *value == '\0')
    return failure_set("%s needs %s", option->name, option->wants);
  *(const char **)(void *)place = value;
  return 0;
}

static int parse_option(int argc, char **argv, int *i, bool *given, struct command_line *line) {
  int which;
  const char *value = NULL;
  if (next_option(argc, argv, i, &which, &value))
    return -1;
  const struct bench_option *option = &OPTIONS[which];
  if (given[which])
    return failure_set("%s is given twice", option->name);
  if (!(option->commands & (int)line->command))
    return failure_set("%s is an option of %s, not of %s", option->name, name_of(option->commands),
                       name_of(line->command));
  given[which] = true;
  return set_option(option, line, value);
}

int command_line_parse(int argc, char **argv, struct command_line *line) {
  struct options *options = &line->options;
  *options = (struct options){.methods = "all",
                              .system = "local:cpu",
                              .environment = "default",
                              .seed = 1,
                              .sync = "",
                              .yield = "",
                              .max_samples = 200,
                              .executions = 10000,
                              .limit_s = 20,
                              .placement = UNSET};
  bool given[NOPTIONS] = {false};
  for (int i = 0; i < argc;)
    if (parse_option(argc, argv, &i, given, line))
      return -1;
  for (int i = 0; i < NOPTIONS; i++)
    if (!given[i] && OPTIONS[i].required & (int)line->command &&
        !(OPTIONS[i].set == set_sizes && options->nraces))
      return failure_set("%s %s is missing; see swpbench --help", OPTIONS[i].name, OPTIONS[i].argument);
  for (int i = 0; i < NOPTIONS && options->nraces; i++)
    if (given[i] && is_of_races(&OPTIONS[i]))
      return failure_set("--races have their own: leave out %s", OPTIONS[i].name);
  options->sizes_bytes = line->sizes.list;
  options->nsizes = (int)line->sizes.count;
  if (options->nraces == 0)
    options->races[options->nraces++] =
        (struct size_race){options->nsizes, options->methods,
                           line->command == COMMAND_SOAK ? options->executions : options->max_samples};
  return line->command & METHODS ? check_methods(options) : 0;
}

void command_line_free(struct command_line *line) {
  free(line->sizes.list);
  free(line->races);
  *line = (struct command_line){.command = line->command};
}

void command_line_help(void) {
  printf("swpbench %s: measures the methods of MPI exchanges and collectives\n\n"
         "  swpbench list           lists the methods: operation, name, parameters, summary\n"
         "  swpbench list PROCS...  lists all specs that run measures on so many processes; start it with "
         "mpiexec\n"
         "  swpbench table FILE     reads a method table as an application would\n"
         "  swpbench run OPTIONS [--then OPTIONS]...\n"
         "                          measures, one launch after the other; start it with mpiexec\n"
         "  swpbench probe OPTIONS  measures parameters of models; start it with mpiexec\n"
         "  swpbench overlap OPTIONS\n"
         "                          measures how much communication hides behind computation; start it with "
         "mpiexec\n"
         "  swpbench soak OPTIONS [--then OPTIONS]...\n"
         "                          stress-tests methods for hangs, wrong bytes and leaks; start it with "
         "mpiexec\n"
         "  swpbench bfs [vertices=N,degree=N,clusters=N,inside=PERCENT,seed=N [METHODS]]\n"
         "                          searches a random graph, one discovery per level; start it with mpiexec\n"
         "  swpbench --version | --help\n\noptions of (r)un, (p)robe, (o)verlap, (s)oak:\n",
         swp_version());
  for (int i = 0; i < NOPTIONS; i++) {
    for (int c = 0; c < NCOMMANDS; c++)
      putchar(OPTIONS[i].commands & commands[c].command ? *commands[c].name : ' ');
    printf(" %-14s %-19s %s%s\n", OPTIONS[i].name, OPTIONS[i].argument ? OPTIONS[i].argument : "",
           OPTIONS[i].help, OPTIONS[i].required ? " (required)" : "");
  }
  overlap_help();
  patterns_help();
}
