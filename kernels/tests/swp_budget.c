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
static const int COSTS_MS[SIZES] = {1, 4, 25}; /* of an execution, on average */

static struct team team;
static int64_t now_ns;
static int planned; /* the size that was last planned for */
static uint64_t executions;

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

/* Every other execution takes three times as long as the ones between, so that no median is precise. */
int __wrap_swp_collective_execute(swp_plan *plan, const void *send, void *recv) {
  (void)plan, (void)send, (void)recv;
  now_ns += COSTS_MS[planned] * (executions++ / 2 % 2 == 0 ? INT64_C(500000) : INT64_C(1500000));
  return SWP_SUCCESS;
}

/* The samples of each case of the file: of a size, by method. */
static int read_counts(const char *path, int *counts, int most) {
  char *line = NULL;
  size_t room = 0;
  int found = 0;
  FILE *file = fopen(path, "r");
  EXPECT(file != NULL, "%s cannot be read", path);
  while (getline(&line, &room, file) > 0 && found < most) {
    const char *samples = strstr(line, "\"samples_s\": [");
    if (samples == NULL)
      continue;
    counts[found] = 1;
    for (; *samples != ']'; samples++)
      counts[found] += *samples == ',';
    found++;
  }
  free(line);
  fclose(file);
  return found;
}

/* Runs a launch of bcast by some methods; sets the rounds at each size, 0 for the last ones if dropped. */
static void measure(double budget_s, const char *methods, int nmethods, int *rounds) {
  char path[] = "/tmp/swp_budget.XXXXXX";
  int file = mkstemp(path), counts[SIZES * 2];
  struct options options = {.operation = operation_by_name("bcast"),
                            .sizes_bytes = sizes_bytes,
                            .nsizes = SIZES,
                            .races = {{SIZES, methods, MOST_SAMPLES}},
                            .nraces = 1,
                            .out = path,
                            .budget_s = budget_s,
                            .system = "local:cpu",
                            .environment = "default",
                            .sync = "",
                            .yield = "",
                            .quiet = true};
  EXPECT(file >= 0 && unlink(path) == 0, "no file can be made");
  EXPECT_EQUAL(pattern_parse("blocks", &options.pattern), 0);
  EXPECT_EQUAL(run(&team, &options), 0);
  const int measured = read_counts(path, counts, SIZES * 2) / nmethods;
  for (int i = 0; i < SIZES; i++)
    rounds[i] = i < measured ? counts[i * nmethods] : 0;
  close(file);
  unlink(path);
}

/* Of 1.41 s behind the trials each size first needs ten rounds, two of them of warm-up; the others are shared
   evenly. Even shares of all would be 200, 61 and 8 rounds. */
static void sizes_whose_rounds_take_long_get_more_of_a_budget(void) {
  int rounds[SIZES];
  test_case("shares");
  const int64_t begin_ns = now_ns;
  measure(1.5, "vendor binomial", 2, rounds);
  EXPECT(rounds[0] > 150 && rounds[0] < 200, "%d rounds at the cheapest size", rounds[0]);
  EXPECT(rounds[1] > 30 && rounds[1] < 50, "%d rounds at the middle size", rounds[1]);
  EXPECT(rounds[2] > 10 && rounds[2] < 17, "%d rounds at the dearest size", rounds[2]);
  EXPECT(now_ns - begin_ns < INT64_C(1000000) * (LAUNCH_MS + 2 * 2 * COSTS_MS[2]), "it took %lld ns",
         (long long)(now_ns - begin_ns));
}

/* Behind the trials 0.21 s are left, and the rounds that count take 0.02, 0.08 and 0.5 s. */
static void sizes_are_dropped_before_rounds(void) {
  int rounds[SIZES];
  test_case("dropped");
  measure(0.3, "vendor binomial", 2, rounds);
  EXPECT(rounds[0] >= 8, "%d rounds at the cheapest size", rounds[0]);
  EXPECT(rounds[1] >= 8, "%d rounds at the middle size", rounds[1]);
  EXPECT_EQUAL(rounds[2], 0);
}

static void without_a_budget_the_limit_of_samples_ends_a_size(void) {
  int rounds[SIZES];
  test_case("no budget");
  measure(0, "vendor", 1, rounds);
  for (int i = 0; i < SIZES; i++)
    EXPECT_EQUAL(rounds[i], MOST_SAMPLES);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_budget");
  team_create(&team);
  sizes_whose_rounds_take_long_get_more_of_a_budget();
  sizes_are_dropped_before_rounds();
  without_a_budget_the_limit_of_samples_ends_a_size();
  team_free(&team);
  return test_end();
}
