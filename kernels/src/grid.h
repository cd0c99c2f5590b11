/*
 * Virtual process topologies T_n(k_1, …, k_n) (Selvitopi & Aykanat, SC'19): rank r has coordinates
 * c_1 = r mod k_1, c_2 = r / k_1 mod k_2, …. When no grid has exactly the number of processes, the last
 * layer (greatest c_n) is incomplete, and a position without a process is hosted by the one a layer below.
 */
#ifndef SWP_GRID_H
#define SWP_GRID_H

#include "method.h"

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

/* The grid of the given sizes. False when it has fewer positions than processes, or an empty last layer. */
bool swp_grid_from_sizes(int procs, int ndims, const int *sizes, struct grid *grid);

/* Whether positions without a process exist. */
bool swp_grid_incomplete(const struct grid *grid);

/* The process at a position. */
int swp_grid_host(const struct grid *grid, int64_t position);

/* Where a message from source to destination is after stages 1 … stage: coordinates up to `stage` are the
   destination's, the others the source's. Gives the process. */
int swp_grid_route(const struct grid *grid, int source, int destination, int stage);

/* The processes that `rank` may send to, and receive from, in a stage (from 1), without itself, increasing.
   Writes at most 2·(k_d − 1) ranks, gives how many. */
int swp_grid_neighbors(const struct grid *grid, int rank, int stage, int *neighbors);

/* The most messages that a process sends in all stages: Σ(k_d − 1), and for an incomplete grid the same
   again for all stages but the last, because a process may also act for the position that it hosts. */
int64_t swp_grid_message_bound(const struct grid *grid);

/* Orders destinations so that those on one way lie together: coordinate 1 is the most significant. */
int64_t swp_grid_route_key(const struct grid *grid, int destination);

/* "8x4x2". */
void swp_grid_text(const struct grid *grid, char *text, size_t length);

#endif
