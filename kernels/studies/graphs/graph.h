/*
 * A clustered Erdos-Renyi graph on the ranks: vertices in contiguous blocks, `degree` times half as many
 * edges, each between a random vertex and another one, which is of the same cluster with the probability
 * `inside`. Every edge follows from the seed and its number alone.
 */
#ifndef STUDIES_GRAPH_H
#define STUDIES_GRAPH_H

#include "team.h"

#include <stdint.h>

struct graph_spec {
  int64_t vertices, degree; /* degree: the mean */
  int64_t clusters;         /* of consecutive vertices */
  int64_t inside;           /* per cent of the edges */
  int64_t seed;
};

struct graph {
  struct graph_spec spec;
  int procs;
  int64_t first, count; /* this rank's vertices */
  int64_t *offsets;     /* count + 1 */
  int64_t *neighbours;  /* of vertex first + i from offsets[i] on; repeated where an edge is */
};

/* The two ends of edge number e, of vertices * degree / 2. */
void graph_edge(const struct graph_spec *spec, int64_t e, int64_t ends[2]);

/* The rank that owns a vertex. */
int graph_owner(const struct graph *graph, int64_t vertex);

/*
 * Each rank makes its share of the edges and sends them to the owners of their ends, in batches, so that no
 * rank holds more than its vertices' edges. Collective.
 */
void graph_create(const struct team *team, const struct graph_spec *spec, struct graph *graph);
void graph_free(struct graph *graph);

#endif
