#include "search.h"

#include "clock.h"
#include "lists.h"

#include <stdlib.h>

/* A vertex is reached: when it is new, it gets its distance and joins the next frontier. */
static void reach(const struct graph *graph, int64_t vertex, int64_t distance, struct search *search,
                  struct items *next) {
  int64_t *known = &search->distances[vertex - graph->first];
  if (*known >= 0)
    return;
  *known = distance;
  items_add(next, vertex);
}

/* Follows the edges of the frontier: own ends are reached at once, the others are listed by owner. */
static void expand(const struct graph *graph, const struct items *frontier, int64_t distance,
                   struct search *search, struct items *next, struct lists *outgoing) {
  struct items others = {0};
  for (int64_t i = 0; i < frontier->count; i++) {
    const int64_t local = frontier->list[i] - graph->first;
    for (int64_t k = graph->offsets[local]; k < graph->offsets[local + 1]; k++) {
      const int64_t vertex = graph->neighbours[k];
      if (vertex >= graph->first && vertex < graph->first + graph->count)
        reach(graph, vertex, distance, search, next);
      else
        items_add(&others, vertex);
    }
  }
  items_distinct(&others);
  int *owners = allocate((size_t)others.count * sizeof *owners);
  for (int64_t i = 0; i < others.count; i++)
    owners[i] = graph_owner(graph, others.list[i]);
  lists_group(graph->procs, others.count, owners, others.list, outgoing);
  free(owners);
  free(others.list);
}

/* One discovery: notifies the owners, and reaches the vertices of which this rank is notified. */
static void discover(const struct graph *graph, swp_plan *plan, const struct lists *outgoing,
                     int64_t distance, struct search *search, swp_inbox **inbox, struct items *next) {
  const void **data = allocate((size_t)outgoing->n * sizeof *data);
  int64_t *bytes = allocate((size_t)outgoing->n * sizeof *bytes);
  for (int i = 0; i < outgoing->n; i++) {
    data[i] = outgoing->items + outgoing->offsets[i];
    bytes[i] = (outgoing->offsets[i + 1] - outgoing->offsets[i]) * (int64_t)sizeof *outgoing->items;
  }
  const int64_t begin = clock_ns();
  if (swp_discovery_execute(plan, outgoing->n, outgoing->ranks, bytes, data, inbox))
    team_fail("%s fails in a search: %s", swp_plan_method(plan), swp_error_message());
  search->discovery_s += (double)(clock_ns() - begin) * 1e-9;
  free(data);
  free(bytes);
  for (int i = 0; i < (*inbox)->nsources; i++) {
    const int64_t *vertices = (*inbox)->data[i];
    for (int64_t k = 0; k < (*inbox)->bytes[i] / (int64_t)sizeof *vertices; k++)
      reach(graph, vertices[k], distance, search, next);
  }
}

void search_run(const struct team *team, const struct graph *graph, swp_plan *plan, int64_t root,
                struct search *search) {
  struct items frontier = {0};
  swp_inbox *inbox = NULL;
  int64_t active = 1;
  *search = (struct search){.distances = allocate((size_t)graph->count * sizeof *search->distances)};
  for (int64_t i = 0; i < graph->count; i++)
    search->distances[i] = -1;
  if (graph_owner(graph, root) == team->rank)
    reach(graph, root, 0, search, &frontier);
  for (int64_t distance = 1; active > 0; distance++) {
    struct items next = {0};
    struct lists outgoing;
    expand(graph, &frontier, distance, search, &next, &outgoing);
    discover(graph, plan, &outgoing, distance, search, &inbox, &next);
    search->levels++;
    search->messages += outgoing.n;
    if (outgoing.n > search->messages_most)
      search->messages_most = outgoing.n;
    lists_free(&outgoing);
    free(frontier.list);
    frontier = next;
    active = frontier.count;
    team_allreduce(team, &active, 1, MPI_INT64_T, MPI_SUM);
  }
  free(frontier.list);
  swp_inbox_free(&inbox);
}

void search_free(struct search *search) {
  free(search->distances);
  *search = (struct search){0};
}

/* Level after level over all edges, which are made anew each time: slow, but simple enough to be right. */
int64_t *search_serial(const struct graph_spec *spec, int64_t root) {
  int64_t *distances = allocate((size_t)spec->vertices * sizeof *distances);
  for (int64_t vertex = 0; vertex < spec->vertices; vertex++)
    distances[vertex] = -1;
  distances[root] = 0;
  int64_t reached = 1;
  for (int64_t distance = 0; reached > 0; distance++) {
    reached = 0;
    for (int64_t e = 0; e < spec->vertices * spec->degree / 2; e++) {
      int64_t ends[2];
      graph_edge(spec, e, ends);
      for (int side = 0; side < 2; side++)
        if (distances[ends[side]] == distance && distances[ends[1 - side]] < 0) {
          distances[ends[1 - side]] = distance + 1;
          reached++;
        }
    }
  }
  return distances;
}
