/* random: every rank sends one item each to `degree` random others (to all others when there are fewer). */
#include "pattern.h"
#include "rng.h"

#include <limits.h>

enum { DEGREE, SEED_NUMBER };

static int generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  const int others = team->procs - 1;
  const int degree = spec->values[DEGREE] < others ? (int)spec->values[DEGREE] : others;
  struct rng rng = {hash_pair((uint64_t)spec->values[SEED_NUMBER], (uint64_t)team->rank)};
  struct lists *sends = &pattern->sends;
  lists_allocate(sends, degree, degree);
  rng_sample(&rng, others, degree, sends->ranks);
  for (int i = 0; i < degree; i++) {
    sends->ranks[i] += sends->ranks[i] >= team->rank; /* the rank itself is left out of the draw */
    sends->items[i] = i;
    sends->offsets[i + 1] = i + 1;
  }
  pattern->nitems = degree;
  pattern->opaque = true;
  lists_transpose(team, sends, &pattern->recvs);
  return 0;
}

const struct pattern_family pattern_random = {
    .name = "random",
    .summary = "each rank sends to `degree` random others",
    .parameters = {{"degree", 6, 0, INT_MAX}, {"seed", 1, 0, INT64_MAX}},
    .generate = generate,
};
