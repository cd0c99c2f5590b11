/* A hypercube of ranks whose number need be no power of two. */
#include "fold.h"

struct fold swp_fold(const struct swp_plan *plan, int root) {
  struct fold fold = {.procs = plan->procs, .root = root, .size = 1, .partner = -1};
  while (fold.size <= plan->procs / 2)
    fold.size *= 2;
  fold.pairs = plan->procs - fold.size;
  int index = (plan->rank - root + plan->procs) % plan->procs;
  if (index >= 2 * fold.pairs) {
    fold.position = index - fold.pairs;
  } else {
    fold.position = index % 2 == 0 ? index / 2 : -1;
    fold.partner = (index + (index % 2 == 0 ? 1 : -1) + root) % plan->procs;
  }
  return fold;
}
