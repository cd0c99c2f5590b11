/*
 * stencil: ranks form a grid of `dim` dimensions, open at its ends; each owns a block of `edge`^dim points
 * and sends those on its faces (points = 2 dim + 1), or on faces, edges and corners (3^dim), to its
 * neighbours.
 */
#include "error.h"
#include "pattern.h"

#include <stdlib.h>

enum { DIM, POINTS, EDGE };
enum { DIM_MAX = 3, NEIGHBOURS_MAX = 26 };

static int cube(int dim) {
  return dim == 1 ? 3 : 3 * cube(dim - 1);
}

static int check(const struct pattern_spec *spec) {
  const int dim = (int)spec->values[DIM];
  const int star = 2 * dim + 1;
  if (spec->values[POINTS] == star || spec->values[POINTS] == cube(dim))
    return 0;
  return failure_set("a stencil in %d dimension%s has %d or %d points, not %lld", dim, dim > 1 ? "s" : "",
                     star, cube(dim), (long long)spec->values[POINTS]);
}

/* The neighbour in direction step, -1 when there is none in the grid or in the stencil. */
static int neighbour(int dim, const int *grid, const int *place, const int *step, bool star) {
  int rank = 0, moved = 0;
  for (int d = 0; d < dim; d++) {
    const int c = place[d] + step[d];
    if (c < 0 || c >= grid[d])
      return -1;
    rank = rank * grid[d] + c;
    moved += step[d] != 0;
  }
  return moved == 0 || (star && moved > 1) ? -1 : rank;
}

/* Appends the points of the block that touch the neighbour in direction step. */
static int64_t border(int dim, int64_t edge, const int *step, int64_t *items) {
  int64_t low[DIM_MAX] = {0}, size[DIM_MAX] = {1, 1, 1}, count = 0;
  int64_t stride[DIM_MAX] = {0};
  for (int d = dim - 1, s = 0; d >= 0; d--, s++) {
    stride[d] = s == 0 ? 1 : stride[d + 1] * edge;
    low[d] = step[d] > 0 ? edge - 1 : 0;
    size[d] = step[d] ? 1 : edge;
  }
  for (int64_t a = 0; a < size[0]; a++)
    for (int64_t b = 0; b < size[1]; b++)
      for (int64_t c = 0; c < size[2]; c++)
        items[count++] = (low[0] + a) * stride[0] + (low[1] + b) * stride[1] + (low[2] + c) * stride[2];
  return count;
}

static int generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  const int dim = (int)spec->values[DIM];
  const int64_t edge = spec->values[EDGE];
  const bool star = spec->values[POINTS] != cube(dim);
  int grid[DIM_MAX] = {0}, place[DIM_MAX], step[DIM_MAX];
  MPI_Dims_create(team->procs, dim, grid);
  for (int d = dim - 1, rest = team->rank; d >= 0; rest /= grid[d--])
    place[d] = rest % grid[d];

  pattern->nitems = 1;
  for (int d = 0; d < dim; d++)
    pattern->nitems *= edge;
  struct lists *sends = &pattern->sends;
  lists_allocate(sends, NEIGHBOURS_MAX, NEIGHBOURS_MAX * (pattern->nitems / edge));
  sends->n = 0;
  for (int direction = 0; direction < cube(dim); direction++) {
    for (int d = dim - 1, rest = direction; d >= 0; d--, rest /= 3)
      step[d] = rest % 3 - 1;
    const int rank = neighbour(dim, grid, place, step, star);
    if (rank < 0)
      continue;
    const int64_t used = sends->offsets[sends->n];
    sends->ranks[sends->n++] = rank;
    sends->offsets[sends->n] = used + border(dim, edge, step, sends->items + used);
  }
  lists_transpose(team, sends, &pattern->recvs);
  return 0;
}

const struct pattern_family pattern_stencil = {
    .name = "stencil",
    .summary = "halo of a `points`-point stencil; each rank owns edge^dim points",
    .parameters = {{"dim", 3, 1, DIM_MAX}, {"points", 27, 3, 27}, {"edge", 4, 1, 512}},
    .check = check,
    .generate = generate,
};
