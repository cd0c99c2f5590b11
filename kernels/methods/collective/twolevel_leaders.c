/*
 * twolevel with several leaders: the ranks of a node are as many groups as it has leaders, the first of each.
 * A leader has a share of the data on all nodes: a slice of a vector, or the blocks of its group. Peers,
 * which lead the same group on each node, exchange their shares at the same time.
 */
#include "twolevel.h"

#include "blocks.h"
#include "parts.h"
#include "textbook.h"

#include <limits.h>

const char *swp_leaders_applicable(const struct spec *spec, const struct features *features) {
  const int leaders = (int)spec->arguments[LEADERS].value;
  if (features->procs != features->nodes * features->ppn)
    return "nodes have different numbers of ranks";
  return features->ppn % leaders == 0 ? NULL : "the leaders do not divide the ranks of a node";
}

int swp_leaders_plan(struct swp_plan *plan) {
  struct twolevel *state = plan->method_state;
  state->leaders = (int)plan->spec.arguments[LEADERS].value;
  state->group_size = state->size / state->leaders;
  state->share = state->local / state->group_size;
  state->leads = state->local % state->group_size == 0;
  const struct division groups = {"groups", plan->hints.ppn,
                                  (int64_t)state->leaders * 2 + plan->hints.placement};
  return swp_part_take(plan, &groups, state->number * state->leaders + state->share, state->local,
                       &state->group);
}

/* ---- Shares of a node's leaders: for the MPI library, of its ranks ---- */

enum { LISTS = 2 };

struct shares {
  int *counts, *places;
};

static int64_t shares_bytes(const struct swp_plan *plan, int lists) {
  const struct twolevel *state = plan->method_state;
  return swp_round_up(lists * state->size * (int64_t)sizeof(int), LINE_BYTES);
}

/* The first of so many items that is a leader's. */
static int first_of(const struct twolevel *state, int64_t items, int leader) {
  return (int)(items * leader / state->leaders);
}

/* Shares out so many items among the leaders, in lists at `memory`; other ranks have none. */
static struct shares share_out(const struct swp_plan *plan, int64_t items, char *memory) {
  const struct twolevel *state = plan->method_state;
  struct shares shares = {.counts = (int *)(void *)memory};
  shares.places = shares.counts + state->size;
  for (int local = 0; local < state->size; local++) {
    const int leader = local / state->group_size;
    const bool leads = local % state->group_size == 0;
    shares.places[local] = first_of(state, items, leader);
    shares.counts[local] = leads ? first_of(state, items, leader + 1) - shares.places[local] : 0;
  }
  return shares;
}

/* ---- On a node ---- */

/* The spans of what comes in, or goes out, over boards to which all ranks write, by local number. */
struct lists {
  int64_t *in_bytes, *in_places, *out_bytes, *out_places;
};

static struct lists lists_of(const struct twolevel *state) {
  int64_t *spans = state->spans;
  const int n = state->size;
  return (struct lists){spans, spans + n, spans + 2 * (size_t)n, spans + 3 * (size_t)n};
}

/* `in` is NULL where nothing is received; pieces have at most so many bytes on all ranks. */
static int move(struct swp_plan *plan, const char *out, int out_blocks, char *in, int64_t most_bytes) {
  struct twolevel *state = plan->method_state;
  const struct lists lists = lists_of(state);
  const struct roles roles = {
      .root = -1, .writes = true, .reads = in != NULL, .out_blocks = out_blocks, .in_blocks = state->size};
  const struct images images = {.out = out,
                                .in = in,
                                .out_spans = {lists.out_bytes, lists.out_places},
                                .in_spans = {lists.in_bytes, lists.in_places}};
  return swp_boards_move(plan, &state->boards, &roles, &images, most_bytes);
}

static int spread_by_memory(struct swp_plan *plan, const struct shares *shares, char *items,
                            int64_t item_bytes) {
  const struct twolevel *state = plan->method_state;
  const struct lists lists = lists_of(state);
  int64_t most = 0;
  for (int local = 0; local < state->size; local++) {
    lists.in_bytes[local] = shares->counts[local] * item_bytes;
    lists.in_places[local] = shares->places[local] * item_bytes;
    most = lists.in_bytes[local] > most ? lists.in_bytes[local] : most;
  }
  lists.out_bytes[0] = lists.in_bytes[state->local];
  lists.out_places[0] = lists.in_places[state->local];
  return move(plan, items, 1, items, most);
}

/* Gives the leaders' items to all ranks of the node; those with gaps, of 0 bytes here, by MPI. */
static int spread(struct swp_plan *plan, const struct shares *shares, void *items, MPI_Datatype type,
                  int64_t item_bytes) {
  const struct twolevel *state = plan->method_state;
  int error = SWP_SUCCESS;
  if (state->by_memory && item_bytes > 0)
    return spread_by_memory(plan, shares, items, item_bytes);
  MPI_TRY(PMPI_Allgatherv(MPI_IN_PLACE, 0, type, items, shares->counts, shares->places, type, state->node));
done:
  return error;
}

/* The blocks of a group, of so many bytes, at its leader; elsewhere this rank's. */
static int gather_group(struct swp_plan *plan, char *blocks, int64_t block_bytes) {
  const struct twolevel *state = plan->method_state;
  const struct lists lists = lists_of(state);
  const int block = (int)block_bytes;
  int error = SWP_SUCCESS;
  if (state->by_memory) {
    for (int local = 0; local < state->size; local++) {
      lists.in_bytes[local] = local / state->group_size == state->share ? block_bytes : 0;
      lists.in_places[local] = local % state->group_size * block_bytes;
    }
    lists.out_bytes[0] = block_bytes;
    lists.out_places[0] = 0;
    return move(plan, blocks, 1, state->leads ? blocks : NULL, block_bytes);
  }
  MPI_TRY(state->leads ? PMPI_Gather(MPI_IN_PLACE, 0, MPI_BYTE, blocks, block, MPI_BYTE, 0, state->group)
                       : PMPI_Gather(blocks, block, MPI_BYTE, NULL, 0, MPI_BYTE, 0, state->group));
done:
  return error;
}

/* ---- Vectors ---- */

int64_t swp_leaders_bcast_scratch_bytes(const struct swp_plan *plan) {
  return swp_round_up(swp_image_scratch_bytes(plan), LINE_BYTES) + shares_bytes(plan, LISTS);
}

/* The root hands the slices to the leaders of its node; by memory all of them to all its ranks. */
int swp_leaders_bcast(struct swp_plan *plan, void *recv) {
  const struct twolevel *state = plan->method_state;
  const int root = plan->features.root, root_node = swp_topology_node(plan->topology, root);
  const int root_local = swp_topology_local(plan->topology, root);
  int error = SWP_SUCCESS;
  char *image;
  TRY(swp_image_begin(plan, recv, &image));
  const struct shares shares =
      share_out(plan, plan->features.total_bytes,
                scratch_of(plan) + swp_round_up(swp_image_scratch_bytes(plan), LINE_BYTES));
  char *slice = image + shares.places[state->local];
  const int bytes = shares.counts[state->local];
  const bool has_all = state->by_memory && state->number == root_node;
  if (has_all)
    TRY(swp_node_bcast(plan, root_local, image, plan->features.total_bytes));
  else if (plan->rank == root)
    MPI_TRY(PMPI_Scatterv(image, shares.counts, shares.places, MPI_BYTE, MPI_IN_PLACE, 0, MPI_BYTE,
                          root_local, state->node));
  else if (state->number == root_node)
    MPI_TRY(PMPI_Scatterv(NULL, NULL, NULL, MPI_BYTE, slice, bytes, MPI_BYTE, root_local, state->node));
  if (state->leads)
    MPI_TRY(PMPI_Bcast(slice, bytes, MPI_BYTE, root_node, state->peers));
  if (!has_all)
    TRY(spread(plan, &shares, image, MPI_BYTE, 1));
  TRY(swp_image_end(plan, image, recv));
done:
  return error;
}

/* The node's sum of a slice, before the lists. */
static int64_t slice_room(const struct swp_plan *plan) {
  return swp_round_up(swp_recv_room(plan), LINE_BYTES);
}

int64_t swp_leaders_allreduce_scratch_bytes(const struct swp_plan *plan) {
  return slice_room(plan) + shares_bytes(plan, LISTS);
}

/* The node's sums of the slices at their leaders. */
static int reduce_slices(struct swp_plan *plan, const struct shares *shares, const void *operands,
                         void *sum) {
  const struct twolevel *state = plan->method_state;
  const struct side *side = &call_of(plan)->recv;
  int error = SWP_SUCCESS;
  for (int leader = 0; state->by_memory && leader < state->size; leader += state->group_size) {
    struct side slice = *side;
    slice.count = shares->counts[leader];
    TRY(swp_node_reduce(plan, leader, &slice, swp_item(side, operands, shares->places[leader]),
                        state->local == leader ? sum : NULL));
  }
  if (!state->by_memory)
    MPI_TRY(PMPI_Reduce_scatter(operands, sum, shares->counts, side->type, call_of(plan)->op, state->node));
done:
  return error;
}

int swp_leaders_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct side *side = &call_of(plan)->recv;
  const struct shares shares = share_out(plan, side->count, scratch_of(plan) + slice_room(plan));
  const int items = shares.counts[state->local];
  void *sum = swp_recv_place(plan, 0);
  int error = SWP_SUCCESS;
  TRY(reduce_slices(plan, &shares, send == MPI_IN_PLACE ? recv : send, sum));
  if (state->leads)
    MPI_TRY(PMPI_Allreduce(sum, swp_item(side, recv, shares.places[state->local]), items, side->type,
                           call_of(plan)->op, state->peers));
  TRY(spread(plan, &shares, recv, side->type, side->dense ? side->extent : 0));
done:
  return error;
}

/* ---- Blocks ---- */

/* The place of a rank's block where those of a group lie together, by node. */
static int64_t place_of(const struct swp_plan *plan, int rank) {
  const struct twolevel *state = plan->method_state;
  const int local = swp_topology_local(plan->topology, rank), node = swp_topology_node(plan->topology, rank);
  const int share = local / state->group_size, member = local % state->group_size;
  return ((int64_t)share * plan->features.nodes + node) * state->group_size + member;
}

int64_t swp_leaders_allgather_scratch_bytes(const struct swp_plan *plan) {
  return shares_bytes(plan, LISTS) + plan->procs * plan->features.bytes;
}

int swp_leaders_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct side *side = &call_of(plan)->recv;
  const int block = (int)plan->features.bytes, group_bytes = state->group_size * block;
  const struct shares shares = share_out(plan, (int64_t)plan->procs * block, scratch_of(plan));
  char *blocks = scratch_of(plan) + shares_bytes(plan, LISTS);
  char *share = blocks + shares.places[state->local];
  char *own = blocks + place_of(plan, plan->rank) * block;
  int error = SWP_SUCCESS;
  TRY(swp_pack_own(plan, send, recv, own));
  TRY(gather_group(plan, own, block));
  if (state->leads)
    MPI_TRY(PMPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, share, group_bytes, MPI_BYTE, state->peers));
  TRY(spread(plan, &shares, blocks, MPI_BYTE, 1));
  for (int rank = 0; rank < plan->procs; rank++)
    TRY(swp_unpack(plan, side, blocks + place_of(plan, rank) * block, side->count,
                   swp_item(side, recv, (int64_t)rank * side->count)));
done:
  return error;
}

const char *swp_leaders_alltoall_applicable(const struct spec *spec, const struct features *features) {
  const int64_t group = features->ppn / spec->arguments[LEADERS].value;
  return features->bytes <= INT_MAX / (group * features->procs) ? NULL
                                                                : "the blocks of a group are over 2 GiB - 1";
}

/* Two images: of all blocks of the group at its leader, else of this rank's. */
static int64_t image_bytes(const struct swp_plan *plan) {
  const struct twolevel *state = plan->method_state;
  return (state->leads ? state->group_size : 1) * plan->procs * plan->features.bytes;
}

int64_t swp_leaders_alltoall_scratch_bytes(const struct swp_plan *plan) {
  return shares_bytes(plan, 2 * LISTS) + 2 * image_bytes(plan);
}

static int deliver_by_memory(struct swp_plan *plan, const char *from, int64_t bytes, char *to) {
  const struct twolevel *state = plan->method_state;
  const struct lists lists = lists_of(state);
  for (int local = 0; local < state->size; local++) {
    lists.in_bytes[local] = local % state->group_size == 0 ? bytes : 0;
    lists.in_places[local] = local / state->group_size * bytes;
    lists.out_bytes[local] = state->leads ? bytes : 0;
    lists.out_places[local] = state->leads ? local * bytes : 0;
  }
  return move(plan, from, state->size, to, bytes);
}

/* Gives each rank, from each leader of its node, the blocks of the leader's group on all nodes. */
static int deliver(struct swp_plan *plan, const char *from, char *to) {
  const struct twolevel *state = plan->method_state;
  const int bytes = (int)(plan->features.nodes * state->group_size * plan->features.bytes);
  const struct shares in = share_out(plan, (int64_t)state->leaders * bytes, scratch_of(plan));
  struct shares out = {in.places + state->size, in.places + 2 * state->size};
  int error = SWP_SUCCESS;
  if (state->by_memory)
    return deliver_by_memory(plan, from, bytes, to);
  for (int local = 0; local < state->size; local++) {
    out.counts[local] = state->leads ? bytes : 0;
    out.places[local] = state->leads ? local * bytes : 0;
  }
  MPI_TRY(PMPI_Alltoallv(from, out.counts, out.places, MPI_BYTE, to, in.counts, in.places, MPI_BYTE,
                         state->node));
done:
  return error;
}

/* The blocks of a rank lie by node and local number, where they are for, in the end by place_of. */
int swp_leaders_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct side *to = &call_of(plan)->recv, *from = send == MPI_IN_PLACE ? to : &call_of(plan)->send;
  const int nodes = plan->features.nodes, size = state->size, group = state->group_size;
  const int64_t block = plan->features.bytes;
  const int node_bytes = (int)(group * size * block);
  const struct blocks sent = swp_blocks_sent(plan, send, recv);
  char *one = scratch_of(plan) + shares_bytes(plan, 2 * LISTS), *other = one + image_bytes(plan);
  int error = SWP_SUCCESS;
  for (int i = 0; i < plan->procs; i++)
    TRY(swp_pack(plan, from, swp_blocks_at(&sent, swp_topology_rank(plan->topology, i / size, i % size)),
                 from->count, one + i * block));
  TRY(gather_group(plan, one, plan->procs * block));
  if (state->leads) {
    swp_blocks_transpose(one, group, nodes, size * block, other);
    MPI_TRY(PMPI_Alltoall(other, node_bytes, MPI_BYTE, one, node_bytes, MPI_BYTE, state->peers));
    swp_blocks_transpose(one, nodes * group, size, block, other);
  }
  TRY(deliver(plan, other, one));
  for (int rank = 0; rank < plan->procs; rank++)
    TRY(swp_unpack(plan, to, one + place_of(plan, rank) * block, to->count,
                   swp_item(to, recv, (int64_t)rank * to->count)));
done:
  return error;
}

/* What leaders hand to all ranks of a node counts as an allgather of all of these. By memory they reduce one
   after the other, as each folds its slice before it posts its part of the next. */
double swp_leaders_s(const struct spec *spec, enum swp_operation operation, const struct group *group,
                     double m) {
  const int count = (int)spec->arguments[LEADERS].value;
  if (group->procs % group->ppn != 0 || group->ppn % count != 0)
    return -1;
  const int size = group->ppn / count;
  const struct group node = swp_group_part(group, group->ppn, group->ppn);
  const struct group own = swp_group_part(group, size, size),
                     others = swp_group_part(group, count, group->ppn);
  struct group leaders = *group;
  leaders.procs = group->procs / group->ppn;
  const double slice = m / count, piece = m / group->ppn;
  const bool by_memory = swp_is_by_memory(spec);
  switch (operation) {
  case SWP_BCAST:
    return (by_memory ? swp_node_s(spec, SWP_BCAST, &node, m)
                      : swp_node_s(spec, SWP_SCATTER, &others, slice)) +
           swp_textbook_least_s(SWP_BCAST, &leaders, slice) + swp_node_s(spec, SWP_ALLGATHER, &node, piece);
  case SWP_ALLREDUCE:
    return (by_memory ? count * swp_node_s(spec, SWP_REDUCE, &node, slice)
                      : swp_node_s(spec, SWP_REDUCE_SCATTER_BLOCK, &node, piece)) +
           swp_textbook_least_s(SWP_ALLREDUCE, &leaders, slice) +
           swp_node_s(spec, SWP_ALLGATHER, &node, piece);
  case SWP_ALLGATHER:
    return swp_node_s(spec, SWP_GATHER, &own, m) + swp_textbook_least_s(SWP_ALLGATHER, &leaders, size * m) +
           swp_node_s(spec, SWP_ALLGATHER, &node, leaders.procs * m) +
           group->procs * m * group->copy_s_per_byte;
  default:
    return swp_node_s(spec, SWP_GATHER, &own, group->procs * m) +
           swp_textbook_least_s(SWP_ALLTOALL, &leaders, (double)size * group->ppn * m) +
           swp_node_s(spec, SWP_ALLTOALL, &node, (double)leaders.procs * size * m) +
           2.0 * (1 + size) * group->procs * m * group->copy_s_per_byte;
  }
}
