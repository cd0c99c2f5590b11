/*
 * Virtual process topologies T_n(k_1, …, k_n) (Selvitopi & Aykanat, SC'19): rank r has coordinates
 * c_1 = r mod k_1, c_2 = r / k_1 mod k_2, …. When no grid has exactly the number of processes, the last
 * layer (greatest c_n) is incomplete, and a position without a process is hosted by the one a layer below.
 */
#ifndef SWP_GRID_H
#define SWP_GRID_H

#include "plan.h"

struct grid {
  int procs;
  int ndims;
  int sizes[GRID_DIMS];
  int64_t strides[GRID_DIMS + 1]; /* product of the sizes before; strides[ndims]: positions */
};

/* The grid of ndims dimensions for procs processes with the least Σ(k_d − 1), then the smallest largest
   size, larger sizes first; exact where one exists. False when ndims < 1 or > ⌊lg procs⌋ (1 for one process).
 */
bool swp_grid_choose(int procs, int ndims, struct grid *grid);

/* The same, but false also where none is exact. Tries no size over the square root of procs, as calls under a
   table choose grids. */
bool swp_grid_choose_exact(int procs, int ndims, struct grid *grid);

/* The grid of the given sizes. False when it has fewer positions than processes, or an empty last layer. */
bool swp_grid_from_sizes(int procs, int ndims, const int *sizes, struct grid *grid);

/* Returns whether positions without a process exist. */
bool swp_grid_incomplete(const struct grid *grid);

/* Where a message from source to destination is after stages 1 … stage: coordinates up to `stage` are the
   destination's, the others the source's. Returns the process. */
int swp_grid_route(const struct grid *grid, int source, int destination, int stage);

/* The processes that `rank` may send to, and receive from, in a stage (from 1), without itself, increasing.
   Writes at most 2·(k_d − 1) ranks and returns how many. */
int swp_grid_neighbors(const struct grid *grid, int rank, int stage, int *neighbors);

/* The most of these that any rank has. */
int swp_grid_most_neighbors(const struct grid *grid, int stage);

/* The index of a rank among this many neighbours, which must include it. */
int swp_grid_neighbor_index(const int *neighbors, int count, int rank);

/* The most messages that a process sends in all stages: Σ(k_d − 1), and for an incomplete grid the same
   again for all stages but the last, because a process may also act for the position that it hosts. */
int64_t swp_grid_message_bound(const struct grid *grid);

/* Orders destinations so that those on the same route are adjacent: coordinate 1 is the most significant. */
int64_t swp_grid_route_key(const struct grid *grid, int destination);

/* "8x4x2". */
void swp_grid_text(const struct grid *grid, char *text, size_t length);

/* ---- The parameters that both forms of stfw share, and the grid that they choose ---- */

#define STFW_USAGE "dims=2..30 | radix=2.. | grid=AxBx..."
#define STFW_PARAMETERS                                                                                      \
  {{.name = "dims", .type = PARAMETER_INTEGER, .low = 2, .high = 30, .otherwise = 2},                        \
   {.name = "grid", .type = PARAMETER_GRID, .low = 1, .high = 1 << 30},                                      \
   {.name = "radix", .type = PARAMETER_INTEGER, .low = 2, .high = 1 << 15}}

/* NULL when the spec has a grid for this many processes, otherwise why not. */
const char *swp_stfw_choose_grid(const struct spec *spec, int procs, struct grid *grid);

const char *swp_stfw_applicable(const struct spec *spec, const struct features *features);
bool swp_stfw_variant(enum swp_operation operation, int index, int procs, char *text, size_t length);

/* Writes the plan's arrangement. */
void swp_stfw_describe(struct swp_plan *plan, const struct grid *grid);

#endif
