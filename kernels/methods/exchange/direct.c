/* direct: post receives, send to each neighbour. The baseline BL of Selvitopi & Aykanat, SC'19 (topology
 * T_1). */
#include "formulas.h"
#include "messages.h"

static void direct_free(struct swp_plan *plan) {
  if (plan->method_state != NULL)
    swp_messages_free(plan->method_state);
}

static int direct_plan(struct swp_plan *plan) {
  struct messages *messages = plan->method_state = swp_plan_allocate(plan, 1, sizeof *messages);
  if (messages == NULL || swp_plan_stages(plan, 1) != SWP_SUCCESS)
    return swp_plan_no_memory(plan);
  return swp_messages_plan(plan, &(const struct slots){0}, messages);
}

HOT static int direct_start(struct swp_plan *plan, const char *send, char *recv) {
  return swp_messages_start(plan, plan->method_state, send, recv);
}

HOT static int direct_advance(struct swp_plan *plan, bool block, bool *done) {
  return swp_messages_advance(plan, plan->method_state, block, done);
}

const struct method swp_exchange_direct = {
    .name = "direct",
    .summary = "post receives, send to each neighbour",
    .source = "baseline BL of Selvitopi & Aykanat, SC'19",
    .plan = direct_plan,
    .free = direct_free,
    .start = direct_start,
    .advance = direct_advance,
    .estimate = swp_estimate_messages,
};
