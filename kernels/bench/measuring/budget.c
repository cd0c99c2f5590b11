#include "budget.h"

#include "clock.h"
#include "measure.h"

#include <math.h>
#include <stdlib.h>

enum { TRIAL_ROUNDS = 3 };

/* Slightly more than a launch needs to count (tuner/stats.py, MIN_SAMPLES), as no size costs exactly what is
   foreseen. */
enum { NEEDED_SAMPLES = 8 };

/* One in so many parts of the time is for trials, but for the first, which connects ranks. Each takes less
   than its size, so all fit where all sizes do. */
enum { TRIALS_PART = 2 };

/* The least time of a round of the first applicable method; 0: none is applicable. The first rounds of a
   launch, and of a size, connect ranks. */
static int try_size(struct session *session, int64_t size_bytes, double *round_ns) {
  struct workload workload;
  struct contender contender = {0};
  int count, status = session_workload(session, size_bytes, &workload);
  for (int m = 0; status == 0 && !contender.plan && m < session->nmethods; m++)
    status = contenders_plan(&workload, &session->methods[m], 1, &contender, &count);
  struct block block = {.team = session->team,
                        .sync = &session->launch.sync,
                        .workload = &workload,
                        .contenders = &contender,
                        .filler = session->filler,
                        .stagger_ns = (int64_t)(1e9 * session->options->arrival_s),
                        .count = 1};
  *round_ns = status == 0 && contender.plan ? (double)block_try(&block, TRIAL_ROUNDS) : 0;
  contenders_free(&contender, 1);
  workload_free(&workload);
  return status;
}

/* The size after a given one by increasing bytes; -1: the least, or none. */
static int next_larger(const struct options *options, int index) {
  const int64_t *bytes = options->sizes_bytes;
  int next = -1;
  for (int i = 0; i < options->nsizes; i++) {
    const bool is_after = index < 0 || bytes[i] > bytes[index] || (bytes[i] == bytes[index] && i > index);
    if (is_after && (next < 0 || bytes[i] < bytes[next]))
      next = i;
  }
  return next;
}

static const struct size_race *race_of(const struct options *options, int index) {
  const struct size_race *race = options->races;
  for (; index >= race->nsizes; race++)
    index -= race->nsizes;
  return race;
}

struct trial {
  double bytes; /* 0: of none */
  double round_ns;
};

/* Tries a size, if there is time for it where rounds take longer than those of the last one by as much as it
   is larger; that is foreseen of a size that is not tried. */
static int try_in_time(struct session *session, struct budget *budget, int index, struct trial *last) {
  const int64_t size_bytes = session->options->sizes_bytes[index];
  double *round_ns = &budget->needs[index].round_ns;
  *round_ns = last->bytes > 0 ? last->round_ns * fmax(2, (double)size_bytes / last->bytes) : 0;
  int over = *round_ns * TRIAL_ROUNDS > (double)(budget->trials_end_ns - clock_ns());
  team_bcast(session->team, &over, 1, MPI_INT);
  const int status = over ? 0 : try_size(session, size_bytes, round_ns);
  if (last->bytes == 0)
    budget->trials_end_ns -= (budget->end_ns - clock_ns()) / TRIALS_PART;
  *last = (struct trial){.bytes = fmax(1, (double)size_bytes), .round_ns = *round_ns};
  return status;
}

/* Foresees what each size needs, by increasing size, so that a trial that takes long is one of the last. */
static int foresee(struct session *session, struct budget *budget) {
  const struct options *options = session->options;
  const struct size_race *entered = NULL;
  struct trial last = {0};
  int status = 0;
  for (int i = next_larger(options, -1); status == 0 && i >= 0; i = next_larger(options, i)) {
    const struct size_race *race = race_of(options, i);
    if (race != entered)
      status = team_agree(session->team, session_enter(session, race));
    entered = race;
    budget->needs[i].methods = session->nmethods;
    budget->needs[i].rounds =
        WARM_UPS + (race->repeats < NEEDED_SAMPLES ? (int)race->repeats : NEEDED_SAMPLES);
    if (status == 0 && budget->nsizes > 1 && !SWP_SIMULATED &&
        session_is_possible(session, options->sizes_bytes[i]))
      status = try_in_time(session, budget, i, &last);
  }
  return status;
}

int budget_prepare(struct session *session, struct budget *budget) {
  const struct options *options = session->options;
  const bool limited = options->budget_s > 0;
  *budget = (struct budget){
      .end_ns = limited ? session->launch.begin_ns + (int64_t)(options->budget_s * 1e9) : INT64_MAX,
      .needs = allocate_zeros((size_t)options->nsizes * sizeof *budget->needs),
      .nsizes = options->nsizes,
      .applicable = 1,
      .ratio = 1,
  };
  budget->trials_end_ns = budget->end_ns;
  return limited ? foresee(session, budget) : 0;
}

void budget_free(struct budget *budget) {
  free(budget->needs);
}

void budget_begin(struct budget *budget) {
  budget->begin_ns = clock_ns();
}

/* The rounds that a size needs. */
static double rounds_ns(const struct budget *budget, int index) {
  const struct need *need = &budget->needs[index];
  return need->round_ns * need->methods * need->rounds * budget->applicable * budget->ratio;
}

/* The n-th of 2^bits places in the order 0, 4, 2, 6, 1, 5, 3, 7, of which any beginning is spread over all.
 */
static int spread(int n, int bits) {
  int place = 0;
  for (int i = 0; i < bits; i++)
    place |= (n >> i & 1) << (bits - 1 - i);
  return place;
}

/* The sizes that fit into the time. */
struct fit {
  int count;
  bool has_first;
  double spare_ns; /* that they leave */
};

/* Fits the sizes from a given one on into the time, evenly over the range. */
static struct fit fit_sizes(const struct budget *budget, int first, double left_ns) {
  struct fit fit = {.spare_ns = left_ns};
  int bits = 0;
  while (1 << bits < budget->nsizes)
    bits++;
  for (int n = 0; n < 1 << bits; n++) {
    const int size = spread(n, bits);
    if (size < first || size >= budget->nsizes)
      continue;
    const double needed_ns = rounds_ns(budget, size) + budget->overhead_ns * budget->needs[size].methods;
    if (needed_ns > fit.spare_ns)
      continue;
    fit.count++;
    fit.has_first |= size == first;
    fit.spare_ns -= needed_ns;
  }
  return fit;
}

bool budget_keeps(const struct budget *budget, int index) {
  return index == 0 || fit_sizes(budget, index, (double)(budget->end_ns - clock_ns())).has_first;
}

int64_t budget_deadline_ns(struct budget *budget, int index, int methods) {
  if (budget->end_ns == INT64_MAX)
    return INT64_MAX;
  const int64_t now = clock_ns();
  budget->overhead_ns = (double)(now - budget->begin_ns) / budget->needs[index].methods;
  budget->applicable = (double)methods / budget->needs[index].methods;
  budget->begin_ns = now;
  const double left_ns = (double)(budget->end_ns - now), own_ns = fmin(rounds_ns(budget, index), left_ns);
  const struct fit others = fit_sizes(budget, index + 1, left_ns - own_ns);
  return now + (int64_t)(own_ns + others.spare_ns / (others.count + 1));
}

void budget_spent(struct budget *budget, int index, int samples) {
  const struct need *need = &budget->needs[index];
  const double round_ns = (double)(clock_ns() - budget->begin_ns) / (samples + WARM_UPS);
  if (need->round_ns > 0)
    budget->ratio = round_ns / (need->round_ns * need->methods * budget->applicable);
}
