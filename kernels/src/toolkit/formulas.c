#include "formulas.h"

#include "order.h"

#include <string.h>

enum { SMALL_BYTES = 8, HEADER_BYTES = 16 }; /* of each part that is forwarded */

/* ---- Exchange ---- */

static int find_crowds(const struct exchange_plan *exchange, const struct estimate *estimate,
                       struct crowd *crowds) {
  int error = SWP_SUCCESS, n = exchange->nstages;
  int64_t mine[2 * GRID_DIMS] = {0}, all[2 * GRID_DIMS], node[2 * GRID_DIMS];
  memset(crowds, 0, (size_t)n * sizeof *crowds);
  if (estimate->node == MPI_COMM_NULL)
    return SWP_SUCCESS;
  for (int d = 0; d < n; d++) {
    mine[d] = exchange->tallies[d].leaving;
    mine[n + d] = exchange->tallies[d].leaving_bytes;
  }
  MPI_TRY(MPI_Allreduce(mine, all, 2 * n, MPI_INT64_T, MPI_SUM, exchange->plan.comm));
  for (int d = 0; d < n; d++)
    mine[d] = mine[n + d] > 0;
  MPI_TRY(MPI_Allreduce(mine, node, 2 * n, MPI_INT64_T, MPI_SUM, estimate->node));
  for (int d = 0; d < n; d++)
    crowds[d] = (struct crowd){node[d], node[n + d], all[d] > 0 ? (double)all[n + d] / (double)all[d] : 0};
done:
  return error;
}

/* The bytes that are packed of larger messages whose items are not contiguous, if they do not go by slots. */
static double packed_bytes(const struct swp_plan *plan, const struct slots *slots, int64_t above_bytes) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  double bytes = 0;
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    if (send->nruns > 1 && send->bytes > above_bytes && !swp_slots_fit(plan, slots, send->peer, send->bytes))
      bytes += (double)send->bytes;
  }
  return bytes;
}

static int add_up(const struct exchange_plan *exchange, const struct estimate *estimate, bool forwards,
                  double packed, double *seconds) {
  const struct model *model = estimate->model;
  int error = SWP_SUCCESS, n = exchange->nstages;
  struct crowd crowds[GRID_DIMS];
  double mine[2 * GRID_DIMS + 1], most[2 * GRID_DIMS + 1];
  if (n > GRID_DIMS)
    return SWP_SUCCESS;
  TRY(find_crowds(exchange, estimate, crowds));
  for (int d = 0; d < n; d++) {
    mine[d] = swp_delivery_s(model, &exchange->tallies[d], &crowds[d]);
    mine[n + d] = forwards ? (double)exchange->stages[d].bytes : 0;
  }
  mine[2 * n] = packed;
  MPI_TRY(MPI_Allreduce(mine, most, 2 * n + 1, MPI_DOUBLE, MPI_MAX, exchange->plan.comm));
  *seconds = model->copy_s_per_byte * most[2 * n];
  for (int d = 0; d < n; d++)
    *seconds += most[d] + model->copy_s_per_byte * most[n + d];
done:
  return error;
}

int swp_estimate_messages(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  return swp_estimate_larger(plan, estimate, 0, seconds);
}

int swp_estimate_larger(const struct swp_plan *plan, const struct estimate *estimate, int64_t above_bytes,
                        double *seconds) {
  const double packed = packed_bytes(plan, &(const struct slots){0}, above_bytes);
  return add_up(exchange_plan_of(plan), estimate, false, packed, seconds);
}

int swp_estimate_sent(const struct swp_plan *plan, const struct estimate *estimate, const struct slots *slots,
                      double *seconds) {
  return add_up(exchange_plan_of(plan), estimate, false, packed_bytes(plan, slots, 0), seconds);
}

int swp_estimate_slots(const struct swp_plan *plan, const struct estimate *estimate,
                       const struct pair_model *pair, int nstages, const int64_t *copied_bytes,
                       double *seconds) {
  int error = SWP_SUCCESS;
  int64_t most[GRID_DIMS] = {0};
  MPI_TRY(MPI_Allreduce(copied_bytes, most, nstages, MPI_INT64_T, MPI_MAX, plan->comm));
  for (int d = 0; d < nstages; d++)
    if (most[d] > 0)
      *seconds +=
          swp_cost_of(pair, SMALL_BYTES)->alpha_s + (double)most[d] * estimate->model->copy_s_per_byte;
done:
  return error;
}

int swp_estimate_forwarding(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  return add_up(exchange_plan_of(plan), estimate, true, 0, seconds);
}

/* ---- Discovery ---- */

/* The pairs that decide when all ranks wait for each other. */
static const struct pair_model *slowest(const struct model *model, const struct features *features) {
  return &model->pairs[features->nodes > 1 ? PAIR_OFF_NODE : PAIR_ON_NODE];
}

struct census swp_census(const struct swp_plan *plan, const struct estimate *estimate) {
  const struct features *features = &plan->features;
  const struct pair_model *pair = slowest(estimate->model, features);
  return (struct census){.model = estimate->model,
                         .pair = pair,
                         .small = swp_cost_of(pair, SMALL_BYTES),
                         .procs = plan->procs,
                         .ppn = features->ppn,
                         .nodes = features->nodes,
                         .degree = features->mmax,
                         .parts_bytes = swp_greater((double)features->mmax, 0) *
                                        (swp_greater((double)features->bytes, 0) + HEADER_BYTES)};
}

/* A round in which each rank sends a message to the rank that is so far behind it, and gets one. Ranks at the
   ends of nodes have one on the node and one off it, where the distance is less than a node. */
double swp_round_s(const struct census *c, int distance, double bytes) {
  const struct message_cost *cost = swp_cost_of(c->pair, bytes);
  int back = c->procs - distance, reach = distance < back ? distance : back;
  int senders = reach < c->ppn ? reach : c->ppn; /* of a node that their messages leave */
  double ahead = swp_ahead_s(cost, bytes), moved_s = cost->per_byte_s * bytes, arrive_s = moved_s;
  int64_t leaving = c->nodes > 1 ? 1 : 0, volume = leaving * (int64_t)bytes;
  if (leaving && reach < c->ppn) {
    const struct message_cost *near = swp_cost_of(&c->model->pairs[PAIR_ON_NODE], bytes);
    ahead = swp_greater(ahead, swp_ahead_s(near, bytes));
    arrive_s = swp_greater(arrive_s, near->per_byte_s * bytes);
  }
  struct tally tally = {ahead, cost->step_s, cost->step_s, cost->receive_s, cost->receive_s,
                        0,     moved_s,      arrive_s,     leaving,         volume};
  return swp_delivery_s(c->model, &tally, &(struct crowd){senders, senders * volume, bytes});
}

int swp_with_bit(int bit, int below) {
  int rest = below % (2 * bit) - bit;
  return below / (2 * bit) * bit + (rest > 0 ? rest : 0);
}

/* A rank's own share of the bytes stays, the rest is copied. */
double swp_forward_s(const struct census *c, int partners, bool local) {
  if (partners == 0)
    return 0;
  double moved_bytes = c->parts_bytes * partners / (partners + 1);
  const struct message_cost *cost =
      swp_cost_of(local ? &c->model->pairs[PAIR_ON_NODE] : c->pair, moved_bytes / partners);
  return cost->alpha_s + (partners - 1) * (cost->step_s + cost->receive_s) +
         moved_bytes * (cost->beta_s + c->model->copy_s_per_byte);
}

double swp_forward_by_memory_s(const struct census *c) {
  const double moved_bytes = c->parts_bytes * (c->ppn - 1) / c->ppn;
  return swp_cost_of(&c->model->pairs[PAIR_ON_NODE], SMALL_BYTES)->alpha_s +
         2 * moved_bytes * c->model->copy_s_per_byte;
}

double swp_consensus_s(const struct census *c) {
  return c->pair->has_penalty ? c->pair->penalty_s + swp_barrier_s(c) : -1;
}

double swp_barrier_s(const struct census *c) {
  double seconds = 0;
  for (int distance = 1; distance < c->procs; distance *= 2)
    seconds += swp_round_s(c, distance, 1);
  return seconds;
}

double swp_fence_s(const struct census *c) {
  return (c->model->fence_barriers > 0 ? c->model->fence_barriers : 1) * swp_barrier_s(c);
}

/* The process that owns the memory handles each, as in most libraries. */
double swp_one_sided_s(const struct census *c) {
  const double later = c->degree > 1 ? (double)c->degree - 1 : 0;
  return c->small->alpha_s + later * (c->small->step_s + c->small->receive_s);
}

/* X, as far as the hints specify it: every rank sends and receives as many messages of the mean bytes. */
double swp_payload_s(const struct swp_plan *plan, const struct model *model) {
  const struct features *features = &plan->features;
  const double k = (double)features->mmax, bytes = (double)features->bytes;
  if (features->mmax < 1 || features->bytes < 0)
    return 0;
  const struct message_cost *cost = swp_cost_of(slowest(model, features), bytes);
  double moved_s = k * cost->per_byte_s * bytes;
  int64_t volume = features->nodes > 1 ? features->mmax * features->bytes : 0;
  struct tally tally = {swp_ahead_s(cost, bytes),
                        k * cost->step_s,
                        cost->step_s,
                        k * cost->receive_s,
                        cost->receive_s,
                        0,
                        moved_s,
                        moved_s,
                        0,
                        volume};
  return swp_delivery_s(model, &tally, &(struct crowd){features->ppn, features->ppn * volume, bytes});
}

/* X of methods that find a message before they receive it: its bytes follow those of the one before. */
double swp_probed_s(const struct swp_plan *plan, const struct model *model) {
  const struct features *features = &plan->features;
  const double k = (double)features->mmax, bytes = (double)features->bytes;
  if (features->mmax < 1 || features->bytes < 0)
    return 0;
  const struct message_cost *cost = swp_cost_of(slowest(model, features), bytes);
  double one_by_one_s = cost->alpha_s + (k - 1) * cost->receive_s + k * cost->beta_s * bytes;
  return swp_greater(swp_payload_s(plan, model), one_by_one_s);
}
