/* The graph workloads against serial ones: breadth-first search, and the bisection of particles. */
#include "particles.h"
#include "search.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

static void test_search(const struct team *team, const struct graph_spec *spec) {
  struct graph graph;
  graph_create(team, spec, &graph);
  const int64_t root = (int64_t)(mix((uint64_t)spec->seed, 0, 0, 0) % (uint64_t)spec->vertices);
  int64_t *right = search_serial(spec, root);
  char *specs = all_specs(SWP_DISCOVERY, team->procs), *rest = specs;
  for (char *method; (method = strtok_r(rest, " ", &rest)) != NULL;) {
    test_case("%s, %lld vertices, %lld clusters, seed %lld", method, (long long)spec->vertices,
              (long long)spec->clusters, (long long)spec->seed);
    swp_plan *plan = NULL;
    const int error = test_agreed(team->comm, swp_discovery_plan(team->comm, method, NULL, &plan));
    EXPECT(error == SWP_SUCCESS || error == SWP_ERR_NOT_APPLICABLE, "error %d: %s", error,
           swp_error_message());
    if (plan == NULL)
      continue;
    struct search search;
    search_run(team, &graph, plan, root, &search);
    for (int64_t i = 0; i < graph.count; i++)
      EXPECT(search.distances[i] == right[graph.first + i], "vertex %lld is at %lld, expected %lld",
             (long long)(graph.first + i), (long long)search.distances[i], (long long)right[graph.first + i]);
    search_free(&search);
    EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  }
  free(specs);
  free(right);
  graph_free(&graph);
}

struct numbered {
  double at;
  int64_t number;
};

static int compare(const void *a, const void *b) {
  const double x = ((const struct numbered *)a)->at, y = ((const struct numbered *)b)->at;
  return (x > y) - (x < y);
}

/* Sorts the particles numbered, deals them to the ranks first .. end-1, and so on with both halves. */
static void bisect_serially(const struct point *points, struct numbered *particles, int64_t n, int axis,
                            int first, int end, int *owners) {
  if (end - first == 1) {
    for (int64_t i = 0; i < n; i++)
      owners[particles[i].number] = first;
    return;
  }
  const int half = first + (end - first) / 2;
  const int64_t lower = n * (half - first) / (end - first);
  for (int64_t i = 0; i < n; i++)
    particles[i].at = points[particles[i].number].at[axis];
  qsort(particles, (size_t)n, sizeof *particles, compare);
  bisect_serially(points, particles, lower, (axis + 1) % AXES, first, half, owners);
  bisect_serially(points, particles + lower, n - lower, (axis + 1) % AXES, half, end, owners);
}

static void test_step(int64_t seed) {
  const double length = 0.01;
  test_case("a step, seed %lld", (long long)seed);
  for (int64_t number = 0; number < 1000; number++) {
    const struct point before = particle(seed, number, false, length),
                       after = particle(seed, number, true, length);
    for (int axis = 0; axis < AXES; axis++) {
      const double step = after.at[axis] - before.at[axis];
      EXPECT(step != 0 && step >= -length && step <= length, "particle %lld moves by %g", (long long)number,
             step);
    }
  }
}

static void test_bisection(const struct team *team, int64_t each, int64_t seed) {
  const int64_t n = each * team->procs;
  test_case("%lld particles, seed %lld", (long long)n, (long long)seed);
  struct point *points = test_allocate((size_t)n * sizeof *points);
  struct numbered *particles = test_allocate((size_t)n * sizeof *particles);
  int *right = test_allocate((size_t)n * sizeof *right),
      *owners = test_allocate((size_t)each * sizeof *owners);
  for (int64_t i = 0; i < n; i++) {
    points[i] = particle(seed, i, seed % 2 == 0, 0.05);
    particles[i].number = i;
    for (int axis = 0; axis < AXES; axis++)
      EXPECT(points[i].at[axis] >= 0 && points[i].at[axis] <= 1, "particle %lld is at %g", (long long)i,
             points[i].at[axis]);
  }
  bisect_serially(points, particles, n, 0, 0, team->procs, right);
  bisect(team, each, points + each * team->rank, owners);
  for (int64_t i = 0; i < each; i++)
    EXPECT(owners[i] == right[each * team->rank + i], "particle %lld goes to %d, expected %d",
           (long long)(each * team->rank + i), owners[i], right[each * team->rank + i]);
  free(points);
  free(particles);
  free(right);
  free(owners);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_graphs");
  struct team team;
  team_create(&team);
  test_search(&team, &(struct graph_spec){1, 0, 1, 50, 1});
  test_search(&team, &(struct graph_spec){1, 6, 1, 50, 1});
  test_search(&team, &(struct graph_spec){7, 2, 3, 50, 1}); /* some vertices are out of reach */
  test_search(&team, &(struct graph_spec){1000, 3, 10, 95, 2});
  test_search(&team, &(struct graph_spec){3000, 10, 30, 90, 3});
  test_search(&team, &(struct graph_spec){3000, 10, 1, 0, 4});
  for (int64_t seed = 1; seed <= 4; seed++) {
    test_step(seed);
    test_bisection(&team, 1, seed);
    test_bisection(&team, 300, seed);
  }
  team_free(&team);
  return test_end();
}
