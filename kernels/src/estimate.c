/* The times of methods, composed of a model's parameters. */
#include "estimate.h"

#include "off.h"
#include "select.h"
#include "trial.h"

#include <stdio.h>
#include <string.h>

enum { COUNT_BYTES = 4, SMALL_BYTES = 8, SPECS_BYTES = 2048 };

/* Predictions that differ by less than this factor are not told apart (models/validation.py, CLOSE). */
static const double CLEARLY = 1.15;

/* A rank's messages of one stage. */
struct tally {
  double ahead_s;                       /* the longest, of those sent and received */
  double steps_s, longest_step_s;       /* of those sent */
  double receives_s, longest_receive_s; /* of those received */
  double stay_s, leave_s, arrive_s;     /* their bytes: sent on the node, sent off it, received */
  int64_t leaving, leaving_bytes;
};

struct estimate {
  const struct model *model;
  MPI_Comm node; /* MPI_COMM_NULL where no rate bounds what leaves a node */
  struct tally tallies[GRID_DIMS];
};

/* What leaves a node in a stage, and how large messages are that do. */
struct crowd {
  int64_t senders, bytes;
  double mean_bytes;
};

static double greater(double a, double b) {
  return a > b ? a : b;
}

/* Alpha, and what the bytes of a message alone take longer than those of many. */
static double ahead_s(const struct message_cost *cost, double bytes) {
  return cost->alpha_s + greater(cost->beta_s - cost->per_byte_s, 0) * bytes;
}

static const struct message_cost *cost_of(const struct pair_model *pair, double bytes) {
  int i = 0;
  while (bytes > pair->messages[i].up_to_bytes)
    i++;
  return &pair->messages[i];
}

/* The pairs that decide when all ranks wait for each other. */
static const struct pair_model *slowest(const struct model *model, const struct features *features) {
  return &model->pairs[features->nodes > 1 ? PAIR_OFF_NODE : PAIR_ON_NODE];
}

static const struct pair_model *pair_with(const struct swp_plan *plan, int peer) {
  return &plan->estimate->model->pairs[swp_plan_off_node(plan, peer) ? PAIR_OFF_NODE : PAIR_ON_NODE];
}

void swp_estimate_send(struct swp_plan *plan, int stage, int peer, int64_t bytes) {
  const struct message_cost *cost = cost_of(pair_with(plan, peer), (double)bytes);
  struct tally *tally = &plan->estimate->tallies[stage];
  double moved_s = cost->per_byte_s * (double)bytes;
  tally->ahead_s = greater(tally->ahead_s, ahead_s(cost, (double)bytes));
  tally->steps_s += cost->step_s;
  tally->longest_step_s = greater(tally->longest_step_s, cost->step_s);
  if (swp_plan_off_node(plan, peer)) {
    tally->leave_s += moved_s;
    tally->leaving++;
    tally->leaving_bytes += bytes;
  } else {
    tally->stay_s += moved_s;
  }
}

void swp_estimate_receive(struct swp_plan *plan, int stage, int peer, int64_t bytes) {
  const struct message_cost *cost = cost_of(pair_with(plan, peer), (double)bytes);
  struct tally *tally = &plan->estimate->tallies[stage];
  tally->ahead_s = greater(tally->ahead_s, ahead_s(cost, (double)bytes));
  tally->receives_s += cost->receive_s;
  tally->longest_receive_s = greater(tally->longest_receive_s, cost->receive_s);
  tally->arrive_s += cost->per_byte_s * (double)bytes;
}

/* What the max-rate model says of the bytes that this rank sends to other nodes. */
static double bound_s(const struct pair_model *off_node, const struct tally *tally,
                      const struct crowd *crowd) {
  if (off_node->nrates == 0 || tally->leaving_bytes == 0)
    return 0;
  const struct rates *rates = off_node->rates;
  while (crowd->mean_bytes > rates->up_to_bytes)
    rates++;
  if (rates->b_max <= 0)
    return 0;
  double senders = (double)crowd->senders;
  double active = senders < rates->processes ? senders : rates->processes;
  double own = (double)tally->leaving_bytes * (senders / (rates->b_max + (active - 1) * rates->b_inj));
  return rates->b_node > 0 ? greater(own, (double)crowd->bytes / rates->b_node) : own;
}

/* D: of this rank, all messages begun together; ahead_s has the overheads of one sent and one received. */
static double delivery_s(const struct model *model, const struct tally *tally, const struct crowd *crowd) {
  double sent_s =
      tally->stay_s + greater(tally->leave_s, bound_s(&model->pairs[PAIR_OFF_NODE], tally, crowd));
  return tally->ahead_s + tally->steps_s - tally->longest_step_s + tally->receives_s -
         tally->longest_receive_s + greater(sent_s, tally->arrive_s);
}

/* ---- Exchange: the sum of D over the stages as planned ---- */

/* The methods that are made of messages. One copies all that it sends at each stage, as it forwards; of the
   others, what is packed counts. */
static const struct composed {
  const char *name;
  bool forwards;
} composed[] = {{"direct", false}, {"stfw", true}, {"nap", false}};

static int find_crowds(const struct swp_plan *trial, struct crowd *crowds) {
  const struct estimate *estimate = trial->estimate;
  int error = SWP_SUCCESS, n = trial->nstages;
  int64_t mine[2 * GRID_DIMS], all[2 * GRID_DIMS], node[2 * GRID_DIMS];
  memset(crowds, 0, (size_t)n * sizeof *crowds);
  if (estimate->node == MPI_COMM_NULL)
    return SWP_SUCCESS;
  for (int d = 0; d < n; d++) {
    mine[d] = estimate->tallies[d].leaving;
    mine[n + d] = estimate->tallies[d].leaving_bytes;
  }
  MPI_TRY(MPI_Allreduce(mine, all, 2 * n, MPI_INT64_T, MPI_SUM, trial->comm));
  for (int d = 0; d < n; d++)
    mine[d] = mine[n + d] > 0;
  MPI_TRY(MPI_Allreduce(mine, node, 2 * n, MPI_INT64_T, MPI_SUM, estimate->node));
  for (int d = 0; d < n; d++)
    crowds[d] = (struct crowd){node[d], node[n + d], all[d] > 0 ? (double)all[n + d] / (double)all[d] : 0};
done:
  return error;
}

/* What is packed of messages whose items do not lie together. */
static double packed_bytes(const struct problem *problem) {
  double bytes = 0;
  for (int i = 0; i < problem->nsends; i++)
    bytes += problem->sends[i].nruns > 1 ? (double)problem->sends[i].bytes : 0;
  return bytes;
}

static int add_up(const struct swp_plan *trial, bool forwards, double *seconds) {
  const struct model *model = trial->estimate->model;
  int error = SWP_SUCCESS, n = trial->nstages;
  struct crowd crowds[GRID_DIMS];
  double mine[2 * GRID_DIMS + 1], most[2 * GRID_DIMS + 1];
  TRY(find_crowds(trial, crowds));
  for (int d = 0; d < n; d++) {
    mine[d] = delivery_s(model, &trial->estimate->tallies[d], &crowds[d]);
    mine[n + d] = forwards ? (double)trial->stages[d].bytes : 0;
  }
  mine[2 * n] = forwards ? 0 : packed_bytes(&trial->problem);
  MPI_TRY(MPI_Allreduce(mine, most, 2 * n + 1, MPI_DOUBLE, MPI_MAX, trial->comm));
  *seconds = model->copy_s_per_byte * most[2 * n];
  for (int d = 0; d < n; d++)
    *seconds += most[d] + model->copy_s_per_byte * most[n + d];
done:
  return error;
}

/* Plans the method on a copy of the plan, for its messages, and frees what it planned. */
static int estimate_exchange(struct swp_plan *plan, struct estimate *estimate, const struct spec *spec,
                             double *seconds) {
  int error = SWP_SUCCESS;
  struct swp_plan trial;
  size_t i = 0;
  while (i < sizeof composed / sizeof composed[0] && strcmp(composed[i].name, spec->method->name) != 0)
    i++;
  if (i == sizeof composed / sizeof composed[0])
    return SWP_SUCCESS;
  memset(estimate->tallies, 0, sizeof estimate->tallies);
  TRY(swp_trial_plan(plan, spec, estimate, &trial));
  if (trial.nstages <= GRID_DIMS)
    TRY(add_up(&trial, composed[i].forwards, seconds));
done:
  swp_trial_free(&trial);
  return error;
}

/* ---- Discovery: finding the senders, and X, the delivery of the payload ---- */

struct census {
  const struct model *model;
  const struct pair_model *pair;    /* the slowest */
  const struct message_cost *small; /* message */
  int procs, ppn, nodes;
  int64_t degree; /* -1: unknown */
};

/* A round in which each rank sends a message to the rank that is so far behind it, and gets one. Ranks at the
   ends of nodes have one on the node and one off it, where the distance is less than a node. */
static double round_s(const struct census *c, int distance, double bytes) {
  const struct message_cost *cost = cost_of(c->pair, bytes);
  int back = c->procs - distance, reach = distance < back ? distance : back;
  int senders = reach < c->ppn ? reach : c->ppn; /* of a node that their messages leave */
  double ahead = ahead_s(cost, bytes), moved_s = cost->per_byte_s * bytes, arrive_s = moved_s;
  int64_t leaving = c->nodes > 1 ? 1 : 0, volume = leaving * (int64_t)bytes;
  if (leaving && reach < c->ppn) {
    const struct message_cost *near = cost_of(&c->model->pairs[PAIR_ON_NODE], bytes);
    ahead = greater(ahead, ahead_s(near, bytes));
    arrive_s = greater(arrive_s, near->per_byte_s * bytes);
  }
  struct tally tally = {ahead, cost->step_s, cost->step_s, cost->receive_s, cost->receive_s,
                        0,     moved_s,      arrive_s,     leaving,         volume};
  return delivery_s(c->model, &tally, &(struct crowd){senders, senders * volume, bytes});
}

/* By dissemination. */
static double barrier_s(const struct census *c) {
  double seconds = 0;
  for (int distance = 1; distance < c->procs; distance *= 2)
    seconds += round_s(c, distance, 1);
  return seconds;
}

/* How many of 0 ... below - 1 have the bit: the blocks that Bruck's algorithm sends in its round. */
static int with_bit(int bit, int below) {
  int rest = below % (2 * bit) - bit;
  return below / (2 * bit) * bit + (rest > 0 ? rest : 0);
}

static double pex_s(const struct census *c) {
  double pairwise = (c->procs - 1) * c->small->step_s + c->small->alpha_s, bruck = 0;
  for (int bit = 1; bit < c->procs; bit *= 2)
    bruck += round_s(c, bit, (double)with_bit(bit, c->procs) * COUNT_BYTES);
  return pairwise < bruck ? pairwise : bruck;
}

static double pcx_s(const struct census *c) {
  double seconds = 0;
  for (int left = c->procs; left > 1;) {
    left = (left + 1) / 2;
    seconds += round_s(c, left, (double)left * COUNT_BYTES);
  }
  return seconds;
}

static double rsx_s(const struct census *c) {
  if (c->degree < 0)
    return -1;
  double barriers = c->model->fence_barriers > 0 ? c->model->fence_barriers : 1;
  double more = c->degree > 1 ? (double)c->degree - 1 : 0;
  return 2 * barriers * barrier_s(c) + c->small->alpha_s + more * (c->small->step_s + c->small->receive_s);
}

static double nbx_s(const struct census *c) {
  return c->pair->has_penalty ? c->pair->penalty_s + barrier_s(c) : -1;
}

/* X, as far as the hints tell: every rank sends and receives as many messages of the mean bytes. */
static double payload_s(const struct swp_plan *plan, const struct model *model) {
  const struct features *features = &plan->features;
  const double k = (double)features->mmax, bytes = (double)features->bytes;
  if (features->mmax < 1 || features->bytes < 0)
    return 0;
  const struct message_cost *cost = cost_of(slowest(model, features), bytes);
  double moved_s = k * cost->per_byte_s * bytes;
  int64_t volume = features->nodes > 1 ? features->mmax * features->bytes : 0;
  struct tally tally = {ahead_s(cost, bytes),
                        k * cost->step_s,
                        cost->step_s,
                        k * cost->receive_s,
                        cost->receive_s,
                        0,
                        moved_s,
                        moved_s,
                        0,
                        volume};
  return delivery_s(model, &tally, &(struct crowd){features->ppn, features->ppn * volume, bytes});
}

/* X of methods that find a message before they receive it: its bytes follow those of the one before. */
static double probed_s(const struct swp_plan *plan, const struct model *model) {
  const struct features *features = &plan->features;
  const double k = (double)features->mmax, bytes = (double)features->bytes;
  if (features->mmax < 1 || features->bytes < 0)
    return 0;
  const struct message_cost *cost = cost_of(slowest(model, features), bytes);
  double one_by_one_s = cost->alpha_s + (k - 1) * cost->receive_s + k * cost->beta_s * bytes;
  return greater(payload_s(plan, model), one_by_one_s);
}

static const struct counted {
  const char *name;
  double (*seconds)(const struct census *census);
  double (*delivery_s)(const struct swp_plan *plan, const struct model *model);
} counted[] = {
    {"pex", pex_s, payload_s}, {"pcx", pcx_s, probed_s}, {"rsx", rsx_s, probed_s}, {"nbx", nbx_s, probed_s}};

static double estimate_discovery(const struct swp_plan *plan, const struct model *model,
                                 const struct method *method) {
  const struct features *features = &plan->features;
  struct census census = {.model = model,
                          .pair = slowest(model, features),
                          .procs = plan->procs,
                          .ppn = features->ppn,
                          .nodes = features->nodes,
                          .degree = features->mmax};
  census.small = cost_of(census.pair, SMALL_BYTES);
  for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++)
    if (strcmp(counted[i].name, method->name) == 0) {
      double found_s = counted[i].seconds(&census);
      return found_s < 0 ? found_s : found_s + counted[i].delivery_s(plan, model);
    }
  return -1;
}

/* ---- Methods ---- */

static int estimate_spec(struct swp_plan *plan, struct estimate *estimate, const struct spec *spec,
                         double *seconds) {
  *seconds = -1;
  if (plan->operation == SWP_EXCHANGE)
    return estimate_exchange(plan, estimate, spec, seconds);
  *seconds = estimate_discovery(plan, estimate->model, spec->method);
  return SWP_SUCCESS;
}

/* Whether the model is of ranks like these, which have cores of their own. */
static bool has_parameters(const struct model *model, const struct features *features) {
  if (model->cores > 0 && features->ppn > model->cores)
    return false;
  bool on = features->nodes == 1 || features->ppn > 1, off = features->nodes > 1;
  return (!on || model->pairs[PAIR_ON_NODE].nmessages > 0) &&
         (!off || model->pairs[PAIR_OFF_NODE].nmessages > 0);
}

static int begin(const struct swp_plan *plan, const struct model *model, struct estimate *estimate) {
  int error = SWP_SUCCESS;
  *estimate = (struct estimate){.model = model, .node = MPI_COMM_NULL};
  if (plan->operation == SWP_EXCHANGE && plan->features.nodes > 1 && model->pairs[PAIR_OFF_NODE].nrates > 0)
    MPI_TRY(MPI_Comm_split(plan->comm, swp_topology_node(plan->topology, plan->rank), 0, &estimate->node));
done:
  return error;
}

static void end(struct estimate *estimate) {
  if (estimate->node != MPI_COMM_NULL)
    MPI_Comm_free(&estimate->node);
}

int swp_estimate_seconds(struct swp_plan *plan, const struct model *model, const char *method,
                         double *seconds) {
  int error = SWP_SUCCESS;
  struct estimate estimate = {.node = MPI_COMM_NULL};
  struct spec spec;
  *seconds = -1;
  if (!has_parameters(model, &plan->features))
    return SWP_SUCCESS;
  TRY(swp_spec_parse(plan->operation, method, &spec));
  TRY(begin(plan, model, &estimate));
  TRY(estimate_spec(plan, &estimate, &spec, seconds));
done:
  end(&estimate);
  return error;
}

struct fastest {
  struct spec spec;
  double seconds, default_seconds; /* negative: none yet */
};

/* A method that cannot be planned is passed over, on all ranks. */
static int compare(struct swp_plan *plan, struct estimate *estimate, const char *text,
                   struct fastest *fastest) {
  struct spec spec;
  double seconds;
  int error = swp_spec_parse(plan->operation, text, &spec);
  if (error != SWP_SUCCESS || !swp_is_candidate(&spec, &plan->features))
    return error;
  error = estimate_spec(plan, estimate, &spec, &seconds);
  if (error != SWP_SUCCESS || seconds < 0)
    return error == SWP_ERR_MPI ? error : SWP_SUCCESS;
  bool is_default = strcmp(text, swp_default_method(plan->operation)) == 0;
  if (is_default)
    fastest->default_seconds = seconds;
  if (is_default || (fastest->default_seconds > CLEARLY * seconds && seconds < fastest->seconds)) {
    fastest->spec = spec;
    fastest->seconds = seconds;
  }
  return SWP_SUCCESS;
}

static int compare_all(struct swp_plan *plan, struct estimate *estimate, const char *name,
                       struct fastest *fastest) {
  char specs[SPECS_BYTES];
  int error = swp_method_specs(plan->operation, name, plan->procs, specs, sizeof specs);
  for (char *spec = specs, *behind; error == SWP_SUCCESS && *spec != '\0'; spec = behind) {
    behind = spec + strcspn(spec, " ");
    if (*behind != '\0')
      *behind++ = '\0';
    error = compare(plan, estimate, spec, fastest);
  }
  return error;
}

int swp_estimate_method(struct swp_plan *plan, const struct swp_table *table, bool *found) {
  int error = SWP_SUCCESS;
  struct estimate estimate = {.node = MPI_COMM_NULL};
  struct fastest fastest = {.seconds = -1, .default_seconds = -1};
  *found = false;
  if (swp_is_collective(plan->operation) || !has_parameters(&table->model, &plan->features))
    return SWP_SUCCESS;
  TRY(begin(plan, &table->model, &estimate));
  if (plan->operation == SWP_EXCHANGE)
    for (size_t i = 0; i < sizeof composed / sizeof composed[0]; i++)
      TRY(compare_all(plan, &estimate, composed[i].name, &fastest));
  else
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++)
      TRY(compare_all(plan, &estimate, counted[i].name, &fastest));
  *found = fastest.default_seconds >= 0;
  if (*found) {
    plan->spec = fastest.spec;
    int length = snprintf(plan->chosen_by, sizeof plan->chosen_by, "the model of %s: estimated %.3g s",
                          table->path, fastest.seconds);
    if (fastest.seconds < fastest.default_seconds)
      snprintf(plan->chosen_by + length, sizeof plan->chosen_by - (size_t)length, ", %s %.3g s",
               swp_default_method(plan->operation), fastest.default_seconds);
  }
done:
  end(&estimate);
  return error;
}
