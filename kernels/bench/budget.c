#include "budget.h"

#include "clock.h"
#include "measure.h"

#include <stdlib.h>

enum { TRIAL_ROUNDS = 3 };

/* What a round of the first method that is applicable takes at least; 0: none is. The first rounds of a
   launch, and of a size, connect ranks. */
static int try_size(struct session *session, int64_t size_bytes, int64_t *round_ns) {
  struct workload workload;
  struct contender contender = {0};
  int count, status = session_workload(session, size_bytes, &workload);
  for (int m = 0; status == 0 && !contender.plan && m < session->nmethods; m++)
    status = contenders_plan(&workload, &session->methods[m], 1, &contender, &count);
  struct block block = {.team = session->team,
                        .sync = &session->sync,
                        .workload = &workload,
                        .contenders = &contender,
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
      .end_ns = limited ? session->begin_ns + (int64_t)(options->budget_s * 1e9) : INT64_MAX,
      .round_ns = allocate_zeros((size_t)options->nsizes * sizeof *budget->round_ns),
      .nsizes = options->nsizes,
  };
  if (!limited || options->nsizes == 1 || SWP_SIMULATED) /* where a sample of each is enough */
    return 0;
  for (int i = 0; i < options->nsizes; i++)
    if (session_is_possible(session, options->sizes_bytes[i]) &&
        try_size(session, options->sizes_bytes[i], &budget->round_ns[i]))
      return -1;
  return 0;
}

void budget_free(struct budget *budget) {
  free(budget->round_ns);
}

int64_t budget_deadline_ns(const struct budget *budget, int index) {
  if (budget->end_ns == INT64_MAX)
    return INT64_MAX;
  const int64_t now = clock_ns();
  const double even = 1.0 / (budget->nsizes - index);
  int64_t sum = 0;
  for (int i = index; i < budget->nsizes; i++)
    sum += budget->round_ns[i];
  const double by_cost = sum > 0 ? (double)budget->round_ns[index] / (double)sum : even;
  const double share = (even + by_cost) / 2;
  return now + (int64_t)(share * (double)(budget->end_ns - now));
}
