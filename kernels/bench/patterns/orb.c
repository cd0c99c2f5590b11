/*
 * orb: the rebalancing step of a particle simulation. Particles were dealt out by orthogonal recursive
 * bisection, moved, and are dealt out anew: each rank sends those that now belong to another one. An item is
 * a particle; no rank knows its senders.
 */
#include "particles.h"
#include "pattern.h"

#include <stdlib.h>

enum { PARTICLES, STEP, SEED_NUMBER };

/* The owners of particles by number, as they are at the start or after the step. */
static int *deal(const struct team *team, const struct pattern_spec *spec, int64_t n, const int64_t *numbers,
                 bool moved) {
  struct point *points = allocate((size_t)n * sizeof *points);
  int *owners = allocate((size_t)n * sizeof *owners);
  for (int64_t i = 0; i < n; i++)
    points[i] = particle(spec->values[SEED_NUMBER], numbers[i], moved, (double)spec->values[STEP] / 1000);
  bisect(team, n, points, owners);
  free(points);
  return owners;
}

/* Sends every rank the numbers of the particles that it owns before the step. */
static void deal_first(const struct team *team, const struct pattern_spec *spec, struct lists *own) {
  const int64_t n = spec->values[PARTICLES];
  int64_t *numbers = allocate((size_t)n * sizeof *numbers);
  for (int64_t i = 0; i < n; i++)
    numbers[i] = n * team->rank + i;
  int *owners = deal(team, spec, n, numbers, false);
  struct lists outgoing;
  lists_group(team->procs, n, owners, numbers, &outgoing);
  lists_transpose(team, &outgoing, own);
  lists_free(&outgoing);
  free(owners);
  free(numbers);
}

static int generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  struct lists own;
  deal_first(team, spec, &own);
  pattern->nitems = own.offsets[own.n];
  int *owners = deal(team, spec, pattern->nitems, own.items, true);
  int64_t leaving = 0;
  for (int64_t i = 0; i < pattern->nitems; i++)
    if (owners[i] != team->rank) {
      owners[leaving] = owners[i];
      own.items[leaving++] = i;
    }
  lists_group(team->procs, leaving, owners, own.items, &pattern->sends);
  lists_transpose(team, &pattern->sends, &pattern->recvs);
  lists_free(&own);
  free(owners);
  return 0;
}

const struct pattern_family pattern_orb = {
    .name = "orb",
    .summary = "rebalancing of `particles` per rank after a step of `step` thousandths of their cube",
    .parameters = {{"particles", 4096, 1, INT64_C(1) << 31},
                   {"step", 10, 0, 1000},
                   {"seed", 1, 0, INT64_MAX}},
    .generate = generate,
};
