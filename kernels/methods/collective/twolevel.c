/*
 * twolevel: within the nodes and between them, each by the MPI library: one rank of every node, its leader,
 * speaks for the node. MPI libraries do this themselves where they know the nodes; here it also works on
 * virtual ones. With node=shared ranks of a node use its memory instead; with leaders=N a node has several.
 */
#include "twolevel.h"

#include "parts.h"
#include "textbook.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool has_leaders(const struct spec *spec) {
  return spec->arguments[LEADERS].given;
}

/* The proposed specs of an operation are some of these, from one up to another. */
static const char *const specs[] = {
    "twolevel",           "twolevel:node=shared",           "twolevel:leaders=2",
    "twolevel:leaders=4", "twolevel:node=shared,leaders=2", "twolevel:node=shared,leaders=4"};
enum { WITH_MEMORY = 1, WITH_LEADERS, SPECS = sizeof specs / sizeof specs[0] };

static bool can_have_leaders(enum swp_operation operation) {
  return operation == SWP_BCAST || operation == SWP_ALLREDUCE || operation == SWP_ALLGATHER ||
         operation == SWP_ALLTOALL;
}

static bool twolevel_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  const int first = operation == SWP_ALLTOALL ? WITH_LEADERS : 0;
  const int end = can_have_leaders(operation)   ? SPECS
                  : operation == SWP_ALLGATHERV ? WITH_MEMORY
                                                : WITH_LEADERS;
  (void)procs;
  return first + index < end && snprintf(text, length, "%s", specs[first + index]) > 0;
}

static const char *twolevel_applicable(const struct spec *spec, const struct features *features) {
  const char *why =
      swp_is_by_memory(spec) ? swp_sharing_applicable_on_nodes(features) : swp_nodes_applicable(features);
  if (why != NULL || !has_leaders(spec))
    return why;
  if (!can_have_leaders(features->operation))
    return "leaders=N is for bcast, allreduce, allgather and alltoall";
  return swp_leaders_applicable(spec, features);
}

/* ---- Planning ---- */

/* Room of the same size for each node, even if some have fewer ranks. */
static int64_t slot_of(const struct swp_plan *plan, int rank) {
  return (int64_t)swp_topology_node(plan->topology, rank) * plan->features.ppn +
         swp_topology_local(plan->topology, rank);
}

static void find_nodes(const struct swp_plan *plan, struct twolevel *state) {
  const struct topology *topology = plan->topology;
  state->number = swp_topology_node(topology, plan->rank);
  state->local = swp_topology_local(topology, plan->rank);
  state->size = swp_topology_node_size(topology, state->number);
  state->least = swp_topology_least(topology);
  state->in_order = true;
  for (int rank = 0; rank < plan->procs && state->in_order; rank++)
    state->in_order = slot_of(plan, rank) == rank;
}

static void twolevel_free(struct swp_plan *plan) {
  struct twolevel *state = plan->method_state;
  if (state == NULL)
    return;
  swp_node_free(plan);
  swp_part_give(plan, &state->node);
  swp_part_give(plan, &state->peers);
  swp_part_give(plan, &state->group);
}

static int twolevel_plan(struct swp_plan *plan) {
  struct twolevel *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state != NULL)
    state->node = state->peers = state->group = MPI_COMM_NULL;
  int error = swp_agree(plan->comm, state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan));
  if (error != SWP_SUCCESS)
    return error;
  find_nodes(plan, state);
  const struct division peers = {"peers", plan->hints.ppn, plan->hints.placement};
  TRY(swp_part_take_node(plan, &state->node));
  TRY(swp_part_take(plan, &peers, state->local, state->number, &state->peers));
  if (swp_is_by_memory(&plan->spec))
    TRY(swp_agree(plan->comm, swp_node_plan(plan)));
  if (has_leaders(&plan->spec))
    TRY(swp_leaders_plan(plan));
  snprintf(plan->arrangement, sizeof plan->arrangement, "%d nodes of up to %d ranks", plan->features.nodes,
           plan->features.ppn);
done:
  return error;
}

/* ---- Leaders ---- */

/* This rank's role in a call. The leaders are the root and its peers, if it has one on each node; else the
   first rank of each. */
struct place {
  int leader; /* local number of the leaders */
  int root_node;
  int root_leader; /* the leader of the root's node, a rank of all */
  bool leads, is_root, leads_root;
};

static struct place find_place(const struct swp_plan *plan) {
  const struct twolevel *state = plan->method_state;
  int root = plan->features.root, local = swp_topology_local(plan->topology, root);
  struct place place = {.leader = local < state->least ? local : 0,
                        .root_node = swp_topology_node(plan->topology, root)};
  place.root_leader = swp_topology_rank(plan->topology, place.root_node, place.leader);
  place.leads = state->local == place.leader;
  place.is_root = plan->rank == root;
  place.leads_root = plan->rank == place.root_leader;
  return place;
}

static const char *node_applicable(const struct spec *spec, const struct features *features, bool reduces) {
  return swp_is_by_memory(spec) ? swp_boards_cannot(features, features->ppn, reduces) : NULL;
}

static const char *bcast_applicable(const struct spec *spec, const struct features *features) {
  const char *why = swp_image_applicable(spec, features);
  return why != NULL ? why : node_applicable(spec, features, false);
}

static int64_t bcast_scratch_bytes(const struct swp_plan *plan) {
  return has_leaders(&plan->spec) ? swp_leaders_bcast_scratch_bytes(plan) : swp_image_scratch_bytes(plan);
}

/* A root that is not a leader first distributes the data on its node, and so to the leader. */
static int twolevel_bcast(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  struct place place = find_place(plan);
  int size = (int)plan->features.total_bytes, error = SWP_SUCCESS;
  bool node_first = state->number == place.root_node && plan->features.root != place.root_leader;
  char *image;
  (void)send;
  if (state->leaders > 0)
    return swp_leaders_bcast(plan, recv);
  TRY(swp_image_begin(plan, recv, &image));
  if (node_first)
    TRY(swp_node_bcast(plan, swp_topology_local(plan->topology, plan->features.root), image, size));
  if (place.leads)
    MPI_TRY(PMPI_Bcast(image, size, MPI_BYTE, place.root_node, state->peers));
  if (!node_first)
    TRY(swp_node_bcast(plan, place.leader, image, size));
  TRY(swp_image_end(plan, image, recv));
done:
  return error;
}

/* ---- Blocks ---- */

static const char *blocks_applicable(const struct spec *spec, const struct features *features) {
  int64_t slots = (int64_t)features->nodes * features->ppn;
  return features->bytes <= INT_MAX / slots ? node_applicable(spec, features, false)
                                            : "the blocks of all ranks are over 2 GiB - 1";
}

static const char *allgatherv_applicable(const struct spec *spec, const struct features *features) {
  return swp_is_by_memory(spec) ? "node=shared does no allgatherv" : swp_total_applicable(spec, features);
}

static int64_t slots_bytes(const struct swp_plan *plan) {
  return (int64_t)plan->features.nodes * plan->features.ppn * plan->features.bytes;
}

static int64_t node_bytes(const struct swp_plan *plan) {
  return plan->features.ppn * plan->features.bytes;
}

/* Returns whether items of a side are the blocks in the slots of all nodes. */
static bool is_slots(const struct swp_plan *plan, const struct side *side) {
  const struct twolevel *state = plan->method_state;
  return side->dense && state->in_order && plan->procs == plan->features.nodes * plan->features.ppn;
}

/* Copy slots to the order of ranks, and back. */
static int unpack_slots(const struct swp_plan *plan, const struct side *side, const char *slots, void *recv) {
  const struct twolevel *state = plan->method_state;
  int error = SWP_SUCCESS;
  if (state->in_order)
    return swp_unpack(plan, side, slots, (int64_t)plan->procs * side->count, recv);
  for (int rank = 0; rank < plan->procs; rank++)
    TRY(swp_unpack(plan, side, slots + slot_of(plan, rank) * plan->features.bytes, side->count,
                   swp_item(side, recv, (int64_t)rank * side->count)));
done:
  return error;
}

static int pack_slots(const struct swp_plan *plan, const struct side *side, const void *send, char *slots) {
  int error = SWP_SUCCESS;
  for (int rank = 0; rank < plan->procs; rank++)
    TRY(swp_pack(plan, side, swp_item(side, send, (int64_t)rank * side->count), side->count,
                 slots + slot_of(plan, rank) * plan->features.bytes));
done:
  return error;
}

/* The blocks of a node, gathered at a rank of it, where `blocks` has room for all, else for this rank's. The
   unused room of a small node is sent too. */
static int gather_node(struct swp_plan *plan, int leader, const void *send, const void *recv, char *blocks) {
  const struct twolevel *state = plan->method_state;
  int block = (int)plan->features.bytes, error = SWP_SUCCESS;
  bool leads = state->local == leader;
  TRY(swp_pack_own(plan, send, recv, leads ? blocks + (int64_t)leader * block : blocks));
  if (leads)
    memset(blocks + (int64_t)state->size * block, 0,
           (size_t)(node_bytes(plan) - (int64_t)state->size * block));
  TRY(swp_node_gather(plan, leader, blocks));
done:
  return error;
}

/* The slots of all nodes at the root and at its leader, those of the node at other leaders. */
static int64_t rooted_scratch_bytes(const struct swp_plan *plan, const struct side *all, int64_t own_bytes) {
  struct place place = find_place(plan);
  if (place.is_root && is_slots(plan, all))
    return place.leads_root ? 0 : own_bytes;
  if (place.is_root || place.leads_root)
    return slots_bytes(plan);
  return place.leads ? node_bytes(plan) : own_bytes;
}

static int64_t gather_scratch_bytes(const struct swp_plan *plan) {
  return rooted_scratch_bytes(plan, &call_of(plan)->recv,
                              call_of(plan)->send.dense ? 0 : plan->features.bytes);
}

static int twolevel_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct call *call = call_of(plan);
  struct place place = find_place(plan);
  int node_size = (int)node_bytes(plan), all = (int)slots_bytes(plan), error = SWP_SUCCESS;
  char *slots = place.is_root && is_slots(plan, &call->recv) ? recv : scratch_of(plan),
       *blocks = scratch_of(plan);
  if (place.leads_root)
    blocks = slots + (int64_t)state->number * node_size;
  else if (place.is_root)
    blocks = slots + slot_of(plan, plan->rank) * plan->features.bytes;
  else if (!place.leads && call->send.dense)
    blocks = (char *)send;
  TRY(gather_node(plan, place.leader, send, recv, blocks));
  if (place.leads_root)
    MPI_TRY(
        PMPI_Gather(MPI_IN_PLACE, 0, MPI_BYTE, slots, node_size, MPI_BYTE, place.root_node, state->peers));
  else if (place.leads)
    MPI_TRY(PMPI_Gather(blocks, node_size, MPI_BYTE, NULL, 0, MPI_BYTE, place.root_node, state->peers));
  if (place.leads_root && !place.is_root)
    TRY(swp_send(plan, slots, all, MPI_BYTE, plan->features.root));
  else if (place.is_root && !place.leads_root)
    TRY(swp_receive(plan, slots, all, MPI_BYTE, place.root_leader));
  if (place.is_root && slots != recv)
    TRY(unpack_slots(plan, &call->recv, slots, recv));
done:
  return error;
}

static int64_t scatter_scratch_bytes(const struct swp_plan *plan) {
  return rooted_scratch_bytes(plan, &call_of(plan)->send, plan->features.bytes);
}

/* Slots from the root to its leader, and the blocks of each node to its leader. */
static int scatter_nodes(struct swp_plan *plan, const struct place *place, const char *slots, char *blocks) {
  const struct twolevel *state = plan->method_state;
  int node_size = (int)node_bytes(plan), all = (int)slots_bytes(plan), error = SWP_SUCCESS;
  if (place->is_root && !place->leads_root)
    TRY(swp_send(plan, slots, all, MPI_BYTE, place->root_leader));
  else if (place->leads_root && !place->is_root)
    TRY(swp_receive(plan, scratch_of(plan), all, MPI_BYTE, plan->features.root));
  if (place->leads_root)
    MPI_TRY(
        PMPI_Scatter(slots, node_size, MPI_BYTE, MPI_IN_PLACE, 0, MPI_BYTE, place->root_node, state->peers));
  else if (place->leads)
    MPI_TRY(PMPI_Scatter(NULL, 0, MPI_BYTE, blocks, node_size, MPI_BYTE, place->root_node, state->peers));
done:
  return error;
}

static int twolevel_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct call *call = call_of(plan);
  struct place place = find_place(plan);
  int error = SWP_SUCCESS;
  const char *slots = place.is_root && is_slots(plan, &call->send) ? send : scratch_of(plan);
  char *blocks = scratch_of(plan);
  if (place.is_root && slots != send)
    TRY(pack_slots(plan, &call->send, send, scratch_of(plan)));
  TRY(scatter_nodes(plan, &place, slots, blocks));
  if (place.leads_root)
    blocks = (char *)slots + state->number * node_bytes(plan);
  else if (!place.leads && recv != MPI_IN_PLACE && call->recv.dense)
    blocks = recv;
  TRY(swp_node_scatter(plan, place.leader, blocks));
  if (place.leads)
    blocks += state->local * plan->features.bytes;
  if (recv != MPI_IN_PLACE && blocks != recv)
    TRY(swp_unpack(plan, &call->recv, blocks, call->recv.count, recv));
done:
  return error;
}

static int64_t allgather_scratch_bytes(const struct swp_plan *plan) {
  if (has_leaders(&plan->spec))
    return swp_leaders_allgather_scratch_bytes(plan);
  return is_slots(plan, &call_of(plan)->recv) ? 0 : slots_bytes(plan);
}

static int twolevel_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct side *side = &call_of(plan)->recv;
  int node_size = (int)node_bytes(plan), error = SWP_SUCCESS;
  if (state->leaders > 0)
    return swp_leaders_allgather(plan, send, recv);
  char *slots = is_slots(plan, side) ? recv : scratch_of(plan);
  int64_t first =
      state->local == 0 ? state->number * node_bytes(plan) : slot_of(plan, plan->rank) * plan->features.bytes;
  TRY(gather_node(plan, 0, send, recv, slots + first));
  if (state->local == 0)
    MPI_TRY(PMPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, slots, node_size, MPI_BYTE, state->peers));
  TRY(swp_node_bcast(plan, 0, slots, (int)slots_bytes(plan)));
  if (slots != recv)
    TRY(unpack_slots(plan, side, slots, recv));
done:
  return error;
}

/* ---- Alltoall: by the leaders of twolevel_leaders.c only ---- */

static const char *alltoall_applicable(const struct spec *spec, const struct features *features) {
  if (!has_leaders(spec))
    return "an alltoall needs leaders=N";
  const char *why = swp_leaders_alltoall_applicable(spec, features);
  return why != NULL ? why : node_applicable(spec, features, false);
}

/* ---- Reductions: in the order of nodes ---- */

static const char *reduction_applicable(const struct spec *spec, const struct features *features) {
  const char *why = swp_commutes(spec, features);
  return why != NULL ? why : node_applicable(spec, features, true);
}

/* The node's sum at its leader; the sum of all at the root's leader for the root. Not in place, where the
   MPI_Reduce of MPICH 4.0.2 fails. */
static int64_t reduce_scratch_bytes(const struct swp_plan *plan) {
  struct place place = find_place(plan);
  return (place.leads + (place.leads_root && !place.is_root)) * swp_recv_room(plan);
}

static int twolevel_reduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  struct place place = find_place(plan);
  int error = SWP_SUCCESS;
  void *partial = NULL, *sum = place.is_root ? recv : NULL;
  if (place.leads)
    partial = swp_recv_place(plan, 0);
  if (place.leads_root && !place.is_root)
    sum = swp_recv_place(plan, 1);
  TRY(swp_node_reduce(plan, place.leader, side, send == MPI_IN_PLACE ? recv : send, partial));
  if (place.leads)
    MPI_TRY(PMPI_Reduce(partial, sum, side->count, side->type, call->op, place.root_node, state->peers));
  if (place.leads_root && !place.is_root)
    TRY(swp_send(plan, sum, side->count, side->type, plan->features.root));
  else if (place.is_root && !place.leads_root)
    TRY(swp_receive(plan, recv, side->count, side->type, place.root_leader));
done:
  return error;
}

static int64_t allreduce_scratch_bytes(const struct swp_plan *plan) {
  return has_leaders(&plan->spec) ? swp_leaders_allreduce_scratch_bytes(plan) : 0;
}

static int twolevel_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  const struct side *side = &call_of(plan)->recv;
  MPI_Op op = call_of(plan)->op;
  bool leads = state->local == 0;
  int error = SWP_SUCCESS;
  if (state->leaders > 0)
    return swp_leaders_allreduce(plan, send, recv);
  TRY(swp_node_reduce(plan, 0, side, send == MPI_IN_PLACE && !leads ? recv : send, leads ? recv : NULL));
  if (leads)
    MPI_TRY(PMPI_Allreduce(MPI_IN_PLACE, recv, side->count, side->type, op, state->peers));
  if (state->by_memory && side->dense)
    TRY(swp_node_bcast(plan, 0, recv, plan->features.bytes));
  else
    MPI_TRY(PMPI_Bcast(recv, side->count, side->type, 0, state->node));
done:
  return error;
}

/* ---- Barrier: a byte of each rank to its leader, and of the leader to each ---- */

static const char *barrier_applicable(const struct spec *spec, const struct features *features) {
  return node_applicable(spec, features, false);
}

static int64_t barrier_scratch_bytes(const struct swp_plan *plan) {
  return node_bytes(plan);
}

static int twolevel_barrier(struct swp_plan *plan, const void *send, void *recv) {
  const struct twolevel *state = plan->method_state;
  char *bytes = memset(scratch_of(plan), 0, (size_t)node_bytes(plan));
  int error = SWP_SUCCESS;
  (void)send, (void)recv;
  TRY(swp_node_gather(plan, 0, bytes));
  if (state->local == 0)
    MPI_TRY(PMPI_Barrier(state->peers));
  TRY(swp_node_bcast(plan, 0, bytes, plan->features.bytes));
done:
  return error;
}

static int twolevel_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  const struct group node = swp_group_part(&group, group.ppn, group.ppn);
  const enum swp_operation operation = plan->operation;
  const double m = (double)plan->features.bytes;
  struct group leaders = group;
  leaders.procs = plan->features.nodes;
  if (has_leaders(estimate->spec)) {
    *seconds = swp_leaders_s(estimate->spec, operation, &group, m);
    return SWP_SUCCESS;
  }
  const bool gathers = operation == SWP_ALLGATHER || operation == SWP_ALLGATHERV;
  const bool has_blocks = gathers || operation == SWP_GATHER || operation == SWP_SCATTER;
  const bool reaches_all = gathers || operation == SWP_ALLREDUCE || operation == SWP_BARRIER;
  const enum swp_operation first = operation == SWP_ALLREDUCE ? SWP_REDUCE
                                   : reaches_all              ? SWP_GATHER
                                                              : operation;
  *seconds = swp_node_s(estimate->spec, first, &node, m) +
             swp_textbook_least_s(operation, &leaders, has_blocks ? group.ppn * m : m);
  if (reaches_all)
    *seconds += swp_node_s(estimate->spec, SWP_BCAST, &node, gathers ? group.procs * m : m);
  return SWP_SUCCESS;
}

const struct method swp_collective_twolevel = {
    .name = "twolevel",
    .summary = "by the MPI library or memory within nodes, and between their leaders",
    .source = "Karonis et al., Exploiting hierarchy in parallel computer networks, IPDPS 2000",
    .usage = NODE_USAGE ", leaders=N (1 to 1024; mpi, and one leader without shares, when not given)",
    .parameters = {[NODE] = NODE_PARAMETER,
                   [LEADERS] = {.name = "leaders", .type = PARAMETER_INTEGER, .low = 1, .high = 1024}},
    .variant = twolevel_variant,
    .applicable = twolevel_applicable,
    .plan = twolevel_plan,
    .free = twolevel_free,
    .estimate = twolevel_estimate,
    .procedures =
        {
            [SWP_BCAST] = {twolevel_bcast, bcast_scratch_bytes, bcast_applicable},
            [SWP_GATHER] = {twolevel_gather, gather_scratch_bytes, blocks_applicable},
            [SWP_SCATTER] = {twolevel_scatter, scatter_scratch_bytes, blocks_applicable},
            [SWP_REDUCE] = {twolevel_reduce, reduce_scratch_bytes, reduction_applicable},
            [SWP_ALLREDUCE] = {twolevel_allreduce, allreduce_scratch_bytes, reduction_applicable},
            [SWP_ALLGATHER] = {twolevel_allgather, allgather_scratch_bytes, blocks_applicable},
            [SWP_ALLTOALL] = {swp_leaders_alltoall, swp_leaders_alltoall_scratch_bytes, alltoall_applicable},
            [SWP_ALLGATHERV] = {swp_twolevel_allgatherv, swp_twolevel_allgatherv_scratch_bytes,
                                allgatherv_applicable},
            [SWP_BARRIER] = {twolevel_barrier, barrier_scratch_bytes, barrier_applicable},
        },
};
