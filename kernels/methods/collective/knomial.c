/*
 * knomial: a tree in which the rank at position p, counted from the root in digits to base `radix`, has the
 * one at p without its last nonzero digit as its parent. binomial is the one of radix 2.
 */
#include "call.h"
#include "textbook.h"

#include <stdio.h>

enum { RADIX = 4 };

static int radix_of(const struct spec *spec) {
  const struct argument *radix = &spec->arguments[0];
  return radix->given ? (int)radix->value : RADIX;
}

static bool knomial_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  static const int worth_trying[] = {3, 4, 8};
  (void)operation;
  if (index >= (int)(sizeof worth_trying / sizeof worth_trying[0]) ||
      (index > 0 && worth_trying[index] > procs))
    return false;
  snprintf(text, length, "knomial:radix=%d", worth_trying[index]);
  return true;
}

static int64_t requests_scratch_bytes(const struct swp_plan *plan) {
  return plan->procs * (int64_t)sizeof(MPI_Request);
}

/* The place of this rank's last nonzero digit; for the root the first beyond the number of ranks. */
static int64_t place_value(const struct swp_plan *plan, int position) {
  int64_t value = 1;
  while (value < plan->procs && position / value % radix_of(&plan->spec) == 0)
    value *= radix_of(&plan->spec);
  return value;
}

static int knomial_bcast(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  MPI_Request *requests = (MPI_Request *)scratch_of(plan);
  int procs = plan->procs, root = plan->features.root, radix = radix_of(&plan->spec), n = 0,
      error = SWP_SUCCESS;
  int position = (plan->rank - root + procs) % procs;
  int64_t value = place_value(plan, position);
  (void)send;
  if (position != 0) {
    int64_t parent = position - position / value % radix * value;
    TRY(swp_receive(plan, recv, side->count, side->type, (int)((parent + root) % procs)));
  }
  for (value /= radix; value > 0; value /= radix)
    for (int64_t child = position + value; child < procs && child < position + radix * value; child += value)
      MPI_TRY(MPI_Isend(recv, side->count, side->type, (int)((child + root) % procs), COLLECTIVE_TAG,
                        plan->comm, &requests[n++]));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

static int knomial_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  *seconds = swp_textbook_knomial_s(&group, (double)plan->features.bytes, radix_of(estimate->spec));
  return SWP_SUCCESS;
}

const struct method swp_collective_knomial = {
    .name = "knomial",
    .summary = "along a tree with radix - 1 children at each level",
    .source = "Wilkins et al., Generalized collective algorithms for the exascale era, CLUSTER 2023",
    .usage = "radix=K (3 to 64; 4 when not given)",
    .parameters = {{.name = "radix", .type = PARAMETER_INTEGER, .low = 3, .high = 64}},
    .variant = knomial_variant,
    .estimate = knomial_estimate,
    .procedures =
        {
            [SWP_BCAST] = {knomial_bcast, requests_scratch_bytes},
        },
};
