/*
 * stfw: store-and-forward over a virtual process topology T_n, as published (Selvitopi & Aykanat, SC'19,
 * Algorithm 1): submessages carry headers and are sorted at every stage of every call. A rank sends to all
 * its neighbours of a stage, empty letters included, so that no rank needs to know its senders.
 */
#include "formulas.h"
#include "grid.h"
#include "relay.h"

struct state {
  struct relay relay;
  struct grid grid;
  int *neighbors;           /* of all stages */
  int first[GRID_DIMS + 1]; /* those of stage d (from 1) are first[d - 1] … first[d] - 1, increasing */
};

static void stfw_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_relay_free(&state->relay);
  swp_release(state->neighbors);
}

static int find_neighbors(struct swp_plan *plan, struct state *state) {
  const struct grid *grid = &state->grid;
  int64_t room = 0;
  for (int d = 0; d < grid->ndims; d++)
    room += 2 * ((int64_t)grid->sizes[d] - 1);
  state->neighbors = swp_plan_allocate(plan, room, sizeof *state->neighbors);
  if (state->neighbors == NULL)
    return swp_plan_no_memory(plan);
  int most = 0;
  for (int d = 0; d < grid->ndims; d++) {
    int count = swp_grid_neighbors(grid, plan->rank, d + 1, state->neighbors + state->first[d]);
    state->first[d + 1] = state->first[d] + count;
    most = count > most ? count : most;
  }
  return swp_relay_plan(plan, &state->relay, most);
}

static int stfw_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state == NULL)
    return swp_plan_no_memory(plan);
  swp_stfw_choose_grid(&plan->spec, plan->procs, &state->grid);
  swp_stfw_describe(plan, &state->grid);
  return find_neighbors(plan, state);
}

static int forward(struct swp_plan *plan, struct state *state, int stage) {
  const int *neighbors = state->neighbors + state->first[stage - 1];
  int count = state->first[stage] - state->first[stage - 1];
  for (int64_t i = 0; i < state->relay.nheld; i++) {
    struct parcel *parcel = &state->relay.held[i];
    int rank = swp_grid_route(&state->grid, parcel->source, parcel->destination, stage);
    parcel->next = rank != plan->rank ? swp_grid_neighbor_index(neighbors, count, rank) : STAYS;
  }
  return swp_relay_stage(plan, &state->relay, stage, count, neighbors);
}

static int stfw_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS;
  swp_relay_begin(plan, &state->relay, outbox);
  for (int stage = 1; stage <= state->grid.ndims; stage++)
    TRY(forward(plan, state, stage));
  TRY(swp_relay_deliver(plan, &state->relay, inbox));
done:
  return error;
}

static int stfw_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  struct grid grid;
  if (swp_stfw_choose_grid(estimate->spec, plan->procs, &grid) != NULL)
    return SWP_SUCCESS;
  *seconds = 0;
  for (int stage = 1; stage <= grid.ndims; stage++) {
    const int partners = swp_grid_most_neighbors(&grid, stage);
    const bool local = partners < grid.sizes[stage - 1] && census.ppn % grid.strides[stage] == 0;
    *seconds += swp_forward_s(&census, partners, local);
  }
  return SWP_SUCCESS;
}

const struct method swp_discovery_stfw = {
    .name = "stfw",
    .summary = "store and forward along the dimensions of a virtual process grid, with headers",
    .source = "STFW_n of Selvitopi & Aykanat, SC'19",
    .usage = STFW_USAGE,
    .parameters = STFW_PARAMETERS,
    .applicable = swp_stfw_applicable,
    .variant = swp_stfw_variant,
    .plan = stfw_plan,
    .free = stfw_free,
    .execute = stfw_execute,
    .estimate = stfw_estimate,
};
