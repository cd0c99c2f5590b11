#include "bfs.h"

#include "search.h"

#include "clock.h"
#include "error.h"
#include "methods.h"
#include "pattern.h"
#include "precision.h"
#include "rng.h"
#include "sync.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERTICES, DEGREE, CLUSTERS, INSIDE, SEED_NUMBER, PARAMETERS };
enum { SEARCHES = 10, CHECKED_EDGES_MOST = 1 << 22 };

static const struct pattern_parameter parameters[] = {
    [VERTICES] = {"vertices", 65536, 1, INT64_C(1) << 40},
    [DEGREE] = {"degree", 16, 0, 1 << 16},
    [CLUSTERS] = {"clusters", 64, 1, INT_MAX},
    [INSIDE] = {"inside", 90, 0, 100},
    [SEED_NUMBER] = {"seed", 1, 0, INT64_MAX},
};

/* A method with the times of its searches, on the slowest rank. */
struct searcher {
  const struct method *method;
  swp_plan *plan;
  double whole_s[SEARCHES], discovery_s[SEARCHES];
};

/* Properties of the searches, equal for all methods. */
struct tally {
  int64_t levels, messages, messages_most;
};

static int parse(int argc, char **argv, struct graph_spec *spec) {
  int64_t values[PARAMETERS];
  if (argc > 2)
    return failure_set("write swpbench bfs [vertices=N,degree=N,clusters=N,inside=PERCENT,seed=N [METHODS]]");
  if (parameters_parse(argc > 0 ? argv[0] : NULL, parameters, PARAMETERS, values))
    return -1;
  *spec = (struct graph_spec){values[VERTICES], values[DEGREE], values[CLUSTERS], values[INSIDE],
                              values[SEED_NUMBER]};
  if (spec->clusters > spec->vertices)
    spec->clusters = spec->vertices;
  return 0;
}

/* Plans every method that is applicable. */
static int plan_all(const struct team *team, const char *text, struct method **methods,
                    struct searcher **searchers, int *count) {
  int nmethods = 0;
  *count = 0;
  int status = methods_expand(SWP_DISCOVERY, text, team->procs, methods, &nmethods);
  if (team_agree(team, status))
    return -1;
  *searchers = allocate_zeros((size_t)nmethods * sizeof **searchers);
  for (int m = 0; m < nmethods; m++) {
    struct searcher *searcher = &(*searchers)[*count];
    if (!(*methods)[m].applicable)
      continue;
    searcher->method = &(*methods)[m];
    const int error = swp_discovery_plan(team->comm, searcher->method->spec, NULL, &searcher->plan);
    if (error && error != SWP_ERR_NOT_APPLICABLE)
      status = failure_set("cannot plan %s: %s", searcher->method->spec, swp_error_message());
    if (team_agree(team, status))
      return -1;
    *count += !error;
  }
  return team_agree(team, *count ? 0 : failure_set("no method is applicable"));
}

/* One search: its times over all ranks; a distance that differs from the right one is refused. */
static int search_timed(const struct team *team, const struct graph *graph, struct searcher *searcher,
                        int number, int64_t root, int64_t *right, struct tally *tally) {
  struct search search;
  sync_barrier(team);
  const int64_t begin = clock_ns();
  search_run(team, graph, searcher->plan, root, &search);
  double seconds[2] = {(double)(clock_ns() - begin) * 1e-9, search.discovery_s};
  team_allreduce(team, seconds, 2, MPI_DOUBLE, MPI_MAX);
  searcher->whole_s[number] = seconds[0];
  searcher->discovery_s[number] = seconds[1];
  *tally = (struct tally){search.levels, search.messages, search.messages_most};
  int status = 0;
  for (int64_t i = 0; i < graph->count && status == 0; i++)
    if (search.distances[i] != right[i])
      status = failure_set("wrong distance by %s: vertex %lld is at %lld from %lld, expected %lld",
                           searcher->method->spec, (long long)(graph->first + i),
                           (long long)search.distances[i], (long long)root, (long long)right[i]);
  search_free(&search);
  return team_agree(team, status);
}

/* The right distances of this rank's vertices: by a serial search, or if that takes too long by the first
   method. */
static int64_t *right_distances(const struct team *team, const struct graph *graph,
                                const struct searcher *first, int64_t root, bool serial) {
  int64_t *right;
  if (serial) {
    right = search_serial(&graph->spec, root);
    memmove(right, right + graph->first, (size_t)graph->count * sizeof *right);
  } else {
    struct search search;
    search_run(team, graph, first->plan, root, &search);
    right = search.distances;
  }
  return right;
}

static int search_all(const struct team *team, const struct graph *graph, struct searcher *searchers,
                      int count, bool serial, struct tally *total) {
  int *order = allocate((size_t)count * sizeof *order);
  int status = 0;
  for (int number = 0; status == 0 && number < SEARCHES; number++) {
    struct rng rng = {hash_pair((uint64_t)graph->spec.seed, (uint64_t)number)};
    const int64_t root = rng_below(&rng, graph->spec.vertices);
    struct tally tally = {0};
    int64_t *right = right_distances(team, graph, &searchers[0], root, serial);
    rng_permutation(&rng, count, order);
    for (int i = 0; status == 0 && i < count; i++)
      status = search_timed(team, graph, &searchers[order[i]], number, root, right, &tally);
    free(right);
    total->levels += tally.levels;
    total->messages += tally.messages;
    if (tally.messages_most > total->messages_most)
      total->messages_most = tally.messages_most;
  }
  free(order);
  team_allreduce(team, &total->messages, 1, MPI_INT64_T, MPI_SUM);
  team_allreduce(team, &total->messages_most, 1, MPI_INT64_T, MPI_MAX);
  return status;
}

static void report(const struct team *team, struct searcher *searchers, int count, const struct tally *tally,
                   bool serial) {
  const double discoveries = (double)tally->levels * team->procs;
  printf("%d searches, %.1f levels each; in a level a rank sends to %.2f others, at most %lld\n", SEARCHES,
         (double)tally->levels / SEARCHES, (double)tally->messages / discoveries,
         (long long)tally->messages_most);
  for (int i = 0; i < count; i++)
    printf("%-28s search %10.3g us, its discoveries %10.3g us\n", searchers[i].method->spec,
           median_interval(searchers[i].whole_s, SEARCHES).median * 1e6,
           median_interval(searchers[i].discovery_s, SEARCHES).median * 1e6);
  printf("swpbench: distances ok, %s\n", serial ? "as found serially" : "the same by all methods");
}

int bfs_command(const struct team *team, int argc, char **argv) {
  struct graph_spec spec = {0};
  struct graph graph = {0};
  struct method *methods = NULL;
  struct searcher *searchers = NULL;
  struct tally tally = {0};
  int count = 0;
  int status = team_agree(team, parse(argc, argv, &spec));
  if (status == 0)
    status = plan_all(team, argc > 1 ? argv[1] : "all", &methods, &searchers, &count);
  if (status == 0) {
    const bool serial =
        spec.vertices <= CHECKED_EDGES_MOST && spec.vertices * spec.degree / 2 <= CHECKED_EDGES_MOST;
    graph_create(team, &spec, &graph);
    status = search_all(team, &graph, searchers, count, serial, &tally);
    if (status == 0 && team->rank == 0)
      report(team, searchers, count, &tally, serial);
  }
  for (int i = 0; i < count; i++)
    swp_plan_free(&searchers[i].plan);
  graph_free(&graph);
  free(searchers);
  free(methods);
  return status;
}
