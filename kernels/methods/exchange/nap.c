/*
 * nap: node-aware exchange in three steps (Bienz, Gropp, Olson, "Node aware sparse matrix-vector
 * multiplication", 2019): ranks of a node gather what another node needs, each value once; one message goes
 * from node to node; its receiver distributes it. What stays on the node goes directly, meanwhile.
 */
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
  struct schedule *schedule = plan->method_state = swp_plan_allocate(plan, 1, sizeof *schedule);
  int error = schedule != NULL ? swp_schedule_begin(plan, schedule, NAP_STAGES) : swp_plan_no_memory(plan);
  TRY(swp_agree(plan->comm, error));
  snprintf(plan->layout, sizeof plan->layout, "%d nodes of at most %d ranks", plan->topology->nodes,
           plan->topology->ppn);
  const struct argument *sharing = &plan->spec.arguments[SHARING];
  TRY(swp_nap_schedule(plan, !sharing->given || sharing->value == SHARING_YES, schedule));
  TRY(swp_schedule_end(plan, schedule));
done:
  return error;
}

static void nap_free(struct swp_plan *plan) {
  swp_schedule_free(plan->method_state);
}

static int nap_start(struct swp_plan *plan, const char *send, char *recv) {
  return swp_schedule_start(plan, plan->method_state, send, recv);
}

static int nap_advance(struct swp_plan *plan, bool block, bool *done) {
  return swp_schedule_advance(plan, plan->method_state, block, done);
}

const struct method swp_exchange_nap = {
    .name = "nap",
    .summary = "one message per pair of nodes, gathered and distributed on them",
    .source = "Bienz, Gropp, Olson, Node aware sparse matrix-vector multiplication, 2019",
    .usage = "sharing=yes|no",
    .parameters = {[SHARING] = {"sharing", PARAMETER_CHOICE, 0, 0, sharing_choices}},
    .variant = nap_variant,
    .plan = nap_plan,
    .free = nap_free,
    .start = nap_start,
    .advance = nap_advance,
};
