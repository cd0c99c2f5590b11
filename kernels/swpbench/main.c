/* swpbench: lists methods, reads tables, measures, soaks, searches graphs. */
#include "bfs.h"
#include "command_line.h"
#include "commands.h"
#include "error.h"
#include "launcher.h"
#include "methods.h"
#include "overlap.h"
#include "parameters.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4 };

/* The texts of a line of the list. False when the method does not do the operation. */
static bool list_line(int operation, const struct swp_method_info *info, const char *texts[COLUMNS]) {
  texts[0] = swp_operation_name(operation);
  texts[1] = info->name;
  texts[2] = info->parameters;
  texts[3] = info->summary;
  return info->operations >> operation & 1;
}

/* Columns as wide as their longest text, which a tab follows. */
static int list_methods(void) {
  struct swp_method_info info;
  const char *texts[COLUMNS];
  int widths[COLUMNS] = {0};
  for (int operation = 0; swp_operation_name(operation); operation++)
    for (int i = 0; swp_method_list(i, &info) == SWP_SUCCESS; i++)
      for (int c = 0; c < COLUMNS - 1 && list_line(operation, &info, texts); c++)
        if ((int)strlen(texts[c]) > widths[c])
          widths[c] = (int)strlen(texts[c]);
  for (int operation = 0; swp_operation_name(operation); operation++)
    for (int i = 0; swp_method_list(i, &info) == SWP_SUCCESS; i++)
      if (list_line(operation, &info, texts))
        printf("%-*s\t%-*s\t%-*s\t%s\n", widths[0], texts[0], widths[1], texts[1], widths[2], texts[2],
               texts[3]);
  return EXIT_SUCCESS;
}

/* Prints what `--methods all` measures on each number of processes; MPI libraries name their algorithms only
   once they run. */
static int list_specs(const struct team *team, int argc, char **argv) {
  int status = 0;
  for (int i = 0; status == 0 && i < argc; i++) {
    char *end;
    const long procs = strtol(argv[i], &end, 10);
    if (*end != '\0' || procs < 1 || procs > INT_MAX)
      status = failure_set("list \"%s\": not a number of processes", argv[i]);
    for (int operation = 0; status == 0 && swp_operation_name(operation); operation++) {
      struct method *methods = NULL;
      int count = 0;
      status = methods_expand(operation, "all", (int)procs, &methods, &count);
      for (int n = 0; status == 0 && team->rank == 0 && n < count; n++)
        if (methods[n].applicable)
          printf("%ld\t%s\t%s\n", procs, swp_operation_name(operation), methods[n].spec);
      free(methods);
    }
  }
  return team_agree(team, status);
}

static int read_table(const struct team *team, const char *path) {
  swp_table *table = NULL;
  if (swp_table_read(team->comm, path, &table))
    return team_agree(team, failure_set("%s", swp_error_message()));
  if (team->rank == 0)
    printf("%s: %d rules\n", path_shown(path), swp_table_rules(table));
  swp_table_free(&table);
  return 0;
}

static bool is_help(const char *word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int measure(const struct team *team, const struct command_line *line) {
  switch (line->command) {
  case COMMAND_RUN:
    return run(team, &line->options);
  case COMMAND_PROBE:
    return probe(team, &line->options);
  case COMMAND_SOAK:
    return soak(team, &line->options);
  default:
    return overlap(team, &line->options, line->pattern, line->computation);
  }
}

/* The number of words up to the end of the first launch of a command line: to its end, or to a --then. */
static int words_of_launch(const struct command_line *line, int argc, char **argv) {
  int words = 0;
  while (words < argc &&
         (!(line->command & (COMMAND_RUN | COMMAND_SOAK)) || strcmp(argv[words], "--then") != 0))
    words++;
  return words;
}

/* The methods of all races; "" where these differ. */
static const char *common_methods(const struct options *options) {
  const char *methods = options->races[0].methods;
  for (int i = 1; i < options->nraces; i++)
    if (strcmp(options->races[i].methods, methods) != 0)
      return "";
  return methods;
}

/* A variable of the environment holds for all launches of a start. */
static int check_alone(const struct command_line *line, bool alone) {
  const char *methods = common_methods(&line->options);
  return alone || !methods_is_by_environment(methods)
             ? 0
             : failure_set("--methods: %s applies to all launches of a start; give it one of its own",
                           methods);
}

static int measure_command(const struct team *team, int argc, char **argv, struct command_line *line) {
  if (argc > 0 && is_help(argv[0])) {
    if (team->rank == 0)
      command_line_help();
    return 0;
  }
  int status = 0;
  for (int first = 0, words; first <= argc && status >= 0; first += words + 1) {
    failure_clear();
    words = words_of_launch(line, argc - first, argv + first);
    int own = command_line_parse(words, argv + first, line);
    if (own == 0 && line->command & (COMMAND_RUN | COMMAND_SOAK))
      own = check_alone(line, first == 0 && words == argc);
    own = team_agree(team, own);
    if (own == 0)
      own = measure(team, line);
    if (own)
      status = own; /* a failed soak does not keep other methods from theirs */
    command_line_free(line);
  }
  return status;
}

/* Runs the commands that need MPI; errors of all commands are printed here too, to print them once. */
static int command_on_team(const struct team *team, int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  struct command_line line;
  if (team_agree(team, launcher_check(team->procs)))
    return -1;
  if (command_find(command, &line))
    return measure_command(team, argc - 2, argv + 2, &line);
  if (strcmp(command, "table") == 0 && argc == 3)
    return read_table(team, argv[2]);
  if (strcmp(command, "list") == 0)
    return list_specs(team, argc - 2, argv + 2);
  if (strcmp(command, "bfs") == 0)
    return bfs_command(team, argc - 2, argv + 2);
  if (strcmp(command, "table") == 0)
    failure_set("write swpbench table FILE; see swpbench --help");
  else if (*command)
    failure_set("unknown command %s; see swpbench --help", command);
  else
    failure_set("a command is missing; see swpbench --help");
  return team_agree(team, -1);
}

/* Sets the variables that the MPI library reads when it starts. Errors in the options are reported later. */
static void set_environment(int argc, char **argv) {
  struct command_line line;
  const struct options *options = &line.options;
  swp_environment_allow(); /* without other variables it changes nothing */
  if (argc < 2 || !command_find(argv[1], &line))
    return;
  if (command_line_parse(words_of_launch(&line, argc - 2, argv + 2), argv + 2, &line) == 0 &&
      options->operation)
    methods_set_environment(options->operation->operation, common_methods(options));
  command_line_free(&line);
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  if (is_help(command)) {
    command_line_help();
    return EXIT_SUCCESS;
  }
  if (strcmp(command, "--version") == 0) {
    printf("swpbench %s\n", swp_version());
    return EXIT_SUCCESS;
  }
  if (strcmp(command, "list") == 0 && argc == 2)
    return list_methods();

  struct team team;
  set_environment(argc, argv);
  MPI_Init(&argc, &argv);
  team_create(&team);
  const int status = command_on_team(&team, argc, argv);
  team_free(&team);
  MPI_Finalize();
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
