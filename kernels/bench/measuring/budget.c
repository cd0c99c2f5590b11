#include "budget.h"

#include "clock.h"
#include "measure.h"

#include <stdlib.h>

enum { TRIAL_ROUNDS = 3 };

/* Slightly more than a launch needs to count (tuner/stats.py, MIN_SAMPLES), as no size costs exactly what is
   foreseen. */
enum { NEEDED_ROUNDS = 8 + WARM_UPS };

/* The least time of a round of the first applicable method; 0: none is applicable. The first rounds of a
   launch, and of a size, connect ranks. */
static int try_size(struct session *session, int64_t size_bytes, int64_t *round_ns) {
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
  *round_ns = status == 0 && contender.plan ? block_try(&block, TRIAL_ROUNDS) : 0;
  contenders_free(&contender, 1);
  workload_free(&workload);
  return status;
}

int budget_prepare(struct session *session, struct budget *budget) {
  const struct options *options = session->options;
  const bool limited = options->budget_s > 0;
  *budget = (struct budget){
      .end_ns = limited ? session->launch.begin_ns + (int64_t)(options->budget_s * 1e9) : INT64_MAX,
      .round_ns = allocate_zeros((size_t)options->nsizes * sizeof *budget->round_ns),
      .nsizes = options->nsizes,
  };
  if (!limited || options->nsizes == 1 || SWP_SIMULATED) /* if one sample of each is enough */
    return 0;
  for (int i = 0; i < options->nsizes; i++) {
    int over = clock_ns() > budget->end_ns;
    team_bcast(session->team, &over, 1, MPI_INT);
    if (over) /* only the first size is measured */
      return 0;
    if (session_is_possible(session, options->sizes_bytes[i]) &&
        try_size(session, options->sizes_bytes[i], &budget->round_ns[i]))
      return -1;
  }
  return 0;
}

void budget_free(struct budget *budget) {
  free(budget->round_ns);
}

void budget_begin(struct budget *budget) {
  budget->begin_ns = clock_ns();
}

/* The rounds that a size needs. */
static double rounds_ns(const struct budget *budget, int index) {
  return NEEDED_ROUNDS * budget->methods * (double)budget->round_ns[index];
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
    const double needed_ns = rounds_ns(budget, size) + (double)budget->overhead_ns;
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
  budget->overhead_ns = now - budget->begin_ns;
  budget->begin_ns = now;
  if (budget->methods == 0)
    budget->methods = methods;
  const double own_ns = rounds_ns(budget, index);
  const struct fit others = fit_sizes(budget, index + 1, (double)(budget->end_ns - now) - own_ns);
  return now + (int64_t)(own_ns + others.spare_ns / (others.count + 1));
}

void budget_spent(struct budget *budget, int index, int samples) {
  const double round_ns = (double)(clock_ns() - budget->begin_ns) / (samples + WARM_UPS);
  if (budget->round_ns[index] > 0)
    budget->methods = round_ns / (double)budget->round_ns[index];
}
