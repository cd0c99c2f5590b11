#include "particles.h"

#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLOUDS = 8, HALVINGS_MOST = 64 };
static const double CLOUD_WIDTH = 0.1;

/* Draws a number from 0 to 1. */
static double uniform(struct rng *rng) {
  return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

/* Reflects a coordinate back into the cube. */
static double reflected(double x) {
  x = fabs(x);
  return x > 1 ? 2 - x : x;
}

struct point particle(int64_t seed, int64_t number, bool moved, double length) {
  struct rng own = {hash_pair((uint64_t)seed, (uint64_t)number)};
  const uint64_t cloud = rng_next(&own) % (uint64_t)(2 * CLOUDS);
  struct rng clouds = {hash_pair((uint64_t)seed, UINT64_MAX - cloud)};
  const bool alone = cloud >= CLOUDS;
  struct point point;
  for (int axis = 0; axis < AXES; axis++) {
    const double place = uniform(&own) + uniform(&own) - 1, centre = uniform(&clouds);
    const double step = length * (2 * uniform(alone ? &own : &clouds) - 1);
    const double x = alone ? uniform(&own) : centre + CLOUD_WIDTH * place;
    point.at[axis] = reflected(moved ? x + step : x);
  }
  return point;
}

/* The boxes at one depth: the one of ranks first .. end[first]-1 has the number first. */
struct boxes {
  int *end;
  int64_t *wanted; /* particles for its lower half; -1: not to be cut */
  double *low, *high;
  int64_t *below; /* particles below the middle of low and high */
};

static double middle(const struct boxes *boxes, int box) {
  return boxes->low[box] + (boxes->high[box] - boxes->low[box]) / 2;
}

static int half(const struct boxes *boxes, int box) {
  return box + (boxes->end[box] - box) / 2;
}

/* Sets how many particles each box's lower half gets. Returns whether any box must be cut. */
static bool share(const struct team *team, int64_t n, const int *owners, struct boxes *boxes) {
  bool any = false;
  memset(boxes->below, 0, (size_t)team->procs * sizeof *boxes->below);
  for (int64_t i = 0; i < n; i++)
    boxes->below[owners[i]]++;
  team_allreduce(team, boxes->below, team->procs, MPI_INT64_T, MPI_SUM);
  for (int box = 0; box < team->procs; box++) {
    const bool cut = boxes->end[box] - box > 1;
    const int64_t ranks = boxes->end[box] - box, lower = cut ? half(boxes, box) - box : 0;
    boxes->wanted[box] =
        cut ? boxes->below[box] / ranks * lower + boxes->below[box] % ranks * lower / ranks : -1;
    boxes->low[box] = 0;
    boxes->high[box] = 2;
    any |= cut;
  }
  return any;
}

/* Halves the interval of every box's cut, towards the wanted number. Returns whether all have reached it. */
static bool halve(const struct team *team, int64_t n, const struct point *points, int axis, const int *owners,
                  struct boxes *boxes) {
  bool all = true;
  memset(boxes->below, 0, (size_t)team->procs * sizeof *boxes->below);
  for (int64_t i = 0; i < n; i++)
    boxes->below[owners[i]] += points[i].at[axis] < middle(boxes, owners[i]);
  team_allreduce(team, boxes->below, team->procs, MPI_INT64_T, MPI_SUM);
  for (int box = 0; box < team->procs; box++) {
    if (boxes->wanted[box] < 0 || boxes->below[box] == boxes->wanted[box])
      continue;
    all = false;
    *(boxes->below[box] < boxes->wanted[box] ? &boxes->low[box] : &boxes->high[box]) = middle(boxes, box);
  }
  return all;
}

void bisect(const struct team *team, int64_t n, const struct point *points, int *owners) {
  const size_t procs = (size_t)team->procs;
  struct boxes boxes = {.end = allocate_zeros(procs * sizeof *boxes.end),
                        .wanted = allocate(procs * sizeof *boxes.wanted),
                        .low = allocate(procs * sizeof *boxes.low),
                        .high = allocate(procs * sizeof *boxes.high),
                        .below = allocate(procs * sizeof *boxes.below)};
  boxes.end[0] = team->procs; /* one box, of all ranks; a box owns its particles until they are cut */
  memset(owners, 0, (size_t)n * sizeof *owners);
  for (int axis = 0; share(team, n, owners, &boxes); axis = (axis + 1) % AXES) {
    for (int i = 0; i < HALVINGS_MOST && !halve(team, n, points, axis, owners, &boxes); i++)
      ;
    for (int64_t i = 0; i < n; i++)
      if (boxes.wanted[owners[i]] >= 0 && points[i].at[axis] >= middle(&boxes, owners[i]))
        owners[i] = half(&boxes, owners[i]);
    for (int box = team->procs - 1; box >= 0; box--)
      if (boxes.wanted[box] >= 0) {
        boxes.end[half(&boxes, box)] = boxes.end[box];
        boxes.end[box] = half(&boxes, box);
      }
  }
  free(boxes.end);
  free(boxes.wanted);
  free(boxes.low);
  free(boxes.high);
  free(boxes.below);
}
