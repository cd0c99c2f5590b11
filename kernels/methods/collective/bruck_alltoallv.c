/*
 * bruck of an alltoallv: a block goes the digits, to base `radix`, of its distance, those of one place in a
 * turn, in which a rank sends radix - 1 messages at most. A message begins with the sizes of its blocks,
 * which the ranks on the way do not know. With `global`, blocks first go to their place on this node, and
 * then, by that radix, between the ranks of their place on all nodes.
 */
#include "blocks.h"
#include "radix.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { RADIX, GLOBAL, LEAST_RADIX = 2, DIMENSIONS = 2 };

/* ---- The grid of ranks ---- */

/* Nodes of as many places, or one of all ranks. The block to a rank that is `places` and `nodes` farther has
   the number places + nodes * (places on a node). */
struct grid {
  const struct swp_plan *plan;
  bool flat;
  int sizes[DIMENSIONS]; /* places, nodes */
  int own[DIMENSIONS];
  int radices[DIMENSIONS];
};

static struct grid grid_of(const struct swp_plan *plan) {
  const struct argument *global = &plan->spec.arguments[GLOBAL];
  const int radix = swp_radix_of(&plan->spec);
  if (!global->given)
    return (struct grid){plan, true, {plan->procs, 1}, {plan->rank, 0}, {radix, radix}};
  return (struct grid){
      plan,
      false,
      {plan->features.ppn, plan->features.nodes},
      {swp_topology_local(plan->topology, plan->rank), swp_topology_node(plan->topology, plan->rank)},
      {radix, (int)global->value}};
}

/* The rank that is so far from this one; distances from -size to size. */
static int rank_at(const struct grid *grid, int places, int nodes) {
  const int place = (grid->own[0] + places + grid->sizes[0]) % grid->sizes[0];
  const int node = (grid->own[1] + nodes + grid->sizes[1]) % grid->sizes[1];
  return grid->flat ? place : swp_topology_rank(grid->plan->topology, node, place);
}

static int rank_along(const struct grid *grid, int dimension, int distance) {
  return dimension == 0 ? rank_at(grid, distance, 0) : rank_at(grid, 0, distance);
}

/* The source (sign -1) or destination of a block. */
static int rank_of(const struct grid *grid, int block, int sign) {
  return rank_at(grid, sign * (block % grid->sizes[0]), sign * (block / grid->sizes[0]));
}

/* ---- Scratch: the sizes of blocks, requests, blocks, and the messages of a turn out and in ---- */

struct rooms {
  int64_t room_bytes; /* of a block in a message, with its size */
  int32_t *sizes;
  MPI_Request *requests;
  char *blocks, *out, *in;
};

static int64_t requests_offset(const struct swp_plan *plan) {
  return (plan->procs * (int64_t)sizeof(int32_t) + 7) / 8 * 8;
}

static struct rooms rooms_of(const struct swp_plan *plan) {
  struct rooms rooms = {.room_bytes = plan->features.most_bytes + (int64_t)sizeof(int32_t)};
  char *scratch = scratch_of(plan);
  rooms.sizes = (int32_t *)(void *)scratch;
  rooms.requests = (MPI_Request *)(void *)(scratch + requests_offset(plan));
  rooms.blocks = (char *)(rooms.requests + 2 * (int64_t)plan->procs);
  rooms.out = rooms.blocks + plan->procs * plan->features.most_bytes;
  rooms.in = rooms.out + plan->procs * rooms.room_bytes;
  return rooms;
}

/* Memory for one rank's block: the block, and its rooms in the messages out and in. */
static int64_t rooms_bytes(int64_t most_bytes) {
  return 3 * most_bytes + 2 * (int64_t)sizeof(int32_t);
}

static int64_t bruck_scratch_bytes(const struct swp_plan *plan) {
  const int64_t rooms = rooms_bytes(plan->features.most_bytes);
  return requests_offset(plan) + plan->procs * (2 * (int64_t)sizeof(MPI_Request) + rooms);
}

/* ---- Execution ---- */

/* The messages of a turn: of the blocks whose distance has a digit other than 0 at the place of this value.
 */
struct turn {
  const struct grid *grid;
  int dimension, value;
};

/* The greatest digit at this place. */
static int most_digit(const struct turn *turn) {
  const int highest = (turn->grid->sizes[turn->dimension] - 1) / turn->value;
  const int radix = turn->grid->radices[turn->dimension];
  return highest < radix ? highest : radix - 1;
}

/* How many distances along the dimension have the digit. */
static int count_distances(const struct turn *turn, int digit) {
  const int64_t size = turn->grid->sizes[turn->dimension], value = turn->value;
  const int64_t cycle = value * turn->grid->radices[turn->dimension];
  const int64_t rest = size % cycle - digit * value;
  return (int)(size / cycle * value + (rest < 0 ? 0 : rest < value ? rest : value));
}

static int count_blocks(const struct turn *turn, int digit) {
  return turn->grid->sizes[1 - turn->dimension] * count_distances(turn, digit);
}

/* The i-th block of a digit: by the distance along the other dimension, then along this one. */
static int block_at(const struct turn *turn, int digit, int distances, int i) {
  const int64_t k = i % distances, value = turn->value;
  const int64_t cycle = value * turn->grid->radices[turn->dimension];
  const int distance = (int)(k / value * cycle + digit * value + k % value), other = i / distances;
  const int places = turn->grid->sizes[0];
  return turn->dimension == 0 ? distance + other * places : other + distance * places;
}

/* Copies the sizes and bytes of a digit's blocks to a message of so many; returns its bytes. */
static int64_t write_message(const struct turn *turn, const struct rooms *rooms, int digit, int count,
                             char *message) {
  const int64_t most = turn->grid->plan->features.most_bytes;
  const int distances = count_distances(turn, digit);
  char *at = message + count * (int64_t)sizeof(int32_t);
  for (int i = 0; i < count; i++) {
    const int block = block_at(turn, digit, distances, i);
    memcpy(message + i * (int64_t)sizeof(int32_t), &rooms->sizes[block], sizeof(int32_t));
    memcpy(at, rooms->blocks + block * most, (size_t)rooms->sizes[block]);
    at += rooms->sizes[block];
  }
  return at - message;
}

static void read_message(const struct turn *turn, const struct rooms *rooms, int digit, int count,
                         const char *message) {
  const int64_t most = turn->grid->plan->features.most_bytes;
  const int distances = count_distances(turn, digit);
  const char *at = message + count * (int64_t)sizeof(int32_t);
  for (int i = 0; i < count; i++) {
    const int block = block_at(turn, digit, distances, i);
    memcpy(&rooms->sizes[block], message + i * (int64_t)sizeof(int32_t), sizeof(int32_t));
    memcpy(rooms->blocks + block * most, at, (size_t)rooms->sizes[block]);
    at += rooms->sizes[block];
  }
}

static int take_turn(struct swp_plan *plan, const struct turn *turn, const struct rooms *rooms) {
  const int last = most_digit(turn);
  int64_t used = 0;
  int n = 0, error = SWP_SUCCESS;
  for (int digit = 1; digit <= last; digit++) {
    const int count = count_blocks(turn, digit);
    MPI_TRY(MPI_Irecv(rooms->in + used, (int)(count * rooms->room_bytes), MPI_PACKED,
                      rank_along(turn->grid, turn->dimension, -digit * turn->value), COLLECTIVE_TAG,
                      plan->comm, &rooms->requests[n++]));
    used += count * rooms->room_bytes;
  }
  used = 0;
  for (int digit = 1; digit <= last; digit++) {
    const int count = count_blocks(turn, digit);
    const int64_t bytes = write_message(turn, rooms, digit, count, rooms->out + used);
    MPI_TRY(MPI_Isend(rooms->out + used, (int)bytes, MPI_PACKED,
                      rank_along(turn->grid, turn->dimension, digit * turn->value), COLLECTIVE_TAG,
                      plan->comm, &rooms->requests[n++]));
    used += count * rooms->room_bytes;
  }
  TRY(swp_complete(plan, n, rooms->requests));
  used = 0;
  for (int digit = 1; digit <= last; digit++) {
    const int count = count_blocks(turn, digit);
    read_message(turn, rooms, digit, count, rooms->in + used);
    used += count * rooms->room_bytes;
  }
done:
  return error;
}

static int bruck_alltoallv(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *to = &call_of(plan)->recv, *from = send == MPI_IN_PLACE ? to : &call_of(plan)->send;
  const struct blocks all = swp_blocks_of_ranks(plan, recv), sent = swp_blocks_sent(plan, send, recv);
  const struct grid grid = grid_of(plan);
  const struct rooms rooms = rooms_of(plan);
  const int64_t most = plan->features.most_bytes;
  int error = SWP_SUCCESS;
  for (int i = 0; i < plan->procs; i++) {
    const int peer = rank_of(&grid, i, 1), items = swp_blocks_items(&sent, peer);
    rooms.sizes[i] = (int32_t)(items * from->item_bytes);
    TRY(swp_pack(plan, from, swp_blocks_at(&sent, peer), items, rooms.blocks + i * most));
  }
  for (int d = 0; d < DIMENSIONS; d++)
    for (int64_t value = 1; value < grid.sizes[d]; value *= grid.radices[d])
      TRY(take_turn(plan, &(struct turn){&grid, d, (int)value}, &rooms));
  for (int i = 0; i < plan->procs; i++) {
    const int peer = rank_of(&grid, i, -1);
    TRY(swp_unpack(plan, to, rooms.blocks + i * most, swp_blocks_items(&all, peer),
                   swp_blocks_at(&all, peer)));
  }
done:
  return error;
}

/* ---- The method ---- */

static const char *grid_applicable(const struct spec *spec, const struct features *features) {
  if (!spec->arguments[GLOBAL].given)
    return NULL;
  if (features->nodes == 1 || features->ppn == 1)
    return "global is for several nodes of several ranks";
  return features->procs == features->nodes * features->ppn ? NULL : "nodes have different numbers of ranks";
}

static const char *rooms_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
  return features->most_bytes <= INT_MAX && rooms_bytes(features->most_bytes) <= INT_MAX / features->procs
             ? NULL
             : "three times as many blocks as ranks, all as the largest, are over 2 GiB - 1";
}

/* Each radix that is new at this number of ranks, alone; up to 8 also within nodes, with one between them:
   two levels lose where larger radices win. */
static bool bruck_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  static const struct {
    int radix, global;
  } proposed[] = {{2, 0}, {2, 2}, {2, 4}, {4, 0}, {4, 2}, {4, 4}, {8, 0}, {8, 2}, {8, 4}, {16, 0}, {32, 0}};
  (void)operation;
  if (index >= (int)(sizeof proposed / sizeof proposed[0]))
    return false;
  const int radix = proposed[index].radix, global = proposed[index].global;
  if (radix > LEAST_RADIX && radix > procs)
    return false;
  if (global == 0)
    snprintf(text, length, "bruck:radix=%d", radix);
  else
    snprintf(text, length, "bruck:radix=%d,global=%d", radix, global);
  return true;
}

static int bruck_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct argument *global = &estimate->spec->arguments[GLOBAL];
  const struct group group = swp_group(plan, estimate->model);
  *seconds = swp_radix_uneven_bruck_s(&group, (double)plan->features.bytes, swp_radix_of(estimate->spec),
                                      global->given ? (int)global->value : 0);
  return SWP_SUCCESS;
}

const struct method swp_uneven_bruck = {
    .name = "bruck",
    .summary = "turns of radix - 1 messages that forward blocks of any sizes, all together or node by node",
    .source = "Fan, Domke, Ba, Kumar, Parameterized algorithms for non-uniform all-to-all, HPDC 2025",
    .usage = "radix=R[,global=G] (each 2 to 1024; a radix of 2 and one level when not given)",
    .parameters =
        {[RADIX] = {.name = "radix",
                    .type = PARAMETER_INTEGER,
                    .low = LEAST_RADIX,
                    .high = 1024,
                    .otherwise = LEAST_RADIX},
         [GLOBAL] = {.name = "global", .type = PARAMETER_INTEGER, .low = LEAST_RADIX, .high = 1024}},
    .applicable = grid_applicable,
    .variant = bruck_variant,
    .estimate = bruck_estimate,
    .procedures =
        {
            [SWP_ALLTOALLV] = {bruck_alltoallv, bruck_scratch_bytes, rooms_applicable},
        },
};
