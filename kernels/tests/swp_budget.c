/*
 * How sizes share the time limit of a launch. By --wrap the clock is one of the test's, which goes on where
 * an execution ends, by as much as its size costs, and by little where it is read.
 */
#include "clock.h"
#include "commands.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t __wrap_clock_ns(void);
int64_t __wrap_clock_wait(int64_t until_ns, bool yields);
int64_t __wrap_clock_tick_ns(void);
int __real_swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                               const struct swp_hints *hints, swp_plan **plan);
int __wrap_swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                               const struct swp_hints *hints, swp_plan **plan);
int __wrap_swp_collective_execute(swp_plan *plan, const void *send, void *recv);

enum { READING_NS = 10, LAUNCH_MS = 1500, SIZES = 3, MOST_SAMPLES = 200 };

static int64_t sizes_bytes[SIZES] = {8, 64, 512};

/* Of an execution. */
static struct costs {
  int sizes_ms[SIZES];
  bool vary;         /* every other execution takes three times as long as the ones between, so that no median
                        is precise; these are the means */
  const char *cheap; /* a method of a tenth of these, or NULL */
} costs;

static struct team team;
static int64_t now_ns;
static int planned; /* the size that was last planned for */
static uint64_t executions;
static int by_vendor[SIZES]; /* executions */

int64_t __wrap_clock_ns(void) {
  return now_ns += READING_NS;
}

int64_t __wrap_clock_wait(int64_t until_ns, bool yields) {
  (void)yields;
  return now_ns = until_ns > now_ns ? until_ns : now_ns;
}

int64_t __wrap_clock_tick_ns(void) {
  return READING_NS;
}

int __wrap_swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                               const struct swp_hints *hints, swp_plan **plan) {
  for (int i = 0; i < SIZES; i++)
    planned = problem->recv_count == sizes_bytes[i] ? i : planned;
  return __real_swp_collective_plan(comm, problem, method, hints, plan);
}

int __wrap_swp_collective_execute(swp_plan *plan, const void *send, void *recv) {
  (void)send, (void)recv;
  const char *method = swp_plan_method(plan);
  const int64_t per_ms = !costs.vary ? 1000000 : executions++ / 2 % 2 == 0 ? 500000 : 1500000;
  now_ns += costs.sizes_ms[planned] * per_ms / (costs.cheap && strcmp(method, costs.cheap) == 0 ? 10 : 1);
  by_vendor[planned] += strcmp(method, "vendor") == 0;
  return SWP_SUCCESS;
}

/* Sets the samples at each size in the file, 0 where there is no case. */
static void read_rounds(const char *path, int *rounds) {
  char *line = NULL;
  size_t room = 0;
  FILE *file = fopen(path, "r");
  EXPECT(file != NULL, "%s cannot be read", path);
  memset(rounds, 0, SIZES * sizeof *rounds);
  while (getline(&line, &room, file) > 0) {
    const char *size = strstr(line, "\"size_bytes\": "), *samples = strstr(line, "\"samples_s\": [");
    for (int i = 0; samples != NULL && i < SIZES; i++)
      if (atoll(strchr(size, ' ')) == sizes_bytes[i])
        for (rounds[i] = 1; *samples != ']'; samples++)
          rounds[i] += *samples == ',';
  }
  free(line);
  fclose(file);
}

/* Runs a launch of bcast, and sets the rounds at each size, 0 where it is dropped. */
static void measure(double budget_s, int nraces, const struct size_race *races, int *rounds) {
  char path[] = "/tmp/swp_budget.XXXXXX";
  int file = mkstemp(path);
  struct options options = {.operation = operation_by_name("bcast"),
                            .sizes_bytes = sizes_bytes,
                            .nsizes = SIZES,
                            .nraces = nraces,
                            .out = path,
                            .budget_s = budget_s,
                            .system = "local:cpu",
                            .environment = "default",
                            .sync = "",
                            .yield = "",
                            .quiet = true};
  memcpy(options.races, races, (size_t)nraces * sizeof *races);
  EXPECT(file >= 0 && unlink(path) == 0, "no file can be made");
  EXPECT_EQUAL(pattern_parse("blocks", &options.pattern), 0);
  EXPECT_EQUAL(run(&team, &options), 0);
  read_rounds(path, rounds);
  close(file);
  unlink(path);
}

static const struct size_race two_methods = {SIZES, "vendor binomial", MOST_SAMPLES};
static const struct costs varying = {.sizes_ms = {1, 4, 25}, .vary = true};

/* Of 1.41 s behind the trials each size first needs ten rounds, two of them of warm-up; the others are shared
   evenly. Even shares of all would be 200, 61 and 8 rounds. */
static void sizes_whose_rounds_take_long_get_more_of_a_budget(void) {
  int rounds[SIZES];
  test_case("shares");
  costs = varying;
  const int64_t begin_ns = now_ns;
  measure(1.5, 1, &two_methods, rounds);
  EXPECT(rounds[0] > 150 && rounds[0] < 200, "%d rounds at the cheapest size", rounds[0]);
  EXPECT(rounds[1] > 30 && rounds[1] < 50, "%d rounds at the middle size", rounds[1]);
  EXPECT(rounds[2] > 10 && rounds[2] < 17, "%d rounds at the dearest size", rounds[2]);
  EXPECT(now_ns - begin_ns < INT64_C(1000000) * (LAUNCH_MS + 2 * 2 * costs.sizes_ms[2]), "it took %lld ns",
         (long long)(now_ns - begin_ns));
}

/* Behind the trials 0.21 s are left, and the rounds that count take 0.02, 0.08 and 0.5 s. */
static void sizes_are_dropped_before_rounds(void) {
  int rounds[SIZES];
  test_case("dropped");
  costs = varying;
  measure(0.3, 1, &two_methods, rounds);
  EXPECT(rounds[0] >= 8, "%d rounds at the cheapest size", rounds[0]);
  EXPECT(rounds[1] >= 8, "%d rounds at the middle size", rounds[1]);
  EXPECT_EQUAL(rounds[2], 0);
}

static void without_a_budget_the_limit_of_samples_ends_a_size(void) {
  int rounds[SIZES];
  test_case("no budget");
  costs = varying;
  measure(0, 1, &two_methods, rounds);
  for (int i = 0; i < SIZES; i++)
    EXPECT_EQUAL(rounds[i], MOST_SAMPLES);
}

/* Behind the trials 0.38 s are left. If both methods cost the same, the larger sizes need 0.48 s, but the
   smallest one shows that they need 0.26 s. */
static void a_size_that_fits_when_its_turn_comes_is_measured(void) {
  int rounds[SIZES];
  test_case("fits later");
  costs = (struct costs){.sizes_ms = {1, 8, 16}, .cheap = "binomial"};
  measure(0.46, 1, &two_methods, rounds);
  EXPECT(rounds[1] >= 8, "%d rounds at the middle size", rounds[1]);
  EXPECT(rounds[2] >= 8, "%d rounds at the last size", rounds[2]);
}

/* Four methods would take a second at the dearest size. */
static void each_race_needs_the_time_of_its_own_methods(void) {
  static const struct size_race races[] = {
      {SIZES - 1, "vendor binomial knomial:radix=3 knomial:radix=5", MOST_SAMPLES},
      {1, "binomial", MOST_SAMPLES}};
  int rounds[SIZES];
  test_case("races");
  costs = (struct costs){.sizes_ms = {1, 4, 25}};
  memset(by_vendor, 0, sizeof by_vendor);
  measure(0.8, 2, races, rounds);
  EXPECT(rounds[1] >= 8, "%d rounds at the middle size", rounds[1]);
  EXPECT(rounds[2] >= 8, "%d rounds at the dearest size", rounds[2]);
  EXPECT_EQUAL(by_vendor[2], 0);
}

/* Those of all sizes would take 0.39 s of 0.4 s. */
static void trials_leave_time_for_rounds(void) {
  int rounds[SIZES];
  test_case("trials");
  costs = (struct costs){.sizes_ms = {10, 40, 80}};
  measure(0.4, 1, &(struct size_race){SIZES, "vendor", MOST_SAMPLES}, rounds);
  EXPECT(rounds[0] >= 8, "%d rounds at the cheapest size", rounds[0]);
  EXPECT_EQUAL(rounds[1], 0);
  EXPECT_EQUAL(rounds[2], 0);
}

/* Behind the trials 0.16 s are left, and ten rounds at the dearest size take 0.25 s. */
static void sizes_have_time_for_no_more_rounds_than_are_wanted(void) {
  int rounds[SIZES];
  test_case("one sample");
  costs = (struct costs){.sizes_ms = {1, 4, 25}};
  measure(0.25, 1, &(struct size_race){SIZES, "vendor", 1}, rounds);
  for (int i = 0; i < SIZES; i++)
    EXPECT_EQUAL(rounds[i], 1);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_budget");
  team_create(&team);
  sizes_whose_rounds_take_long_get_more_of_a_budget();
  sizes_are_dropped_before_rounds();
  without_a_budget_the_limit_of_samples_ends_a_size();
  a_size_that_fits_when_its_turn_comes_is_measured();
  each_race_needs_the_time_of_its_own_methods();
  trials_leave_time_for_rounds();
  sizes_have_time_for_no_more_rounds_than_are_wanted();
  team_free(&team);
  return test_end();
}
