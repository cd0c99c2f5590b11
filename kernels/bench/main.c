/* swpbench: lists methods, reads tables, measures. */
#include "error.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(const char *problem, const char *word) {
  fprintf(stderr, "swpbench: %s%s; see swpbench --help\n", problem, word);
  return EXIT_FAILURE;
}

/* The methods' kinds are the operations' kinds. */
static const char *kind_name(enum swp_kind kind) {
  for (int i = 0; operation_kind(i); i++)
    if (operation_kind(i)->kind == kind)
      return operation_kind(i)->name;
  return "other";
}

/* Columns as wide as their longest text, which a tab follows. */
static int list_methods(void) {
  struct swp_method_info info;
  int widths[3] = {0};
  for (int i = 0; swp_method_list(i, &info) == SWP_SUCCESS; i++) {
    const char *texts[3] = {kind_name(info.kind), info.name, info.parameters};
    for (int c = 0; c < 3; c++)
      if ((int)strlen(texts[c]) > widths[c])
        widths[c] = (int)strlen(texts[c]);
  }
  for (int i = 0; swp_method_list(i, &info) == SWP_SUCCESS; i++)
    printf("%-*s\t%-*s\t%-*s\t%s\n", widths[0], kind_name(info.kind), widths[1], info.name, widths[2],
           info.parameters, info.summary);
  return EXIT_SUCCESS;
}

static int read_table(const struct team *team, const char *path) {
  swp_table *table = NULL;
  if (swp_table_read(team->comm, path, &table))
    return team_agree(team, failure_set("%s", swp_error_message()));
  if (team->rank == 0)
    printf("%s: %d rules\n", path, swp_table_rules(table));
  swp_table_free(&table);
  return 0;
}

static int run_command(const struct team *team, int argc, char **argv) {
  struct options options;
  int status = team_agree(team, options_parse(argc, argv, &options));
  if (status == 0)
    status = run(team, &options);
  options_free(&options);
  return status;
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
    options_help();
    return EXIT_SUCCESS;
  }
  if (strcmp(command, "--version") == 0) {
    printf("swpbench %s\n", swp_version());
    return EXIT_SUCCESS;
  }
  if (strcmp(command, "list") == 0)
    return argc == 2 ? list_methods() : usage("list takes no arguments", "");
  const bool is_table = strcmp(command, "table") == 0;
  if (!is_table && strcmp(command, "run") != 0)
    return usage(*command ? "unknown command " : "a command is missing", command);
  if (is_table && argc != 3)
    return usage("write swpbench table FILE", "");

  struct team team;
  MPI_Init(&argc, &argv);
  team_create(&team);
  const int status = is_table ? read_table(&team, argv[2]) : run_command(&team, argc - 2, argv + 2);
  team_free(&team);
  MPI_Finalize();
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
