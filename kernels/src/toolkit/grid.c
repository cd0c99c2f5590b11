/* Virtual process topologies T_n(k_1, …, k_n) (Selvitopi & Aykanat, SC'19). */
#include "grid.h"

#include <stdio.h>
#include <string.h>

static void set_strides(struct grid *grid) {
  grid->strides[0] = 1;
  for (int d = 0; d < grid->ndims; d++)
    grid->strides[d + 1] = grid->strides[d] * grid->sizes[d];
}

struct search {
  int procs, ndims;
  int sizes[GRID_DIMS], best[GRID_DIMS];
  int64_t best_sum; /* of the sizes; 0: nothing found */
};

static bool is_better(const struct search *search, int64_t sum) {
  int d = 0;
  if (search->best_sum == 0 || sum != search->best_sum)
    return search->best_sum == 0 || sum < search->best_sum;
  while (d < search->ndims - 1 && search->sizes[d] == search->best[d])
    d++;
  return search->sizes[d] < search->best[d];
}

static void consider(struct search *search, int64_t sum) {
  if (!is_better(search, sum))
    return;
  search->best_sum = sum;
  memcpy(search->best, search->sizes, sizeof search->best);
}

/* Chooses sizes[d] and those before, none below `least`, which multiply to `left`: a size is at most the
   square root of what is left, as one before it is as large. `sum` is of the sizes behind. */
static void factor(struct search *search, int d, int64_t left, int64_t sum, int64_t least) {
  if (d == 0) {
    search->sizes[0] = (int)left;
    consider(search, sum + left);
  }
  for (int64_t size = least; d > 0 && size * size <= left; size++)
    if (left % size == 0) {
      search->sizes[d] = (int)size;
      factor(search, d - 1, left / size, sum + size, size);
    }
}

/* Chooses sizes[d] and on, which never increase and multiply to procs at least. `product` and `sum` are of
   the sizes before, `limit` is the one before. */
static void cover(struct search *search, int d, int64_t product, int64_t sum, int64_t limit) {
  int64_t left = (search->procs + product - 1) / product; /* the rest must multiply to at least this */
  if (d == search->ndims - 1) {
    if (left < 2 || left > limit)
      return;
    search->sizes[d] = (int)left;
    consider(search, sum + left);
    return;
  }
  for (int64_t size = 2; size <= limit; size++) {
    int64_t least = 2 * (int64_t)(search->ndims - d - 1);
    if (product * size >= search->procs || (search->best_sum != 0 && sum + size + least > search->best_sum))
      break;
    search->sizes[d] = (int)size;
    cover(search, d + 1, product * size, sum + size, size);
  }
}

static bool take_best(const struct search *search, struct grid *grid) {
  if (search->best_sum == 0)
    return false;
  grid->procs = search->procs;
  grid->ndims = search->ndims;
  memcpy(grid->sizes, search->best, sizeof grid->sizes);
  set_strides(grid);
  return true;
}

static bool has_grid(int procs, int ndims) {
  return ndims >= 1 && ndims <= 30 && procs >> ndims > 0;
}

bool swp_grid_choose_exact(int procs, int ndims, struct grid *grid) {
  if (procs == 1)
    return ndims == 1 && swp_grid_from_sizes(1, 1, &procs, grid);
  struct search search = {.procs = procs, .ndims = ndims};
  if (has_grid(procs, ndims))
    factor(&search, ndims - 1, procs, 0, 2);
  return take_best(&search, grid);
}

bool swp_grid_choose(int procs, int ndims, struct grid *grid) {
  if (swp_grid_choose_exact(procs, ndims, grid))
    return true;
  struct search search = {.procs = procs, .ndims = ndims};
  if (has_grid(procs, ndims))
    cover(&search, 0, 1, 0, procs);
  return take_best(&search, grid);
}

bool swp_grid_from_sizes(int procs, int ndims, const int *sizes, struct grid *grid) {
  if (ndims < 1 || ndims > GRID_DIMS)
    return false;
  *grid = (struct grid){.procs = procs, .ndims = ndims};
  int64_t positions = 1;
  for (int d = 0; d < ndims; d++) {
    if (sizes[d] < 1 || positions > (INT64_MAX >> 1) / sizes[d])
      return false;
    grid->sizes[d] = sizes[d];
    positions *= sizes[d];
  }
  set_strides(grid);
  /* The host of a missing position is a layer below, so there must be two. */
  int64_t below = grid->strides[ndims] - grid->strides[ndims - 1];
  return positions == procs || (positions > procs && below > 0 && below < procs);
}

bool swp_grid_incomplete(const struct grid *grid) {
  return grid->strides[grid->ndims] != grid->procs;
}

/* The process at a position. */
static int host(const struct grid *grid, int64_t position) {
  return (int)(position < grid->procs ? position : position - grid->strides[grid->ndims - 1]);
}

int swp_grid_route(const struct grid *grid, int source, int destination, int stage) {
  int64_t stride = grid->strides[stage];
  return host(grid, source / stride * stride + destination % stride);
}

int swp_grid_neighbors(const struct grid *grid, int rank, int stage, int *neighbors) {
  int64_t stride = grid->strides[stage - 1], size = grid->sizes[stage - 1];
  int64_t positions[2] = {rank,
                          rank + grid->strides[grid->ndims - 1]}; /* its own, and one that it may host */
  int count = 0;
  for (int i = 0; i < 2; i++) {
    int64_t position = positions[i], own = position / stride % size;
    if (i == 1 && (position < grid->procs || position >= grid->strides[grid->ndims]))
      continue;
    for (int64_t c = 0; c < size; c++) {
      int neighbor = host(grid, position + (c - own) * stride);
      int at = count;
      while (at > 0 && neighbors[at - 1] > neighbor)
        at--;
      if (neighbor == rank || (at > 0 && neighbors[at - 1] == neighbor))
        continue;
      memmove(neighbors + at + 1, neighbors + at, (size_t)(count - at) * sizeof *neighbors);
      neighbors[at] = neighbor;
      count++;
    }
  }
  return count;
}

int swp_grid_most_neighbors(const struct grid *grid, int stage) {
  const int64_t stride = grid->strides[stage - 1], others = grid->sizes[stage - 1] - 1;
  /* A position is hosted where its line in the last layer is cut, by a process that has its own line too. */
  const int64_t cut = grid->procs % grid->strides[grid->ndims - 1] % grid->strides[stage];
  const int64_t more = stage < grid->ndims ? (cut + stride - 1) / stride : 0;
  return (int)(others + (more < others ? more : others));
}

int swp_grid_neighbor_index(const int *neighbors, int count, int rank) {
  int low = 0;
  for (int high = count - 1; low < high;) {
    int middle = low + (high - low) / 2;
    if (neighbors[middle] < rank)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int64_t swp_grid_message_bound(const struct grid *grid) {
  int64_t bound = 0;
  for (int d = 0; d < grid->ndims; d++)
    bound += (swp_grid_incomplete(grid) && d < grid->ndims - 1 ? 2 : 1) * (grid->sizes[d] - 1);
  return bound;
}

int64_t swp_grid_route_key(const struct grid *grid, int destination) {
  int64_t key = 0;
  for (int d = 0; d < grid->ndims; d++)
    key = key * grid->sizes[d] + destination / grid->strides[d] % grid->sizes[d];
  return key;
}

void swp_grid_text(const struct grid *grid, char *text, size_t length) {
  size_t used = 0;
  text[0] = '\0';
  for (int d = 0; d < grid->ndims && used < length; d++)
    used += (size_t)snprintf(text + used, length - used, "%s%d", d > 0 ? "x" : "", grid->sizes[d]);
}

/* ---- stfw's ---- */

enum { DIMS, GRID, RADIX };

/* The most dimensions of which each can have that many ranks. */
static int dims_of_radix(int procs, int64_t radix) {
  int dims = 0;
  for (int64_t product = radix; product <= procs; product *= radix)
    dims++;
  return dims;
}

const char *swp_stfw_choose_grid(const struct spec *spec, int procs, struct grid *grid) {
  const struct argument *dims = &spec->arguments[DIMS], *sizes = &spec->arguments[GRID],
                        *radix = &spec->arguments[RADIX];
  if (dims->given + sizes->given + radix->given > 1)
    return "give one of dims, radix and grid";
  if (sizes->given)
    return swp_grid_from_sizes(procs, (int)sizes->value, sizes->sizes, grid)
               ? NULL
               : "the grid must have a position for every process, and a process in its last layer";
  const int ndims = radix->given ? dims_of_radix(procs, radix->value) : (int)dims->value;
  if (ndims < 2)
    return "radix must not exceed the square root of the number of processes";
  return swp_grid_choose(procs, ndims, grid)
             ? NULL
             : "dims must not exceed the binary logarithm of the number of processes";
}

const char *swp_stfw_applicable(const struct spec *spec, const struct features *features) {
  struct grid grid;
  return swp_stfw_choose_grid(spec, features->procs, &grid);
}

bool swp_stfw_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  (void)operation;
  int most = dims_of_radix(procs, 2);
  if (index + 2 > most)
    return false;
  if (index + 2 < most)
    snprintf(text, length, "stfw:dims=%d", index + 2);
  else
    snprintf(text, length, "stfw:radix=2"); /* a name for the most dimensions that fits any number of ranks */
  return true;
}

void swp_stfw_describe(struct swp_plan *plan, const struct grid *grid) {
  char sizes[48];
  swp_grid_text(grid, sizes, sizeof sizes);
  snprintf(plan->arrangement, sizeof plan->arrangement, "%sgrid %s, at most %lld messages a rank",
           swp_grid_incomplete(grid) ? "incomplete " : "", sizes, (long long)swp_grid_message_bound(grid));
}
