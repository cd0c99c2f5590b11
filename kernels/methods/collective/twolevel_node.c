/* twolevel on a node: by the MPI library, or by boards in the node's memory. */
#include "twolevel.h"

#include "textbook.h"

/* Blocks of the leader to the others. */
static struct roles from_leader(const struct twolevel *state, int leader, int out_blocks) {
  const bool leads = state->local == leader;
  return (struct roles){.root = leader,
                        .one_writes = true,
                        .writes = leads,
                        .reads = !leads,
                        .out_blocks = out_blocks,
                        .in_blocks = 1};
}

/* The other way. */
static struct roles to_leader(const struct twolevel *state, int leader, int in_blocks) {
  return (struct roles){.root = leader,
                        .one_reads = true,
                        .writes = true,
                        .reads = state->local == leader,
                        .out_blocks = 1,
                        .in_blocks = in_blocks};
}

int swp_node_bcast(struct swp_plan *plan, int leader, char *bytes, int64_t count) {
  struct twolevel *state = plan->method_state;
  const bool leads = state->local == leader;
  const struct roles roles = from_leader(state, leader, 1);
  const struct images images = {.out = leads ? bytes : NULL, .in = leads ? NULL : bytes};
  int error = SWP_SUCCESS;
  if (state->by_memory)
    return swp_boards_move(plan, &state->boards, &roles, &images, count);
  MPI_TRY(PMPI_Bcast(bytes, (int)count, MPI_BYTE, leader, state->node));
done:
  return error;
}

int swp_node_gather(struct swp_plan *plan, int leader, char *blocks) {
  struct twolevel *state = plan->method_state;
  const bool leads = state->local == leader;
  const int block = (int)plan->features.bytes;
  const struct roles roles = to_leader(state, leader, state->size);
  const struct images images = {.out = leads ? blocks + (int64_t)leader * block : blocks,
                                .in = leads ? blocks : NULL};
  int error = SWP_SUCCESS;
  if (state->by_memory)
    return swp_boards_move(plan, &state->boards, &roles, &images, block);
  MPI_TRY(leads ? PMPI_Gather(MPI_IN_PLACE, 0, MPI_BYTE, blocks, block, MPI_BYTE, leader, state->node)
                : PMPI_Gather(blocks, block, MPI_BYTE, NULL, 0, MPI_BYTE, leader, state->node));
done:
  return error;
}

int swp_node_scatter(struct swp_plan *plan, int leader, char *blocks) {
  struct twolevel *state = plan->method_state;
  const bool leads = state->local == leader;
  const int block = (int)plan->features.bytes;
  const struct roles roles = from_leader(state, leader, state->size);
  const struct images images = {.out = leads ? blocks : NULL, .in = leads ? NULL : blocks};
  int error = SWP_SUCCESS;
  if (state->by_memory)
    return swp_boards_move(plan, &state->boards, &roles, &images, block);
  MPI_TRY(leads ? PMPI_Scatter(blocks, block, MPI_BYTE, MPI_IN_PLACE, 0, MPI_BYTE, leader, state->node)
                : PMPI_Scatter(NULL, 0, MPI_BYTE, blocks, block, MPI_BYTE, leader, state->node));
done:
  return error;
}

int swp_node_reduce(struct swp_plan *plan, int leader, const struct side *side, const void *send,
                    void *recv) {
  struct twolevel *state = plan->method_state;
  const MPI_Op op = call_of(plan)->op;
  const struct roles roles = to_leader(state, leader, 1);
  int error = SWP_SUCCESS;
  if (state->by_memory)
    return swp_boards_reduce(plan, &state->boards, &roles, side, op, send, recv);
  MPI_TRY(PMPI_Reduce(send, recv, side->count, side->type, op, leader, state->node));
done:
  return error;
}

int swp_node_plan(struct swp_plan *plan) {
  struct twolevel *state = plan->method_state;
  state->finished = swp_plan_allocate(plan, state->size, sizeof *state->finished);
  state->spans = swp_plan_allocate(plan, SPANS * state->size, sizeof *state->spans);
  const bool allocated = state->finished != NULL && state->spans != NULL;
  int error = allocated ? SWP_SUCCESS : swp_plan_no_memory(plan);
  error = swp_sharing_take(plan, plan->topology->node_arena, state->node, error, BOARDS_PART_BYTES,
                           &state->boards.share);
  if (error != SWP_SUCCESS)
    return error;
  swp_boards_begin(&state->boards, state->local, state->size, state->finished);
  state->by_memory = true;
  return SWP_SUCCESS;
}

void swp_node_free(struct swp_plan *plan) {
  struct twolevel *state = plan->method_state;
  swp_release(state->finished);
  swp_release(state->spans);
  swp_arena_give(plan->topology->node_arena, &state->boards.share);
}

double swp_node_s(const struct spec *spec, enum swp_operation operation, const struct group *node, double m) {
  if (!swp_is_by_memory(spec))
    return swp_textbook_least_s(operation, node, m);
  return node->procs > 1 ? swp_textbook_shared_s(operation, node, m) : 0;
}
