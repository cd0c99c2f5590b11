/* The parameters that both forms of stfw share, and the grid that they choose. */
#ifndef SWP_STFW_GRID_H
#define SWP_STFW_GRID_H

#include "grid.h"
#include "plan.h"

#define STFW_USAGE "dims=2..30 | grid=AxBx..."
#define STFW_PARAMETERS                                                                                      \
  {                                                                                                          \
    {"dims", PARAMETER_INTEGER, 2, 30, NULL}, {                                                              \
      "grid", PARAMETER_GRID, 1, 1 << 30, NULL                                                               \
    }                                                                                                        \
  }

/* NULL when the spec has a grid for so many processes, otherwise why not. */
const char *swp_stfw_choose_grid(const struct spec *spec, int procs, struct grid *grid);

const char *swp_stfw_applicable(const struct spec *spec, const struct features *features);
bool swp_stfw_variant(enum swp_operation operation, int index, int procs, char *text, size_t length);

/* Writes the plan's layout. */
void swp_stfw_describe(struct swp_plan *plan, const struct grid *grid);

#endif
