#include "graph.h"

#include "blocks.h"
#include "lists.h"
#include "rng.h"

#include <stdlib.h>

enum { BATCH = 1 << 16 };

void graph_edge(const struct graph_spec *spec, int64_t e, int64_t ends[2]) {
  struct rng rng = {hash_pair((uint64_t)spec->seed, (uint64_t)e)};
  const int clusters = (int)spec->clusters;
  ends[0] = rng_below(&rng, spec->vertices);
  if (rng_below(&rng, 100) < spec->inside) {
    const int cluster = block_owner(spec->vertices, clusters, ends[0]);
    ends[1] = block_first(spec->vertices, clusters, cluster) +
              rng_below(&rng, block_size(spec->vertices, clusters, cluster));
  } else {
    ends[1] = rng_below(&rng, spec->vertices);
  }
}

int graph_owner(const struct graph *graph, int64_t vertex) {
  return block_owner(graph->spec.vertices, graph->procs, vertex);
}

/* Sends a batch of edges, from number e on, to the owners of both ends; keeps the edges received. */
static void spread(const struct team *team, const struct graph *graph, int64_t e, int64_t n,
                   struct items *kept) {
  int *owners = allocate(4 * (size_t)n * sizeof *owners);
  int64_t *items = allocate(4 * (size_t)n * sizeof *items);
  for (int64_t i = 0; i < 4 * n; i += 4) {
    int64_t ends[2];
    graph_edge(&graph->spec, e + i / 4, ends);
    for (int side = 0; side < 2; side++) {
      items[i + 2 * side] = ends[side];
      items[i + 2 * side + 1] = ends[1 - side];
      owners[i + 2 * side] = owners[i + 2 * side + 1] = graph_owner(graph, ends[side]);
    }
  }
  struct lists out, in;
  lists_group(team->procs, 4 * n, owners, items, &out);
  lists_transpose(team, &out, &in);
  for (int64_t i = 0; i < in.offsets[in.n]; i++)
    items_add(kept, in.items[i]);
  lists_free(&out);
  lists_free(&in);
  free(owners);
  free(items);
}

/* Makes the neighbours from ends of edges by their owners: each own end, then the other end. */
static void make_neighbours(const struct items *ends, struct graph *graph) {
  graph->offsets = allocate_zeros(((size_t)graph->count + 2) * sizeof *graph->offsets);
  graph->neighbours = allocate((size_t)ends->count / 2 * sizeof *graph->neighbours);
  int64_t *next = graph->offsets + 1; /* while it is filled, one place behind its end */
  for (int64_t i = 0; i < ends->count; i += 2)
    next[ends->list[i] - graph->first + 1]++;
  for (int64_t v = 0; v < graph->count; v++)
    next[v + 1] += next[v];
  for (int64_t i = 0; i < ends->count; i += 2)
    graph->neighbours[next[ends->list[i] - graph->first]++] = ends->list[i + 1];
}

void graph_create(const struct team *team, const struct graph_spec *spec, struct graph *graph) {
  *graph = (struct graph){.spec = *spec,
                          .procs = team->procs,
                          .first = block_first(spec->vertices, team->procs, team->rank),
                          .count = block_size(spec->vertices, team->procs, team->rank)};
  const int64_t edges = spec->vertices * spec->degree / 2;
  const int64_t end =
      block_first(edges, team->procs, team->rank) + block_size(edges, team->procs, team->rank);
  const int64_t most = block_size(edges, team->procs, 0);
  struct items ends = {0};
  for (int64_t done = 0; done < most; done += BATCH) { /* as often on every rank */
    const int64_t e = block_first(edges, team->procs, team->rank) + done;
    const int64_t left = e < end ? end - e : 0;
    spread(team, graph, e, left < BATCH ? left : BATCH, &ends);
  }
  make_neighbours(&ends, graph);
  free(ends.list);
}

void graph_free(struct graph *graph) {
  free(graph->offsets);
  free(graph->neighbours);
  *graph = (struct graph){0};
}
