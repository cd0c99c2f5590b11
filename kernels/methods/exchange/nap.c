/*
 * nap: node-aware exchange in three steps (Bienz, Gropp, Olson, "Node aware sparse matrix-vector
 * multiplication", 2019): ranks of a node gather what another node needs, each value once; one message goes
 * from node to node; its receiver distributes it. Meanwhile messages on the node are sent directly. With
 * node=shared those between ranks of a node go by its memory, up to SHARING_BYTES.
 */
#include "nap.h"

#include "formulas.h"

#include <stdio.h>

enum { SHARING, NODE };
enum { SHARING_YES, SHARING_NO };
static const char *const sharing_choices[] = {[SHARING_YES] = "yes", [SHARING_NO] = "no", NULL};

/* With two processes no node has fewer others to send to than it has ranks, or a rank that gathers. */
static bool nap_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  static const char *const specs[] = {"nap", "nap:sharing=no", "nap:node=shared"};
  (void)operation;
  if (index >= (procs > 2 ? 3 : 1))
    return false;
  snprintf(text, length, "%s", specs[index]);
  return true;
}

/* node=shared is for several nodes of several ranks: on one it is `shared`, and between single ranks nothing
   is different. */
static const char *nap_applicable(const struct spec *spec, const struct features *features) {
  return swp_is_by_memory(spec) ? swp_sharing_applicable_on_nodes(features) : NULL;
}

static int begin(struct swp_plan *plan, struct schedule **schedule) {
  int error = swp_schedule_begin(plan, NAP_STAGES, schedule);
  if (error == SWP_SUCCESS && swp_is_by_memory(&plan->spec))
    error = swp_slots_begin(plan, true, &(*schedule)->slots);
  return error;
}

static int nap_plan(struct swp_plan *plan) {
  const struct argument *sharing = &plan->spec.arguments[SHARING];
  struct schedule *schedule;
  int error = SWP_SUCCESS;
  TRY(swp_agree(plan->comm, begin(plan, &schedule)));
  snprintf(plan->arrangement, sizeof plan->arrangement, "%d nodes of at most %d ranks", plan->topology->nodes,
           plan->topology->ppn);
  error = swp_nap_schedule(plan, sharing->value == SHARING_YES, schedule);
  if (swp_is_by_memory(&plan->spec))
    error = swp_slots_place(plan, &schedule->slots, error);
  if (error == SWP_SUCCESS)
    error = swp_schedule_end(plan, schedule);
done:
  return error;
}

/* Messages on a node are as of `shared`: in each stage as long as a small one, copying twice, and the larger
   messages. Of what leaves the node most bytes go to its sender by a slot, so they are copied, not packed. */
static int nap_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct schedule *schedule = plan->method_state;
  int64_t copied_bytes[NAP_STAGES];
  int error = SWP_SUCCESS;
  if (!swp_is_by_memory(&plan->spec))
    return swp_estimate_messages(plan, estimate, seconds);
  for (int stage = 0; stage < NAP_STAGES; stage++)
    copied_bytes[stage] = schedule->stages[stage].handover_bytes;
  TRY(swp_estimate_larger(plan, estimate, SHARING_BYTES, seconds));
  TRY(swp_estimate_slots(plan, estimate, &estimate->model->pairs[PAIR_ON_NODE], NAP_STAGES, copied_bytes,
                         seconds));
done:
  return error;
}

const struct method swp_exchange_nap = {
    .name = "nap",
    .summary = "one message per pair of nodes, gathered and distributed on them",
    .source = "Bienz, Gropp, Olson, Node aware sparse matrix-vector multiplication, 2019",
    .usage = "sharing=yes|no, " NODE_USAGE " (yes and mpi when not given)",
    .parameters = {[SHARING] = {.name = "sharing", .type = PARAMETER_CHOICE, .choices = sharing_choices},
                   [NODE] = NODE_PARAMETER},
    .applicable = nap_applicable,
    .variant = nap_variant,
    .plan = nap_plan,
    .free = swp_schedule_free,
    .start = swp_schedule_start,
    .advance = swp_schedule_advance,
    .estimate = nap_estimate,
};
