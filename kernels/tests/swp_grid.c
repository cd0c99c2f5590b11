/* The virtual process topologies of store-and-forward: sizes, bounds, routes and volumes, without MPI ranks.
 */
#include "grid.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int floor_lg(int number) {
  int lg = 0;
  while (number >> (lg + 1) > 0)
    lg++;
  return lg;
}

static int size_sum(const struct grid *grid) {
  int sum = 0;
  for (int d = 0; d < grid->ndims; d++)
    sum += grid->sizes[d] - 1;
  return sum;
}

static void powers_of_two_are_split_evenly(void) {
  test_case("sizes for powers of two");
  for (int m = 1; m <= 20; m++)
    for (int n = 1; n <= m; n++) {
      struct grid grid;
      EXPECT(swp_grid_choose(1 << m, n, &grid), "no grid of %d dimensions for 2^%d", n, m);
      for (int d = 0; d < n; d++)
        EXPECT_EQUAL(grid.sizes[d], d < m % n ? 2 << (m / n) : 1 << (m / n));
    }
}

static void message_bounds_are_those_of_the_paper(void) {
  static const struct {
    int procs, first;
    int bounds[13]; /* for `first` dimensions and on; 0 ends */
  } rows[] = {{64, 2, {14, 9, 8, 7, 6}},
              {256, 2, {30, 17, 12, 11, 10, 9, 8}},
              {512, 2, {46, 21, 16, 13, 12, 11, 10, 9}},
              {16384, 2, {254, 77, 44, 31, 26, 21, 20}},
              {16384, 14, {14}}};
  test_case("message bounds");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (int k = 0; rows[i].bounds[k] != 0; k++) {
      struct grid grid;
      EXPECT(swp_grid_choose(rows[i].procs, rows[i].first + k, &grid), "no grid");
      EXPECT_EQUAL(size_sum(&grid), rows[i].bounds[k]);
      EXPECT_EQUAL(swp_grid_message_bound(&grid), rows[i].bounds[k]);
    }
}

static void expect_sizes(int procs, int ndims, const char *expected) {
  struct grid grid;
  char text[64] = "none";
  if (swp_grid_choose(procs, ndims, &grid))
    swp_grid_text(&grid, text, sizeof text);
  EXPECT(strcmp(text, expected) == 0, "T_%d of %d processes is %s, expected %s", ndims, procs, text,
         expected);
}

static void other_counts_take_the_least_sum_larger_sizes_first(void) {
  test_case("sizes for other counts");
  expect_sizes(360, 3, "9x8x5");
  expect_sizes(12, 2, "4x3");
  expect_sizes(48, 3, "4x4x3");
  expect_sizes(12, 3, "3x2x2");
  expect_sizes(1, 1, "1");
  expect_sizes(7, 1, "7");
  expect_sizes(12, 4, "none");
  expect_sizes(7, 3, "none");
  expect_sizes(1, 2, "none");
}

/* The least (sum, maximum) over all factorisations into n factors of at least 2, as sum * 2^20 + maximum. */
static long least_score(int procs, int ndims, int most) {
  if (ndims == 1)
    return procs >= 2 && procs <= most ? ((long)procs << 20) + procs : -1;
  long best = -1;
  for (int size = 2; size <= most && size <= procs; size++) {
    long rest = procs % size == 0 ? least_score(procs / size, ndims - 1, size) : -1;
    if (rest < 0)
      continue;
    long score = rest - (rest & 0xfffff) + ((long)size << 20) + size;
    best = best < 0 || score < best ? score : best;
  }
  return best;
}

static void no_factorisation_is_better(void) {
  test_case("all counts up to 600 against brute force");
  for (int procs = 2; procs <= 600; procs++)
    for (int ndims = 1; ndims <= floor_lg(procs); ndims++) {
      struct grid grid;
      bool found = swp_grid_choose(procs, ndims, &grid);
      EXPECT(found, "no grid of %d dimensions for %d processes", ndims, procs);
      long best = least_score(procs, ndims, procs);
      EXPECT(swp_grid_choose_exact(procs, ndims, &grid) == (best >= 0), "%d processes, %d dimensions", procs,
             ndims);
      if (!found || best < 0)
        continue;
      EXPECT(!swp_grid_incomplete(&grid), "an incomplete grid for %d processes, %d dimensions", procs, ndims);
      EXPECT(((long)(size_sum(&grid) + ndims) << 20) + grid.sizes[0] == best, "%d processes, %d dimensions",
             procs, ndims);
    }
}

/* The traffic of a set of messages on a grid: per stage the messages between processes and the
   submessages. */
struct flow {
  int64_t messages[GRID_DIMS], hops[GRID_DIMS];
  int64_t messages_max; /* of one process, over all stages */
};

struct pair {
  int source, destination;
};

static bool is_neighbor(const struct grid *grid, int rank, int stage, int other) {
  int *neighbors = test_allocate(2 * (size_t)grid->sizes[stage - 1] * sizeof *neighbors);
  int count = swp_grid_neighbors(grid, rank, stage, neighbors);
  bool found = false;
  for (int i = 0; i < count; i++)
    found = found || neighbors[i] == other;
  free(neighbors);
  return found;
}

static struct flow follow(const struct grid *grid, const struct pair *pairs, int npairs) {
  struct flow flow = {0};
  size_t procs = (size_t)grid->procs;
  int64_t *sent = test_allocate(procs * sizeof *sent);
  memset(sent, 0, procs * sizeof *sent);
  for (int stage = 1; stage <= grid->ndims; stage++) {
    char *link = test_allocate(procs * procs);
    memset(link, 0, procs * procs);
    for (int i = 0; i < npairs; i++) {
      int from = swp_grid_route(grid, pairs[i].source, pairs[i].destination, stage - 1);
      int to = swp_grid_route(grid, pairs[i].source, pairs[i].destination, stage);
      if (from == to)
        continue;
      flow.hops[stage - 1]++;
      if (!link[(size_t)from * procs + (size_t)to]) {
        flow.messages[stage - 1]++;
        sent[from]++;
        EXPECT(is_neighbor(grid, from, stage, to), "%d is no neighbour of %d in stage %d", to, from, stage);
      }
      link[(size_t)from * procs + (size_t)to] = 1;
    }
    free(link);
  }
  for (size_t rank = 0; rank < procs; rank++)
    flow.messages_max = sent[rank] > flow.messages_max ? sent[rank] : flow.messages_max;
  free(sent);
  return flow;
}

/* Everyone to everyone else. */
static struct pair *complete_exchange(int procs, int *npairs) {
  struct pair *pairs = test_allocate((size_t)procs * (size_t)procs * sizeof *pairs);
  *npairs = 0;
  for (int source = 0; source < procs; source++)
    for (int destination = 0; destination < procs; destination++)
      if (source != destination)
        pairs[(*npairs)++] = (struct pair){source, destination};
  return pairs;
}

static int64_t total(const int64_t *values) {
  int64_t sum = 0;
  for (int i = 0; i < GRID_DIMS; i++)
    sum += values[i];
  return sum;
}

static void complete_exchanges_move_the_volume_of_the_formula(void) {
  test_case("complete exchange volumes");
  static const struct {
    int procs, ndims;
    double against_direct; /* rounded to two decimals; 0: not in the paper */
  } rows[] = {{256, 2, 1.88}, {256, 4, 3.01}, {256, 8, 4.02}, {64, 3, 0}, {12, 2, 0}, {60, 3, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct grid grid;
    int npairs, procs = rows[i].procs;
    EXPECT(swp_grid_choose(procs, rows[i].ndims, &grid), "no grid");
    struct pair *pairs = complete_exchange(procs, &npairs);
    struct flow flow = follow(&grid, pairs, npairs);
    int64_t per_rank = 0;
    for (int d = 0; d < grid.ndims; d++)
      per_rank += (int64_t)(grid.sizes[d] - 1) * procs / grid.sizes[d];
    EXPECT_EQUAL(total(flow.hops), procs * per_rank);
    EXPECT_EQUAL(flow.messages_max, size_sum(&grid));
    char ratio[16], expected[16];
    snprintf(ratio, sizeof ratio, "%.2f", (double)total(flow.hops) / npairs);
    snprintf(expected, sizeof expected, "%.2f", rows[i].against_direct);
    EXPECT(rows[i].against_direct == 0 || strcmp(ratio, expected) == 0, "volume is %s of direct, expected %s",
           ratio, expected);
    free(pairs);
  }
}

static void routes_change_one_coordinate_a_stage(void) {
  test_case("hops are the Hamming distance");
  static const int counts[] = {16, 12, 30, 64, 36};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    for (int ndims = 1; ndims <= floor_lg(counts[i]); ndims++) {
      struct grid grid;
      if (!swp_grid_choose(counts[i], ndims, &grid) || swp_grid_incomplete(&grid))
        continue;
      for (int source = 0; source < counts[i]; source++)
        for (int destination = 0; destination < counts[i]; destination++) {
          int distance = 0;
          for (int d = 0, s = source, t = destination; d < ndims; s /= grid.sizes[d], t /= grid.sizes[d], d++)
            distance += s % grid.sizes[d] != t % grid.sizes[d];
          struct pair pair = {source, destination};
          struct flow flow = follow(&grid, &pair, 1);
          EXPECT_EQUAL(total(flow.hops), distance);
          EXPECT_EQUAL(swp_grid_route(&grid, source, destination, ndims), destination);
        }
    }
}

static void incomplete_grids_deliver_within_their_bound(void) {
  static const int primes[] = {2, 3, 5, 7, 11, 13, 23, 31, 61};
  for (size_t i = 0; i < sizeof primes / sizeof primes[0]; i++)
    for (int ndims = 1; ndims <= floor_lg(primes[i]); ndims++) {
      struct grid grid;
      int npairs, procs = primes[i];
      test_case("T_%d of %d processes", ndims, procs);
      EXPECT(swp_grid_choose(procs, ndims, &grid), "no grid");
      EXPECT(swp_grid_incomplete(&grid) == (ndims > 1), "completeness");
      EXPECT_EQUAL(grid.ndims, ndims);
      struct pair *pairs = complete_exchange(procs, &npairs);
      struct flow flow = follow(&grid, pairs, npairs);
      for (int k = 0; k < npairs; k++)
        EXPECT_EQUAL(swp_grid_route(&grid, pairs[k].source, pairs[k].destination, ndims),
                     pairs[k].destination);
      EXPECT(flow.messages_max <= swp_grid_message_bound(&grid), "%d messages, bound %d",
             (int)flow.messages_max, (int)swp_grid_message_bound(&grid));
      free(pairs);
    }
}

/* P⟨high, mid, low⟩ of T_3(4, 4, 4), coordinates from 1 as the paper writes them. */
static int paper_rank(int high, int mid, int low) {
  return (low - 1) + 4 * (mid - 1) + 16 * (high - 1);
}

static void figure_4_of_the_paper(void) {
  test_case("figure 4");
  int a = paper_rank(2, 2, 1), b = paper_rank(2, 1, 4), g = paper_rank(2, 2, 3);
  int c = paper_rank(1, 2, 3), d = paper_rank(3, 2, 3), e = paper_rank(2, 4, 3), f = paper_rank(4, 1, 3);
  const struct pair pairs[] = {{a, c}, {a, d}, {a, e}, {b, c}, {b, d}, {b, f}};
  static const int64_t messages[] = {2, 2, 3}, hops[] = {6, 3, 5};
  struct grid grid;
  EXPECT(swp_grid_choose(64, 3, &grid), "no grid");
  struct flow flow = follow(&grid, pairs, 6);
  for (int stage = 0; stage < 3; stage++) {
    EXPECT_EQUAL(flow.messages[stage], messages[stage]);
    EXPECT_EQUAL(flow.hops[stage], hops[stage]);
  }
  EXPECT_EQUAL(swp_grid_route(&grid, a, c, 2), g);
  EXPECT_EQUAL(swp_grid_route(&grid, b, c, 2), g);
}

static void impossible_sizes_are_refused(void) {
  test_case("sizes given by the caller");
  static const struct {
    int procs, ndims, sizes[3];
    bool good;
  } rows[] = {{12, 2, {4, 3}, true},   {12, 2, {3, 4}, true},  {12, 3, {2, 3, 2}, true},
              {12, 2, {4, 2}, false},  {12, 2, {4, 4}, false}, {5, 2, {3, 2}, true},
              {5, 2, {2, 3}, true},    {1, 1, {1}, true},      {7, 1, {8}, false},
              {12, 2, {0, 12}, false}, {6, 2, {6, 2}, false},  {12, 3, {12, 1, 1}, true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct grid grid;
    EXPECT(swp_grid_from_sizes(rows[i].procs, rows[i].ndims, rows[i].sizes, &grid) == rows[i].good, "row %d",
           (int)i);
  }
}

static void no_process_has_more_neighbours(void) {
  test_case("most neighbours");
  for (int code = 0; code < 64; code++)
    for (int procs = 1; procs <= 64; procs++) {
      const int sizes[] = {1 + code % 4, 1 + code / 4 % 4, 1 + code / 16};
      struct grid grid;
      int neighbors[8];
      if (!swp_grid_from_sizes(procs, 3, sizes, &grid))
        continue;
      for (int stage = 1; stage <= 3; stage++) {
        int most = 0;
        for (int rank = 0; rank < procs; rank++) {
          const int count = swp_grid_neighbors(&grid, rank, stage, neighbors);
          most = count > most ? count : most;
        }
        EXPECT_EQUAL(swp_grid_most_neighbors(&grid, stage), most);
      }
    }
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_grid");
  powers_of_two_are_split_evenly();
  message_bounds_are_those_of_the_paper();
  other_counts_take_the_least_sum_larger_sizes_first();
  no_factorisation_is_better();
  complete_exchanges_move_the_volume_of_the_formula();
  routes_change_one_coordinate_a_stage();
  incomplete_grids_deliver_within_their_bound();
  figure_4_of_the_paper();
  impossible_sizes_are_refused();
  no_process_has_more_neighbours();
  return test_end();
}
