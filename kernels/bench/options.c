#include "options.h"

#include "error.h"
#include "overlap.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MOST = 65535, UNSET = -1 };

static const double BUDGET_MOST_S = 1e9; /* nanoseconds of it fit into 64 bits */

enum {
  RUN = COMMAND_RUN,
  OVERLAP = COMMAND_OVERLAP,
  SOAK = COMMAND_SOAK,
  METHODS = RUN | SOAK, /* of an operation */
  MEASURES = RUN | OVERLAP | COMMAND_PROBE,
  ALL = MEASURES | SOAK
};

/* An option of the commands of a mask, and required by some; those without an argument are flags. `set` gets
 * the argument and returns 0 or -1. */
struct bench_option {
  const char *name, *argument, *help;
  int commands, required;
  int (*set)(struct options *options, const char *value);
};

static int parse_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *value) {
  char *end;
  errno = 0;
  *value = strtoll(text, &end, 10);
  if (*end || end == text || errno || *value < least || *value > most)
    return failure_set("%s \"%s\": write an integer from %lld to %lld", name, text, (long long)least,
                       (long long)most);
  return 0;
}

static int set_operation(struct options *options, const char *value) {
  options->operation = operation_by_name(value);
  return options->operation
             ? 0
             : failure_set("--op \"%s\": write exchange, discovery, spmv, or a collective such as bcast",
                           value);
}

static int set_methods(struct options *options, const char *value) {
  options->methods = value;
  return 0;
}

static int set_pattern(struct options *options, const char *value) {
  options->pattern_text = value;
  return 0;
}

static int set_computation(struct options *options, const char *value) {
  options->computation = value;
  return 0;
}

static int set_sizes(struct options *options, const char *value) {
  if (options->nraces)
    return failure_set("--races have sizes of their own: leave out --sizes");
  return sizes_parse(value, &options->sizes_bytes, &options->nsizes);
}

/* Reads "SIZES SAMPLES METHODS", in place. */
static int add_race(struct options *options, char *text) {
  const char *const sizes_text = strsep(&text, " "), *const samples_text = text ? strsep(&text, " ") : NULL;
  int64_t *sizes = NULL, samples = 0;
  int count = 0;
  if (options->nraces == RACES_MOST || !text)
    return failure_set("--races: write at most %d of SIZES SAMPLES METHODS, separated by '|'", RACES_MOST);
  if (parse_number("--races", samples_text, 1, SAMPLES_MOST, &samples) ||
      sizes_parse(sizes_text, &sizes, &count))
    return -1;
  for (int i = 0; i < options->nsizes * count; i++)
    if (options->sizes_bytes[i / count] == sizes[i % count]) {
      const long long twice = (long long)sizes[i % count];
      free(sizes);
      return failure_set("--races: %lld B is in two of them", twice);
    }
  const size_t room = (size_t)(options->nsizes + count) * sizeof *sizes;
  options->sizes_bytes = reallocate(options->sizes_bytes, room);
  memcpy(options->sizes_bytes + options->nsizes, sizes, (size_t)count * sizeof *sizes);
  free(sizes);
  options->nsizes += count;
  options->races[options->nraces++] = (struct size_race){count, text, (int)samples};
  return 0;
}

static int set_races(struct options *options, const char *value) {
  char *rest = options->races_text = allocate(strlen(value) + 1);
  strcpy(rest, value);
  int status = 0;
  for (char *part; status == 0 && (part = strsep(&rest, "|"));)
    status = add_race(options, part);
  return status;
}

static int set_out(struct options *options, const char *value) {
  options->out = value;
  return *value ? 0 : failure_set("--out needs the name of a file");
}

static int set_budget(struct options *options, const char *value) {
  char *end;
  options->budget_s = strtod(value, &end);
  if (*end || end == value || !(options->budget_s >= 0 && options->budget_s <= BUDGET_MOST_S))
    return failure_set("--budget \"%s\": write a number of seconds up to 1e9, 0 for no limit", value);
  return 0;
}

static int set_executions(struct options *options, const char *value) {
  return parse_number("--executions", value, 1, INT64_MAX / 8, &options->executions);
}

static int set_limit(struct options *options, const char *value) {
  char *end;
  options->limit_s = strtod(value, &end);
  if (*end || end == value || !(options->limit_s >= 0.1 && options->limit_s <= 86400))
    return failure_set("--limit \"%s\": write a number of seconds from 0.1 to 86400", value);
  return 0;
}

static int set_launch(struct options *options, const char *value) {
  return parse_number("--launch", value, 0, INT_MAX, &options->launch);
}

static int set_campaign(struct options *options, const char *value) {
  options->campaign = value;
  return *value ? 0 : failure_set("--campaign needs a name");
}

static int set_system(struct options *options, const char *value) {
  options->system = value;
  return *value ? 0 : failure_set("--system needs a name");
}

static int set_environment(struct options *options, const char *value) {
  options->environment = value;
  return *value ? 0 : failure_set("--environment needs a name");
}

static int set_seed(struct options *options, const char *value) {
  return parse_number("--seed", value, 0, INT64_MAX, &options->seed);
}

static int set_sync(struct options *options, const char *value) {
  options->sync = value;
  return sync_find(value) ? 0 : failure_set("--sync \"%s\": write window, hca or barrier", value);
}

static int set_yield(struct options *options, const char *value) {
  options->yield = value;
  return 0;
}

static int set_ppn(struct options *options, const char *value) {
  return parse_number("--ppn", value, 1, INT_MAX, &options->ppn);
}

static int set_placement(struct options *options, const char *value) {
  options->placement = strcmp(value, "cyclic") == 0 ? SWP_PLACEMENT_CYCLIC : SWP_PLACEMENT_BLOCK;
  if (options->placement == SWP_PLACEMENT_BLOCK && strcmp(value, "block") != 0)
    return failure_set("--placement \"%s\": write block or cyclic", value);
  return 0;
}

static int set_max_samples(struct options *options, const char *value) {
  int64_t number = 0;
  const int status = parse_number("--max-samples", value, 1, SAMPLES_MOST, &number);
  options->max_samples = (int)number;
  return status;
}

static int set_anonymous(struct options *options, const char *value) {
  (void)value;
  options->anonymous = true;
  return 0;
}

static int set_quiet(struct options *options, const char *value) {
  (void)value;
  options->quiet = true;
  return 0;
}

static const struct bench_option OPTIONS[] = {
    {"--op", "OPERATION", "exchange, discovery, spmv, bcast, gather, ...", METHODS, METHODS, set_operation},
    {"--pattern", "SPEC", "who sends to whom", METHODS | OVERLAP, METHODS | OVERLAP, set_pattern},
    {"--sizes", "LIST", "bytes per message or item, as 8:1M:x2,3000", ALL & ~OVERLAP, ALL & ~OVERLAP,
     set_sizes},
    {"--races", "LIST", "in their place parts \"SIZES SAMPLES METHODS\", separated by '|'", RUN, 0,
     set_races},
    {"--out", "FILE", "the file to write, new or empty", ALL, ALL, set_out},
    {"--methods", "SPECS", "separated by spaces or ';'; all, auto, families, specs (all)", METHODS | OVERLAP,
     0, set_methods},
    {"--computation", "LIST", "of a rank, in flops or % of full rows, as 0,25%,2e6 (0 to 100%)", OVERLAP, 0,
     set_computation},
    {"--budget", "SECONDS", "time limit of the launch; 0: none (0)", METHODS | OVERLAP, 0, set_budget},
    {"--max-samples", "N", "most samples of a case (200)", MEASURES, 0, set_max_samples},
    {"--executions", "N", "of each method at each size (10000)", SOAK, 0, set_executions},
    {"--limit", "SECONDS", "in which each rank must get on, else it hangs (60)", SOAK, 0, set_limit},
    {"--sync", "window|hca|barrier", "how executions start together (window; hca on several machines)",
     MEASURES, 0, set_sync},
    {"--ppn", "N", "virtual nodes of N ranks (the machine's nodes)", METHODS, 0, set_ppn},
    {"--placement", "block|cyclic", "which ranks are on one virtual node (block)", METHODS, 0, set_placement},
    {"--seed", "N", "of the order of methods and of payloads (1)", METHODS | OVERLAP, 0, set_seed},
    {"--launch", "N", "number of the launch within the campaign (0)", ALL, 0, set_launch},
    {"--campaign", "NAME", "groups launches (the date)", ALL, 0, set_campaign},
    {"--system", "NAME", "system and partition (local:cpu)", ALL, 0, set_system},
    {"--environment", "NAME", "programming environment (default)", ALL, 0, set_environment},
    {"--yield", "TEXT", "the MPI's yield setting in force, for the record", ALL, 0, set_yield},
    {"--anonymous", NULL, "write node0, node1, ... instead of host names", ALL, 0, set_anonymous},
    {"--quiet", NULL, "no line per size", ALL, 0, set_quiet},
};

enum { NOPTIONS = sizeof OPTIONS / sizeof OPTIONS[0] };

static const char *command_name(enum measuring command) {
  return command == COMMAND_RUN     ? "run"
         : command == COMMAND_PROBE ? "probe"
         : command == COMMAND_SOAK  ? "soak"
                                    : "overlap";
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

/* What of the options of methods must fit together. */
static int check_methods(struct options *options) {
  if (options->placement != UNSET && options->ppn == 0)
    return failure_set("--placement is of virtual nodes: give --ppn too");
  if (options->placement == UNSET)
    options->placement = SWP_PLACEMENT_BLOCK;
  const bool is_collective = options->operation->operation >= SWP_BCAST;
  if (options->pattern.family->of_collectives != is_collective)
    return failure_set("--op %s: the pattern of collectives, and theirs alone, is blocks",
                       options->operation->name);
  if (options->operation->check)
    return options->operation->check(options->operation, &options->pattern, options->sizes_bytes,
                                     options->nsizes);
  return 0;
}

static int parse_option(int argc, char **argv, int *i, enum measuring command, bool *given,
                        struct options *options) {
  int which;
  const char *value = NULL;
  if (next_option(argc, argv, i, &which, &value))
    return -1;
  if (given[which])
    return failure_set("%s is given twice", OPTIONS[which].name);
  if (!(OPTIONS[which].commands & (int)command))
    return failure_set("%s is of %s, not of %s", OPTIONS[which].name,
                       OPTIONS[which].commands & RUN       ? "run"
                       : OPTIONS[which].commands & OVERLAP ? "overlap"
                                                           : "soak",
                       command_name(command));
  given[which] = true;
  if (OPTIONS[which].set == set_races && options->sizes_bytes)
    return failure_set("--races have sizes of their own: leave out --sizes");
  if (OPTIONS[which].set(options, value))
    return -1;
  if (!(command & METHODS) || OPTIONS[which].set != set_pattern)
    return 0;
  const int status = pattern_parse(value, &options->pattern);
  if (status)
    failure_place("--pattern \"%s\"", value);
  return status;
}

int options_parse(int argc, char **argv, enum measuring command, struct options *options) {
  *options = (struct options){.methods = "all",
                              .system = "local:cpu",
                              .environment = "default",
                              .seed = 1,
                              .sync = "",
                              .yield = "",
                              .max_samples = 200,
                              .executions = 10000,
                              .limit_s = 60,
                              .placement = UNSET};
  bool given[NOPTIONS] = {false};
  for (int i = 0; i < argc;)
    if (parse_option(argc, argv, &i, command, given, options))
      return -1;
  for (int i = 0; i < NOPTIONS; i++)
    if (!given[i] && OPTIONS[i].required & (int)command && !(OPTIONS[i].set == set_sizes && options->nraces))
      return failure_set("%s %s is missing; see swpbench --help", OPTIONS[i].name, OPTIONS[i].argument);
  if (options->nraces == 0)
    options->races[options->nraces++] =
        (struct size_race){options->nsizes, options->methods, options->max_samples};
  return command & METHODS ? check_methods(options) : 0;
}

void options_free(struct options *options) {
  free(options->sizes_bytes);
  options->sizes_bytes = NULL;
  free(options->races_text);
  options->races_text = NULL;
}

void options_help(void) {
  printf("swpbench %s: measures the methods of MPI exchanges and collectives\n\n"
         "  swpbench list           the methods: operation, name, parameters, summary\n"
         "  swpbench table FILE     reads a method table as an application would\n"
         "  swpbench run OPTIONS    measures; start it with mpiexec\n"
         "  swpbench probe OPTIONS  measures parameters of models; start it with mpiexec\n"
         "  swpbench overlap OPTIONS\n"
         "                          measures how much communication hides behind computation; start it with "
         "mpiexec\n"
         "  swpbench soak OPTIONS   executes methods very often, and looks for hangs, wrong bytes and leaks; "
         "start "
         "it with mpiexec\n"
         "  swpbench bfs [vertices=N,degree=N,clusters=N,inside=PERCENT,seed=N [METHODS]]\n"
         "                          searches a random graph, one discovery a level; start it with mpiexec\n"
         "  swpbench --version | --help\n\noptions, of (r)un, (p)robe, (o)verlap, (s)oak:\n",
         swp_version());
  for (int i = 0; i < NOPTIONS; i++)
    printf("%c%c%c%c %-14s %-19s %s%s\n", OPTIONS[i].commands & COMMAND_RUN ? 'r' : ' ',
           OPTIONS[i].commands & COMMAND_PROBE ? 'p' : ' ', OPTIONS[i].commands & COMMAND_OVERLAP ? 'o' : ' ',
           OPTIONS[i].commands & COMMAND_SOAK ? 's' : ' ', OPTIONS[i].name,
           OPTIONS[i].argument ? OPTIONS[i].argument : "", OPTIONS[i].help,
           OPTIONS[i].required ? " (required)" : "");
  printf("\npatterns of overlap, and its methods:\n");
  for (int i = 0; overlap_kernel(i); i++) {
    const struct overlap_kernel *kernel = overlap_kernel(i);
    printf("  %s:", kernel->name);
    for (int p = 0; p < PATTERN_PARAMETERS && kernel->parameters[p].name; p++)
      printf("%s%s=%lld", p ? "," : "", kernel->parameters[p].name,
             (long long)kernel->parameters[p].standard);
    printf("  %s\n", kernel->summary);
    for (const struct overlap_family *family = kernel->families; family->name; family++)
      printf("    %-10s %s\n", family->name, family->summary);
  }
  printf("\npatterns of run and soak:\n");
  for (int i = 0; pattern_family(i); i++) {
    char text[256];
    struct pattern_spec spec = {.family = pattern_family(i), .file = "FILE", .part = "PART"};
    for (int p = 0; p < PATTERN_PARAMETERS; p++)
      spec.values[p] = spec.family->parameters[p].standard;
    pattern_print(&spec, text, sizeof text);
    printf("  %-34s %s\n", text, spec.family->summary);
  }
}
