/* nbx: nonblocking consensus among all ranks, and nothing else. */
#include "consensus.h"

#include <stdio.h>

enum { BARRIER };

static void nbx_free(struct swp_plan *plan) {
  swp_consensus_free(plan->method_state);
}

static const char *nbx_applicable(const struct spec *spec, const struct features *features) {
  return swp_consensus_applicable(&spec->arguments[BARRIER], features);
}

static int nbx_plan(struct swp_plan *plan) {
  struct consensus *consensus = plan->method_state = swp_plan_allocate(plan, 1, sizeof *consensus);
  if (consensus == NULL)
    return swp_plan_no_memory(plan);
  consensus->barrier = swp_consensus_barrier(&plan->spec.arguments[BARRIER], &plan->features);
  return SWP_SUCCESS;
}

static int nbx_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  return swp_consensus(plan, plan->method_state, outbox, inbox);
}

static bool nbx_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  (void)operation;
  (void)procs;
  if (swp_consensus_barriers[index] == NULL)
    return false;
  snprintf(text, length, "nbx:barrier=%s", swp_consensus_barriers[index]);
  return true;
}

const struct method swp_discovery_nbx = {
    .name = "nbx",
    .summary = "synchronous sends, receive until a nonblocking barrier completes",
    .source = "nonblocking consensus; Hoefler, Siebert, Lumsdaine, PPoPP'10",
    .usage = "barrier=ibarrier|dissemination",
    .parameters = {[BARRIER] = {"barrier", PARAMETER_CHOICE, 0, 0, swp_consensus_barriers}},
    .variant = nbx_variant,
    .applicable = nbx_applicable,
    .plan = nbx_plan,
    .free = nbx_free,
    .execute = nbx_execute,
};
