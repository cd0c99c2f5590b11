/*
 * Parallel breadth-first search, level by level: each rank notifies the owners of its frontier's neighbours,
 * in one discovery per level, as no rank knows its senders (Hoefler, Siebert, Lumsdaine, PPoPP'10).
 */
#ifndef STUDIES_SEARCH_H
#define STUDIES_SEARCH_H

#include "graph.h"

#include <switchpoint.h>

struct search {
  int64_t *distances; /* of this rank's vertices from the root, -1: not reached */
  int levels;         /* discoveries made */
  int64_t messages;   /* sent by this rank, over all levels */
  int messages_most;  /* in one level */
  double discovery_s; /* spent in discoveries by this rank */
};

/*
 * Searches from the root with a discovery plan. Collective. A failing execution ends the job. search_free
 * must be called.
 */
void search_run(const struct team *team, const struct graph *graph, swp_plan *plan, int64_t root,
                struct search *search);
void search_free(struct search *search);

/* The distances of all vertices, found by one process that holds the whole graph. The caller frees them.
   Local. */
int64_t *search_serial(const struct graph_spec *spec, int64_t root);

#endif
