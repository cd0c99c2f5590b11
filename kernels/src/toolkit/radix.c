#include "radix.h"

#include "formulas.h"
#include "order.h"

/* ---- Trees ---- */

int swp_radix_levels(const struct group *g, int radix) {
  int levels = 0;
  for (int64_t reached = 1; reached < g->procs; reached *= radix)
    levels++;
  return levels;
}

double swp_radix_knomial_bcast_s(const struct group *g, double m, int radix) {
  return swp_radix_levels(g, radix) * swp_burst_s(g, swp_fewer(radix, g->procs) - 1, m, 1);
}

double swp_radix_knomial_reduce_s(const struct group *g, double m, int radix) {
  const int joined = swp_radix_levels(g, radix) * (swp_fewer(radix, g->procs) - 1);
  return swp_radix_knomial_bcast_s(g, m, radix) + joined * swp_reduced_s(g, m);
}

double swp_radix_knomial_barrier_s(const struct group *g, double m, int radix) {
  return 2 * swp_radix_knomial_bcast_s(g, m, radix);
}

/* A level's blocks, in as many messages as it has at most; a rank receives one of them, or as many. */
static double blocks_by_levels(const struct group *g, double m, int radix, bool everyone) {
  double seconds = 0;
  for (int64_t below = 1; below < g->procs; below *= radix) {
    const int64_t rest = g->procs - below, most = (radix - 1) * below, blocks = rest < most ? rest : most;
    const int messages = (int)((blocks + below - 1) / below);
    seconds += swp_burst_s(g, messages, (double)blocks * m / messages, everyone ? messages : 1);
  }
  return seconds;
}

double swp_radix_knomial_blocks_s(const struct group *g, double m, int radix) {
  return blocks_by_levels(g, m, radix, false);
}

/* ---- Hypercubes with more than two ranks in a row ---- */

int swp_radix_positions(int procs, int radix) {
  int power = 1;
  while (power <= procs / radix)
    power *= radix;
  return procs / power * power;
}

double swp_radix_multiplying_allreduce_s(const struct group *g, double m, int radix) {
  const int size = swp_radix_positions(g->procs, radix);
  double seconds = size == g->procs ? 0 : 2 * swp_message_s(g, m) + swp_reduced_s(g, m);
  for (int64_t stride = 1; stride < size; stride *= radix) {
    const int others = swp_fewer(radix, (int)(size / stride)) - 1;
    seconds += swp_burst_s(g, others, m, others) + others * swp_reduced_s(g, m);
  }
  return seconds;
}

double swp_radix_multiplying_allgather_s(const struct group *g, double m, int radix) {
  const int size = swp_radix_positions(g->procs, radix);
  double seconds = size == g->procs ? 0 : swp_message_s(g, m) + swp_message_s(g, g->procs * m);
  for (int64_t stride = 1; stride < size; stride *= radix) {
    const int others = swp_fewer(radix, (int)(size / stride)) - 1;
    seconds += swp_burst_s(g, others, (double)stride * g->procs / size * m, others);
  }
  return seconds;
}

/* ---- Bruck ---- */

double swp_radix_bruck_allgather_s(const struct group *g, double m, int radix) {
  return blocks_by_levels(g, m, radix, true) + g->procs * m * g->copy_s_per_byte;
}

double swp_radix_bruck_barrier_s(const struct group *g, double m, int radix) {
  double seconds = 0;
  for (int64_t value = 1; value < g->procs; value *= radix) {
    const int messages = swp_fewer(radix - 1, (int)((g->procs - 1) / value));
    seconds += swp_burst_s(g, messages, m, messages);
  }
  return seconds;
}

/* Turns along these ranks, each of which forwards so many blocks of these bytes for every one of them. */
static double turns_s(const struct group *g, double bytes, int radix, int each, double *copied) {
  double seconds = 0;
  for (int64_t value = 1; value < g->procs; value *= radix) {
    const int64_t rest = g->procs % (value * radix), stay = rest < value ? rest : value;
    const double blocks = (double)(g->procs - g->procs / (value * radix) * value - stay) * each;
    const int messages = swp_fewer(radix - 1, (int)((g->procs - 1) / value));
    seconds += swp_burst_s(g, messages, blocks * bytes / messages, messages);
    *copied += blocks;
  }
  return seconds;
}

double swp_radix_bruck_alltoall_s(const struct group *g, double m, int radix) {
  double copied = g->procs, seconds = turns_s(g, m, radix, 1, &copied);
  return seconds + 2 * copied * m * g->copy_s_per_byte;
}

double swp_radix_uneven_bruck_s(const struct group *g, double m, int radix, int global) {
  double copied = g->procs, seconds;
  if (global == 0) {
    seconds = turns_s(g, m + COUNT_BYTES, radix, 1, &copied);
  } else {
    const struct group node = swp_group_part(g, g->ppn, g->ppn);
    struct group between = *g;
    between.procs = g->procs / g->ppn;
    seconds = turns_s(&node, m + COUNT_BYTES, radix, between.procs, &copied);
    seconds += turns_s(&between, m + COUNT_BYTES, global, g->ppn, &copied);
  }
  return seconds + 2 * copied * m * g->copy_s_per_byte;
}

int swp_estimate_radix(const struct swp_plan *plan, const struct estimate *estimate, radix_formula *its,
                       double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  *seconds = its(&group, (double)plan->features.bytes, swp_radix_of(estimate->spec));
  return SWP_SUCCESS;
}
