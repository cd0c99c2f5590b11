/*
 * Node-aware exchange: a rank's data for each other node, every value once. Values are identified by their
 * address, so lists of items and opaque messages, which share nothing, are treated alike.
 */
#include "nap_bundle.h"

#include <stdlib.h>
#include <string.h>

struct addressed {
  int node;
  const struct send *send;
};

static int compare_addressed(const void *a, const void *b) {
  const struct addressed *x = a, *y = b;
  if (x->node != y->node)
    return x->node < y->node ? -1 : 1;
  return (x->send > y->send) - (x->send < y->send);
}

/* Every byte once, in order. */
static void unite(struct bundle *bundle) {
  bundle->nruns = swp_runs_unite(bundle->runs, bundle->nruns);
  for (int64_t i = 0; i < bundle->nruns; i++) {
    bundle->begins[i] = bundle->bytes;
    bundle->bytes += bundle->runs[i].bytes;
  }
}

/* Messages by node; *total becomes the number of their runs. */
static int64_t address(const struct swp_plan *plan, struct addressed *list, int64_t *total) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int64_t count = 0;
  *total = 0;
  for (int i = 0; i < problem->nsends; i++) {
    int node = swp_topology_node(plan->topology, problem->sends[i].peer);
    if (node == swp_topology_node(plan->topology, plan->rank))
      continue;
    list[count++] = (struct addressed){node, &problem->sends[i]};
    *total += problem->sends[i].nruns;
  }
  if (count > 1)
    qsort(list, (size_t)count, sizeof *list, compare_addressed);
  return count;
}

static void fill(struct bundles *bundles, const struct addressed *list, int64_t count) {
  struct bundle *bundle = NULL;
  struct run *runs = bundles->runs;
  for (int64_t i = 0; i < count; i++) {
    const struct send *send = list[i].send;
    if (bundle == NULL || bundle->node != list[i].node) {
      bundle = &bundles->list[bundles->count++];
      *bundle = (struct bundle){.node = list[i].node,
                                .runs = runs,
                                .begins = bundles->begins + (runs - bundles->runs),
                                .sends = bundles->sends + i};
    }
    bundle->sends[bundle->nsends++] = send;
    memcpy(runs, send->runs, (size_t)send->nruns * sizeof *runs);
    runs += send->nruns;
    bundle->nruns += send->nruns;
  }
  for (int64_t i = 0; i < bundles->count; i++)
    unite(&bundles->list[i]);
}

int swp_bundles_make(const struct swp_plan *plan, struct bundles *bundles) {
  size_t nsends = (size_t)exchange_plan_of(plan)->problem->nsends;
  int error = SWP_SUCCESS;
  int64_t nruns, count;
  struct addressed *list = swp_allocate(nsends, sizeof *list, NULL);
  if (list == NULL)
    return swp_plan_no_memory(plan);
  count = address(plan, list, &nruns);
  bundles->list = swp_allocate((size_t)count, sizeof *bundles->list, NULL);
  bundles->sends = swp_allocate((size_t)count, sizeof *bundles->sends, NULL);
  bundles->runs = swp_allocate((size_t)nruns, sizeof *bundles->runs, NULL);
  bundles->begins = swp_allocate((size_t)nruns, sizeof *bundles->begins, NULL);
  if (bundles->list != NULL && bundles->sends != NULL && bundles->runs != NULL && bundles->begins != NULL)
    fill(bundles, list, count);
  else
    error = swp_plan_no_memory(plan);
  swp_release(list);
  return error;
}

void swp_bundles_free(struct bundles *bundles) {
  swp_release(bundles->list);
  swp_release(bundles->sends);
  swp_release(bundles->runs);
  swp_release(bundles->begins);
}

/* The run that holds a position of the bundle (`begins`) or of the caller's buffer: the last one that does
   not begin behind it. */
static int64_t find_run(const struct bundle *bundle, int64_t place, bool in_bundle) {
  int64_t low = 0, high = bundle->nruns;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if ((in_bundle ? bundle->begins[middle] : bundle->runs[middle].offset) <= place)
      low = middle;
    else
      high = middle;
  }
  return low;
}

int64_t swp_bundle_position(const struct bundle *bundle, int64_t offset) {
  int64_t i = find_run(bundle, offset, false);
  return bundle->begins[i] + offset - bundle->runs[i].offset;
}

bool swp_bundle_slice(const struct bundle *bundle, int64_t from, int64_t to, struct array *runs) {
  for (int64_t i = find_run(bundle, from, true); from < to; i++) {
    int64_t skipped = from - bundle->begins[i], bytes = bundle->runs[i].bytes - skipped;
    if (bytes > to - from)
      bytes = to - from;
    if (!swp_run_add(runs, bundle->runs[i].offset + skipped, bytes))
      return false;
    from += bytes;
  }
  return true;
}

bool swp_run_add(struct array *runs, int64_t offset, int64_t bytes) {
  struct run *last = runs->count > 0 ? (struct run *)runs->items + runs->count - 1 : NULL;
  if (last != NULL && last->offset + last->bytes == offset) {
    last->bytes += bytes;
    return true;
  }
  struct run *added = swp_array_add(runs, sizeof *added, NULL);
  if (added == NULL)
    return false;
  *added = (struct run){offset, bytes};
  return true;
}
