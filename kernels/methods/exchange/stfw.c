/*
 * stfw: store-and-forward over a virtual process topology T_n (Selvitopi & Aykanat, SC'19). Stage d exchanges
 * with the processes that differ in coordinate d only. The schedule is made once (stfw_schedule.c), so
 * that no headers travel and nothing is allocated at execution.
 */
#include "stfw.h"

#include "stfw_grid.h"

static void stfw_free(struct swp_plan *plan) {
  struct stfw *stfw = plan->method_state;
  swp_schedule_free(&stfw->schedule);
}

static int stfw_plan(struct swp_plan *plan) {
  struct stfw *stfw = plan->method_state = swp_plan_allocate(plan, 1, sizeof *stfw);
  int error = stfw != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
  if (error == SWP_SUCCESS) {
    swp_stfw_choose_grid(&plan->spec, plan->procs, &stfw->grid);
    swp_stfw_describe(plan, &stfw->grid);
    error = swp_schedule_begin(plan, &stfw->schedule, stfw->grid.ndims);
  }
  TRY(swp_agree(plan->comm, error));
  TRY(swp_stfw_schedule(plan, stfw));
  TRY(swp_schedule_end(plan, &stfw->schedule));
done:
  return error;
}

static int stfw_start(struct swp_plan *plan, const char *send, char *recv) {
  struct stfw *stfw = plan->method_state;
  return swp_schedule_start(plan, &stfw->schedule, send, recv);
}

static int stfw_advance(struct swp_plan *plan, bool block, bool *done) {
  struct stfw *stfw = plan->method_state;
  return swp_schedule_advance(plan, &stfw->schedule, block, done);
}

const struct method swp_exchange_stfw = {
    .name = "stfw",
    .summary = "store and forward along the dimensions of a virtual process grid",
    .source = "STFW_n of Selvitopi & Aykanat, SC'19",
    .usage = STFW_USAGE,
    .parameters = STFW_PARAMETERS,
    .applicable = swp_stfw_applicable,
    .variant = swp_stfw_variant,
    .plan = stfw_plan,
    .free = stfw_free,
    .start = stfw_start,
    .advance = stfw_advance,
};
