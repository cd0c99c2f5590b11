/*
 * The clocks of several machines, against the truth. By --wrap a rank's clock is a line of the test's over
 * one true time, which all ranks know, and which the test can let pass at once.
 */
#include "clock.h"
#include "commands.h"
#include "overlap.h"
#include "testing.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

int64_t __wrap_clock_ns(void);
int64_t __wrap_clock_wait(int64_t until_ns, bool yields);
void __real_clocks_learn(struct clocks *clocks);
void __wrap_clocks_learn(struct clocks *clocks);

static const double DRIFTS[] = {2e-6, -4e-5, 5e-5, 1e-5}; /* of machines, in turn */
static const double WORST_DRIFT = 1e-4;                   /* between two of them */
static const int64_t HOUR_NS = INT64_C(3600000000000), LONG_NS = INT64_C(1000000000000);

static struct team team;
static int machine;
static int64_t passed_ns, stepped_ns; /* of true time; by this machine's clock */
static int64_t step_ns;               /* that clocks make behind their back, after they have learned */
static int learned;                   /* how often clocks were compared */

static int64_t true_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + passed_ns;
}

/* The time that the clock of a machine shows. */
static int64_t shown_ns(int of, int64_t time_ns) {
  return time_ns + (of * 7 - 3) * HOUR_NS + llround(DRIFTS[of % 4] * (double)time_ns);
}

/* The true time at which this rank's clock shows the one given. */
static double true_time_of(int64_t own_ns) {
  return (double)(own_ns - stepped_ns - (machine * 7 - 3) * HOUR_NS) / (1 + DRIFTS[machine % 4]);
}

int64_t __wrap_clock_ns(void) {
  return shown_ns(machine, true_ns()) + stepped_ns;
}

int64_t __wrap_clock_wait(int64_t until_ns, bool yields) {
  int64_t now;
  while ((now = __wrap_clock_ns()) < until_ns)
    if (yields)
      sched_yield();
  return now;
}

void __wrap_clocks_learn(struct clocks *clocks) {
  __real_clocks_learn(clocks);
  learned++;
  stepped_ns += machine > 0 ? step_ns : 0;
}

static void let_pass(int64_t ns) {
  sync_barrier(&team);
  passed_ns += ns;
  sync_barrier(&team);
}

/* Two ranks on a machine, or one where there are few. */
static void divide(void) {
  int rank_here, first;
  machine = team.procs > 3 ? team.rank / 2 : team.rank;
  team.machines = (team.procs > 3 ? (team.procs + 1) / 2 : team.procs);
  if (team.machines == 1)
    return;
  MPI_Comm_split(team.comm, machine, team.rank, &team.machine);
  MPI_Comm_rank(team.machine, &rank_here);
  first = rank_here == 0 ? 0 : MPI_UNDEFINED;
  MPI_Comm_split(team.comm, first, team.rank, &team.leaders);
}

/* Ahead by a line, read with all the error that half a round trip leaves, on either side in turn. */
static void a_line_is_found_in_readings_over_a_long_time_only(void) {
  test_case("lines");
  struct clock_reading readings[CLOCK_READINGS];
  for (int i = 0; i < CLOCK_READINGS; i++)
    readings[i] = (struct clock_reading){5 * HOUR_NS + i * (HOUR_NS / 100),
                                         -HOUR_NS + i * (HOUR_NS / 5000000) + (i % 2 ? 9000 : -9000), 18000};
  struct clock_line line = clock_line_fit(readings, CLOCK_READINGS, CLOCK_READINGS - 1);
  EXPECT(fabs(line.drift - 2e-5) < 1e-7, "drift %g", line.drift);
  EXPECT_EQUAL(clock_line_at(&line, readings[CLOCK_READINGS - 1].own_ns),
               readings[CLOCK_READINGS - 1].ahead_ns);
  for (int i = 0; i < CLOCK_READINGS; i++)
    readings[i] = (struct clock_reading){i * INT64_C(100000), i < CLOCK_READINGS / 2 ? 9000 : -9000, 18000};
  line = clock_line_fit(readings, CLOCK_READINGS, CLOCK_READINGS - 1);
  EXPECT(fabs(line.drift) < 1e-6, "drift %g in 3 ms by errors of 9 us", line.drift);
  line = clock_line_fit(readings, 1, 0);
  EXPECT(line.drift == 0, "drift %g of one reading", line.drift);
}

static void common_and_own_time_are_inverse(void) {
  test_case("inverse");
  struct clocks clocks = clocks_create(&team);
  EXPECT_EQUAL(clocks_common(&clocks, INT64_MAX / 2), INT64_MAX / 2);
  EXPECT_EQUAL(clocks_own(&clocks, INT64_MAX / 2), INT64_MAX / 2);
  clocks.line = (struct clock_line){3 * HOUR_NS, -2 * HOUR_NS, -4e-5};
  for (int64_t own = 2 * HOUR_NS; own < 5 * HOUR_NS; own += HOUR_NS / 7)
    EXPECT(llabs(clocks_own(&clocks, clocks_common(&clocks, own)) - own) <= 1, "%lld becomes %lld",
           (long long)own, (long long)clocks_own(&clocks, clocks_common(&clocks, own)));
}

/* The error of this rank's common time at an instant. */
static double error_s(const struct clocks *clocks, int64_t time_ns) {
  const int64_t common = clocks_common(clocks, shown_ns(machine, time_ns) + stepped_ns);
  return fabs((double)(common - shown_ns(0, time_ns)) * 1e-9);
}

/* The bound of a check, plus its possible change between `since` and now. */
static double bound_s(const struct clocks *clocks, int64_t since_ns) {
  const struct clock_check check = clocks_check(clocks);
  return check.error_s + WORST_DRIFT * (double)(true_ns() - since_ns) * 1e-9 + 1e-8;
}

static void offsets_are_known_as_well_as_the_check_says(void) {
  test_case("offsets");
  struct clocks clocks = clocks_create(&team);
  clocks_learn(&clocks);
  const int64_t now = true_ns();
  const double bound = bound_s(&clocks, now), error = error_s(&clocks, now);
  EXPECT(error <= bound, "off by %g s, said %g s", error, bound);
  EXPECT(bound < 1, "known to %g s of hours", bound);
}

/* In 1000 s without synchronisation, these clocks drift apart by up to 90 ms. */
static void drifts_are_known_after_some_time(void) {
  test_case("drifts");
  struct clocks clocks = clocks_create(&team);
  for (int i = 0; i < 6; i++) {
    clocks_learn(&clocks);
    let_pass(LONG_NS);
  }
  const int64_t now = true_ns();
  const double bound = bound_s(&clocks, now), error = error_s(&clocks, now);
  EXPECT(error <= bound, "off by %g s, said %g s", error, bound);
  EXPECT(error < 0.01, "off by %g s", error);
}

static void starts_are_together_in_true_time(void) {
  test_case("starts");
  struct sync sync = sync_create(&team, "hca");
  EXPECT(sync.scheme == sync_find("hca"), "%s is chosen, expected hca", sync.scheme->name);
  for (int i = 0; i < 20; i++) {
    sync_prepare(&sync);
    const int64_t since = true_ns();
    const double origin = true_time_of(sync.scheme->start(&sync).origin_ns);
    const double bound = bound_s(&sync.clocks, since);
    double ends[] = {origin, -origin};
    team_allreduce(&team, ends, 2, MPI_DOUBLE, MPI_MAX);
    EXPECT((ends[0] + ends[1]) * 1e-9 <= 2 * bound, "starts are %g s apart, said %g s",
           (ends[0] + ends[1]) * 1e-9, 2 * bound);
  }
}

/* Clocks that step after they have been compared are found out before anything is measured. */
static void clocks_that_do_not_agree_are_not_used(void) {
  test_case("steps");
  struct sync steady = sync_create(&team, "");
  const char *usual = team.machines == 1 ? "window" : steady.falls_back ? "barrier" : "hca";
  EXPECT(steady.scheme == sync_find(usual), "%s is chosen, expected %s", steady.scheme->name, usual);
  step_ns = 1000000000;
  struct sync stepped = sync_create(&team, "");
  EXPECT(stepped.scheme == sync_find(team.machines == 1 ? "window" : "barrier"), "%s is chosen",
         stepped.scheme->name);
  EXPECT(stepped.falls_back == (team.machines > 1), "falls back: %d", stepped.falls_back);
  EXPECT(team.machines == 1 || stepped.check.error_s > 0.5, "off by %g s", stepped.check.error_s);
  step_ns = 0;
}

/* When a launch begins, and its block, and before round 10. */
static void clocks_are_compared_again_while_a_size_is_measured(void) {
  static int64_t size_bytes = 8;
  enum { SAMPLES = 20, COMPARED = 3 };
  struct options options = {.operation = operation_by_name("bcast"),
                            .sizes_bytes = &size_bytes,
                            .nsizes = 1,
                            .races = {{1, "vendor", SAMPLES}},
                            .nraces = 1,
                            .methods = "bulk",
                            .max_samples = SAMPLES,
                            .out = "/dev/null",
                            .system = "local:cpu",
                            .environment = "default",
                            .sync = "",
                            .yield = "",
                            .quiet = true};
  test_case("long sizes");
  EXPECT_EQUAL(pattern_parse("blocks", &options.pattern), 0);
  learned = 0;
  EXPECT_EQUAL(run(&team, &options), 0);
  EXPECT_EQUAL(learned, COMPARED);
  test_case("overlap");
  learned = 0;
  EXPECT_EQUAL(overlap(&team, &options, "spmv:rows=4,nonzeros=3", "0"), 0);
  EXPECT_EQUAL(learned, COMPARED);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_clocks");
  team_create(&team);
  divide();
  a_line_is_found_in_readings_over_a_long_time_only();
  common_and_own_time_are_inverse();
  offsets_are_known_as_well_as_the_check_says();
  drifts_are_known_after_some_time();
  starts_are_together_in_true_time();
  clocks_that_do_not_agree_are_not_used();
  clocks_are_compared_again_while_a_size_is_measured();
  team_free(&team);
  return test_end();
}
