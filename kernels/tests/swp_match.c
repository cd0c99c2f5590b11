/*
 * What the rules of tables choose, for comparison with other readers of the same rules. Reads commands from
 * standard input, on one rank: `off LIST` sets SWITCHPOINT_OFF, `table PATH` reads a table,
 * `case OPERATION NODES PPN MMAX MAVG BYTES` prints the method of the first rule that holds, or "none", and
 * `end` ends: not all launchers pass on that standard input has ended.
 */
#include "choices.h"
#include "off.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum swp_operation operation_of(const char *name) {
  int operation = 0;
  while (swp_operation_name(operation) != NULL && strcmp(swp_operation_name(operation), name) != 0)
    operation++;
  EXPECT(swp_operation_name(operation) != NULL, "no operation %s", name);
  return (enum swp_operation)operation;
}

static void print_match(const swp_table *table, const struct features *features) {
  const struct sources sources = {.table = table};
  struct choices *choices = NULL;
  struct match match;
  EXPECT_ERROR(swp_choices_compile(&sources, features, NULL, &choices), SWP_SUCCESS);
  EXPECT_ERROR(swp_choices_first(choices, features, NULL, &match), SWP_SUCCESS);
  const struct choice *choice = &choices->list[match.index];
  puts(choice->source == FROM_RULE ? choice->spec.text : "none");
  fflush(stdout);
  swp_choices_release(choices);
}

static void read_case(const char *line, const swp_table *table) {
  struct features features = {.shared_memory = true, .alone = true, .commutative = true, .predefined = true};
  char name[64];
  long long mmax, bytes;
  EXPECT(sscanf(line, "case %63s %d %d %lld %lf %lld", name, &features.nodes, &features.ppn, &mmax,
                &features.mavg, &bytes) == 6,
         "cannot read '%s'", line);
  features.operation = operation_of(name);
  features.procs = features.nodes * features.ppn;
  features.mmax = mmax;
  features.bytes = features.most_bytes = features.total_bytes = bytes;
  print_match(table, &features);
}

int main(int argc, char **argv) {
  swp_table *table = NULL;
  char line[4096];
  test_begin(&argc, &argv, "swp_match");
  while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0) {
    line[strcspn(line, "\n")] = '\0';
    test_case("%s", line);
    if (strncmp(line, "off ", 4) == 0) {
      setenv(SWP_OFF, line + 4, 1);
    } else if (strncmp(line, "table ", 6) == 0) {
      swp_table_free(&table);
      EXPECT_ERROR(swp_table_read(MPI_COMM_SELF, line + 6, &table), SWP_SUCCESS);
    } else {
      read_case(line, table);
    }
  }
  swp_table_free(&table);
  return test_end();
}
