/* The parameters that both forms of stfw share, and the grid that they choose. */
#include "stfw_grid.h"

#include <stdio.h>

enum { DIMS, GRID };

const char *swp_stfw_choose_grid(const struct spec *spec, int procs, struct grid *grid) {
  const struct argument *dims = &spec->arguments[DIMS], *sizes = &spec->arguments[GRID];
  if (dims->given && sizes->given)
    return "give dims or grid, not both";
  if (sizes->given)
    return swp_grid_from_sizes(procs, (int)sizes->value, sizes->sizes, grid)
               ? NULL
               : "the grid must have a position for every process, and a process in its last layer";
  return swp_grid_choose(procs, dims->given ? (int)dims->value : 2, grid)
             ? NULL
             : "dims must not exceed the binary logarithm of the number of processes";
}

const char *swp_stfw_applicable(const struct spec *spec, const struct features *features) {
  struct grid grid;
  return swp_stfw_choose_grid(spec, features->procs, &grid);
}

bool swp_stfw_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  (void)operation;
  if (index + 2 > 30 || procs >> (index + 2) == 0)
    return false;
  snprintf(text, length, "stfw:dims=%d", index + 2);
  return true;
}

void swp_stfw_describe(struct swp_plan *plan, const struct grid *grid) {
  char sizes[48];
  swp_grid_text(grid, sizes, sizeof sizes);
  snprintf(plan->layout, sizeof plan->layout, "%sgrid %s, at most %lld messages a rank",
           swp_grid_incomplete(grid) ? "incomplete " : "", sizes, (long long)swp_grid_message_bound(grid));
}
