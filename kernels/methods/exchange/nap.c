/*
 * nap: node-aware exchange in three steps (Bienz, Gropp, Olson, "Node aware sparse matrix-vector
 * multiplication", 2019): ranks of a node gather what another node needs, each value once; one message goes
 * from node to node; its receiver distributes it. Meanwhile messages on the node are sent directly.
 */
#include "formulas.h"
#include "nap.h"

#include <stdio.h>

enum { SHARING };
enum { SHARING_YES, SHARING_NO };
static const char *const sharing_choices[] = {[SHARING_YES] = "yes", [SHARING_NO] = "no", NULL};

/* With two processes no node has fewer others to send to than it has ranks. */
static bool nap_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  static const char *const specs[] = {"nap", "nap:sharing=no"};
  (void)operation;
  if (index >= (procs > 2 ? 2 : 1))
    return false;
  snprintf(text, length, "%s", specs[index]);
  return true;
}

static int nap_plan(struct swp_plan *plan) {
  const struct argument *sharing = &plan->spec.arguments[SHARING];
  struct schedule *schedule;
  int error = SWP_SUCCESS;
  TRY(swp_agree(plan->comm, swp_schedule_begin(plan, NAP_STAGES, &schedule)));
  snprintf(plan->layout, sizeof plan->layout, "%d nodes of at most %d ranks", plan->topology->nodes,
           plan->topology->ppn);
  TRY(swp_nap_schedule(plan, !sharing->given || sharing->value == SHARING_YES, schedule));
  TRY(swp_schedule_end(plan, schedule));
done:
  return error;
}

const struct method swp_exchange_nap = {
    .name = "nap",
    .summary = "one message per pair of nodes, gathered and distributed on them",
    .source = "Bienz, Gropp, Olson, Node aware sparse matrix-vector multiplication, 2019",
    .usage = "sharing=yes|no",
    .parameters = {[SHARING] = {"sharing", PARAMETER_CHOICE, 0, 0, sharing_choices}},
    .variant = nap_variant,
    .plan = nap_plan,
    .free = swp_schedule_free,
    .start = swp_schedule_start,
    .advance = swp_schedule_advance,
    .estimate = swp_estimate_messages,
};
