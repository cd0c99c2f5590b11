/* blocks: the data of a collective; rooted ones from or to one rank. No rank sends messages of its own. */
#include "error.h"
#include "pattern.h"

#include <limits.h>

enum { ROOT };

static int generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  pattern->root = (int)spec->values[ROOT];
  lists_allocate(&pattern->sends, 0, 0);
  lists_allocate(&pattern->recvs, 0, 0);
  if (pattern->root >= team->procs)
    return team_agree(
        team, failure_set("--pattern: root is %d, but there are %d ranks", pattern->root, team->procs));
  return 0;
}

const struct pattern_family pattern_blocks = {
    .name = "blocks",
    .summary = "a collective, from or to `root` if it has one",
    .of_collectives = true,
    .parameters = {{"root", 0, 0, INT_MAX}},
    .generate = generate,
};
