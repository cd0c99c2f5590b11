/* hub: few random ranks exchange with all others, which have no other neighbours: dense rows of a matrix. */
#include "pattern.h"
#include "rng.h"

#include <limits.h>
#include <stdlib.h>

enum { HUBS, SEED_NUMBER };

static int generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  const int nhubs = spec->values[HUBS] < team->procs ? (int)spec->values[HUBS] : team->procs;
  struct rng rng = {(uint64_t)spec->values[SEED_NUMBER]};
  int *hubs = allocate((size_t)nhubs * sizeof *hubs);
  rng_sample(&rng, team->procs, nhubs, hubs);
  bool is_hub = false;
  for (int h = 0; h < nhubs; h++)
    is_hub |= hubs[h] == team->rank;

  const int neighbours = is_hub ? team->procs - 1 : nhubs;
  struct lists *sends = &pattern->sends;
  lists_allocate(sends, neighbours, neighbours);
  for (int i = 0; i < neighbours; i++) {
    sends->ranks[i] = is_hub ? i + (i >= team->rank) : hubs[i];
    sends->items[i] = i;
    sends->offsets[i + 1] = i + 1;
  }
  free(hubs);
  pattern->nitems = neighbours;
  pattern->opaque = true;
  lists_transpose(team, sends, &pattern->recvs);
  return 0;
}

const struct pattern_family pattern_hub = {
    .name = "hub",
    .summary = "`hubs` random ranks exchange with all others",
    .parameters = {{"hubs", 4, 1, INT_MAX}, {"seed", 1, 0, INT64_MAX}},
    .generate = generate,
};
