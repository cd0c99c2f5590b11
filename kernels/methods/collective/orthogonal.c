/*
 * orthogonal: ranks form a grid, coordinate 1 varies fastest, and the MPI library does the collective along
 * one dimension after the other: gathering and reducing along the first one first, and spreading along the
 * last one first, so that blocks stay in the order of ranks. Hartmann, Kuehnemann, Rauber, Ruenger, Adaptive
 * selection of communication methods to optimize collective MPI operations, 2006.
 */
#include "blocks.h"
#include "grid.h"
#include "parts.h"
#include "textbook.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { DIMS, GRID };

/* A dimension, and the ranks that differ from this one only in its coordinate. */
struct level {
  MPI_Comm comm; /* by that coordinate */
  int size, coordinate;
  int stride; /* from one of them to the next; this many ranks lie below this level */
  int first;  /* of the ranks that differ from this one up to this dimension: size * stride in a row */
};

struct state {
  int nlevels;
  struct level levels[];
};

/* ---- The grid ---- */

/* The grid of ndims dimensions whose sizes differ least, the smallest first. False where there is none. */
static bool balance(int procs, int ndims, struct grid *grid) {
  struct grid falling;
  if (ndims < 2 || !swp_grid_choose_exact(procs, ndims, &falling))
    return false;
  int rising[GRID_DIMS];
  for (int d = 0; d < ndims; d++)
    rising[d] = falling.sizes[ndims - 1 - d];
  return swp_grid_from_sizes(procs, ndims, rising, grid);
}

/* NULL when the spec has a grid for this many processes, otherwise why not. */
static const char *choose_grid(const struct spec *spec, int procs, struct grid *grid) {
  const struct argument *dims = &spec->arguments[DIMS], *sizes = &spec->arguments[GRID];
  if (dims->given == sizes->given)
    return "give either dims=N or grid=AxB";
  if (dims->given)
    return balance(procs, (int)dims->value, grid)
               ? NULL
               : "the number of ranks has fewer factors than the grid has dimensions";
  if (sizes->value < 2)
    return "give a grid of at least two dimensions, grid=AxB";
  return swp_grid_from_sizes(procs, (int)sizes->value, sizes->sizes, grid) && !swp_grid_incomplete(grid)
             ? NULL
             : "the sizes of the grid must multiply to the number of ranks";
}

static const char *orthogonal_applicable(const struct spec *spec, const struct features *features) {
  struct grid grid;
  return choose_grid(spec, features->procs, &grid);
}

/* All grids of two and of three dimensions; the balanced ones come first, by a name that fits any number of
   ranks. */
static bool orthogonal_variant(enum swp_operation operation, int index, int procs, char *text,
                               size_t length) {
  (void)operation;
  struct grid balanced[2] = {0};
  const int *two = balanced[0].sizes, *three = balanced[1].sizes;
  for (int n = 2; n <= 3; n++)
    if (balance(procs, n, &balanced[n - 2]) && index-- == 0)
      return snprintf(text, length, "orthogonal:dims=%d", n) > 0;
  for (int a = 2; a <= procs / 2; a++)
    if (procs % a == 0 && a != two[0] && index-- == 0)
      return snprintf(text, length, "orthogonal:grid=%dx%d", a, procs / a) > 0;
  for (int a = 2; a <= procs / 4; a++)
    for (int b = 2, rest = procs / a; procs % a == 0 && b <= rest / 2; b++)
      if (rest % b == 0 && (a != three[0] || b != three[1]) && index-- == 0)
        return snprintf(text, length, "orthogonal:grid=%dx%dx%d", a, b, rest / b) > 0;
  return false;
}

static void orthogonal_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  for (int d = 0; d < state->nlevels; d++)
    swp_part_give(plan, &state->levels[d].comm);
}

static int orthogonal_plan(struct swp_plan *plan) {
  struct grid grid = {0};
  (void)choose_grid(&plan->spec, plan->procs, &grid); /* as it is applicable */
  size_t bytes = sizeof(struct state) + (size_t)grid.ndims * sizeof(struct level);
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, bytes);
  int error = swp_agree(plan->comm, state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan)), stride = 1;
  if (error != SWP_SUCCESS)
    return error;
  for (int d = 0; d < grid.ndims; d++) {
    struct level *level = &state->levels[d];
    int size = grid.sizes[d], above = plan->rank / (stride * size);
    *level = (struct level){MPI_COMM_NULL, size, plan->rank / stride % size, stride, above * stride * size};
    state->nlevels++;
    const struct division division = {"orthogonal", stride, size};
    TRY(swp_part_take(plan, &division, above * stride + plan->rank % stride, plan->rank, &level->comm));
    stride *= size;
  }
done:
  return error;
}

/* ---- Roots ---- */

static int root_of(const struct swp_plan *plan, const struct level *level) {
  return plan->features.root / level->stride % level->size;
}

/*
 * At the levels below the returned one this rank is the root of its group; at that one it is another member,
 * which passes on the gathered data or receives the data to spread. The root itself is one at all levels.
 */
static int root_levels(const struct swp_plan *plan) {
  const struct state *state = plan->method_state;
  int d = 0;
  while (d < state->nlevels && state->levels[d].coordinate == root_of(plan, &state->levels[d]))
    d++;
  return d;
}

/* Ranks whose blocks this one gathers or spreads; they are in a row. */
static int ranks_below(const struct swp_plan *plan) {
  const struct state *state = plan->method_state;
  int d = root_levels(plan);
  return d < state->nlevels ? state->levels[d].stride : plan->procs;
}

/* ---- Bcast, and blocks in the order of ranks ---- */

static int orthogonal_bcast(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  int size = (int)plan->features.total_bytes, top = root_levels(plan), error = SWP_SUCCESS;
  char *image;
  (void)send;
  TRY(swp_image_begin(plan, recv, &image));
  for (int d = state->nlevels - 1; d >= 0; d--)
    if (d <= top)
      MPI_TRY(PMPI_Bcast(image, size, MPI_BYTE, root_of(plan, &state->levels[d]), state->levels[d].comm));
  TRY(swp_image_end(plan, image, recv));
done:
  return error;
}

/* None at the root if its items are bytes already, nor for a single block. */
static int64_t rooted_scratch_bytes(const struct swp_plan *plan, const struct side *all,
                                    const struct side *own) {
  int below = ranks_below(plan);
  if (plan->rank == plan->features.root)
    return all->dense ? 0 : plan->features.total_bytes;
  return below == 1 && own->dense ? 0 : below * plan->features.bytes;
}

static int64_t gather_scratch_bytes(const struct swp_plan *plan) {
  return rooted_scratch_bytes(plan, &call_of(plan)->recv, &call_of(plan)->send);
}

static int orthogonal_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct call *call = call_of(plan);
  int top = root_levels(plan), below = ranks_below(plan), block = (int)plan->features.bytes;
  int first = plan->rank - plan->rank % below, error = SWP_SUCCESS;
  bool root = top == state->nlevels;
  char *bytes = root && call->recv.dense ? recv : scratch_of(plan);
  if (!root && below == 1 && call->send.dense)
    bytes = (char *)send;
  TRY(swp_pack_own(plan, send, recv, bytes + (int64_t)(plan->rank - first) * block));
  for (int d = 0; d < top; d++) {
    const struct level *level = &state->levels[d];
    MPI_TRY(PMPI_Gather(MPI_IN_PLACE, 0, MPI_BYTE, bytes + (int64_t)(level->first - first) * block,
                        level->stride * block, MPI_BYTE, level->coordinate, level->comm));
  }
  if (!root)
    MPI_TRY(PMPI_Gather(bytes, below * block, MPI_BYTE, NULL, 0, MPI_BYTE, root_of(plan, &state->levels[top]),
                        state->levels[top].comm));
  else if (!call->recv.dense)
    TRY(swp_unpack(plan, &call->recv, bytes, (int64_t)plan->procs * call->recv.count, recv));
done:
  return error;
}

static int64_t scatter_scratch_bytes(const struct swp_plan *plan) {
  return rooted_scratch_bytes(plan, &call_of(plan)->send, &call_of(plan)->recv);
}

static int orthogonal_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct call *call = call_of(plan);
  int top = root_levels(plan), below = ranks_below(plan), block = (int)plan->features.bytes;
  int first = plan->rank - plan->rank % below, error = SWP_SUCCESS;
  bool root = top == state->nlevels, direct = !root && below == 1 && call->recv.dense;
  char *bytes = root && call->send.dense ? (char *)send : direct ? recv : scratch_of(plan);
  if (!root)
    MPI_TRY(PMPI_Scatter(NULL, 0, MPI_BYTE, bytes, below * block, MPI_BYTE,
                         root_of(plan, &state->levels[top]), state->levels[top].comm));
  else if (!call->send.dense)
    TRY(swp_pack(plan, &call->send, send, (int64_t)plan->procs * call->send.count, bytes));
  for (int d = top - 1; d >= 0; d--) {
    const struct level *level = &state->levels[d];
    MPI_TRY(PMPI_Scatter(bytes + (int64_t)(level->first - first) * block, level->stride * block, MPI_BYTE,
                         MPI_IN_PLACE, 0, MPI_BYTE, level->coordinate, level->comm));
  }
  if (!direct && recv != MPI_IN_PLACE)
    TRY(swp_unpack(plan, &call->recv, bytes + (int64_t)(plan->rank - first) * block, call->recv.count, recv));
done:
  return error;
}

static int64_t allgather_scratch_bytes(const struct swp_plan *plan) {
  return call_of(plan)->recv.dense ? 0 : plan->features.total_bytes;
}

static int orthogonal_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct side *side = &call_of(plan)->recv;
  int block = (int)plan->features.bytes, error = SWP_SUCCESS;
  char *bytes = side->dense ? recv : scratch_of(plan);
  TRY(swp_pack_own(plan, send, recv, bytes + (int64_t)plan->rank * block));
  for (int d = 0; d < state->nlevels; d++) {
    const struct level *level = &state->levels[d];
    MPI_TRY(PMPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, bytes + (int64_t)level->first * block,
                           level->stride * block, MPI_BYTE, level->comm));
  }
  if (!side->dense)
    TRY(swp_unpack(plan, side, bytes, (int64_t)plan->procs * side->count, recv));
done:
  return error;
}

/* ---- Allgatherv ---- */

/* In scratch: where the block of each rank begins in the bytes of all, and where the last ends; counts and
   displacements for the ranks of a level; and the bytes, when they are not in a row in recv. */
static int64_t offsets_bytes(const struct swp_plan *plan) {
  return (2 * (int64_t)plan->procs + 1) * (int64_t)sizeof(int);
}

static int64_t allgatherv_scratch_bytes(const struct swp_plan *plan) {
  return offsets_bytes(plan) +
         (swp_find_row(call_of(plan), plan->procs) >= 0 ? 0 : plan->features.total_bytes);
}

static int gather_level(const struct level *level, char *bytes, const int *offsets, int *counts) {
  int *displs = counts + level->size, error = SWP_SUCCESS;
  for (int i = 0; i < level->size; i++) {
    displs[i] = offsets[level->first + i * level->stride];
    counts[i] = offsets[level->first + (i + 1) * level->stride] - displs[i];
  }
  MPI_TRY(PMPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, bytes, counts, displs, MPI_BYTE, level->comm));
done:
  return error;
}

static int orthogonal_allgatherv(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct call *call = call_of(plan);
  int *offsets = (int *)(void *)scratch_of(plan), error = SWP_SUCCESS;
  int64_t row = swp_find_row(call_of(plan), plan->procs);
  char *bytes = row >= 0 ? swp_item(&call->recv, recv, row) : scratch_of(plan) + offsets_bytes(plan);
  offsets[0] = 0;
  for (int i = 0; i < plan->procs; i++)
    offsets[i + 1] = offsets[i] + (int)(call->recv_counts[i] * call->recv.item_bytes);
  TRY(swp_pack_own(plan, send, recv, bytes + offsets[plan->rank]));
  for (int d = 0; d < state->nlevels; d++)
    TRY(gather_level(&state->levels[d], bytes, offsets, offsets + plan->procs + 1));
  for (int i = 0; row < 0 && i < plan->procs; i++)
    TRY(swp_unpack(plan, &call->recv, bytes + offsets[i], call->recv_counts[i],
                   swp_item(&call->recv, recv, call->displs[i])));
done:
  return error;
}

/* ---- Alltoall ---- */

static int64_t alltoall_scratch_bytes(const struct swp_plan *plan) {
  return (call_of(plan)->recv.dense ? 1 : 2) * plan->features.total_bytes;
}

/*
 * Before each level the coordinate that varies fastest is that of the level, and is moved to the front: first
 * the destination's, behind the level the source's. In the end they are in the order of ranks again.
 */
static int orthogonal_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct call *call = call_of(plan);
  const struct side *side = send == MPI_IN_PLACE ? &call->recv : &call->send;
  int block = (int)plan->features.bytes, error = SWP_SUCCESS;
  char *bytes = call->recv.dense ? recv : scratch_of(plan) + plan->features.total_bytes;
  const void *from = send == MPI_IN_PLACE ? recv : send;
  if (!side->dense) {
    TRY(swp_pack(plan, side, from, (int64_t)plan->procs * side->count, bytes));
    from = bytes;
  }
  for (int d = 0; d < state->nlevels; d++) {
    const struct level *level = &state->levels[d];
    int rows = plan->procs / level->size;
    swp_blocks_transpose(from, rows, level->size, block, scratch_of(plan));
    MPI_TRY(
        PMPI_Alltoall(scratch_of(plan), rows * block, MPI_BYTE, bytes, rows * block, MPI_BYTE, level->comm));
    from = bytes;
  }
  if (!call->recv.dense)
    TRY(swp_unpack(plan, &call->recv, bytes, (int64_t)plan->procs * call->recv.count, recv));
done:
  return error;
}

/* ---- Reductions: ranks of a group are in order, and so are the groups of the next level ---- */

/* Partial results between levels: two in turn, as the MPI_Reduce of MPICH 4.0.2 fails in place. */
static int64_t reduce_scratch_bytes(const struct swp_plan *plan) {
  int partials = root_levels(plan) - (plan->rank == plan->features.root);
  return (partials < 2 ? partials : 2) * swp_recv_room(plan);
}

static int orthogonal_reduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  int top = root_levels(plan), error = SWP_SUCCESS;
  const void *sum = send == MPI_IN_PLACE ? recv : send;
  for (int d = 0; d < top; d++) {
    const struct level *level = &state->levels[d];
    void *partial = d == state->nlevels - 1 ? recv : swp_recv_place(plan, d % 2);
    MPI_TRY(PMPI_Reduce(sum, partial, side->count, side->type, call->op, level->coordinate, level->comm));
    sum = partial;
  }
  if (top < state->nlevels)
    MPI_TRY(PMPI_Reduce(sum, NULL, side->count, side->type, call->op, root_of(plan, &state->levels[top]),
                        state->levels[top].comm));
done:
  return error;
}

static int orthogonal_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct side *side = &call_of(plan)->recv;
  int error = SWP_SUCCESS;
  for (int d = 0; d < state->nlevels; d++)
    MPI_TRY(PMPI_Allreduce(d == 0 ? send : MPI_IN_PLACE, recv, side->count, side->type, call_of(plan)->op,
                           state->levels[d].comm));
done:
  return error;
}

static int64_t partial_items(const struct swp_plan *plan) {
  const struct state *state = plan->method_state;
  return (int64_t)state->levels[state->nlevels - 1].stride * call_of(plan)->recv.count;
}

static int64_t reduce_scatter_scratch_bytes(const struct swp_plan *plan) {
  return swp_side_room(&call_of(plan)->recv, partial_items(plan));
}

/* The last dimension is the first, so that the blocks that a group distributes are contiguous; they are not
   in the order of ranks. */
static int orthogonal_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  const struct state *state = plan->method_state;
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  int last = state->nlevels - 1, error = SWP_SUCCESS;
  void *partial = swp_side_place(side, partial_items(plan), scratch_of(plan));
  const void *own = send == MPI_IN_PLACE ? recv : send;
  for (int d = last; d > 0; d--)
    MPI_TRY(PMPI_Reduce_scatter_block(d == last ? own : MPI_IN_PLACE, partial,
                                      state->levels[d].stride * side->count, side->type, call->op,
                                      state->levels[d].comm));
  MPI_TRY(PMPI_Reduce_scatter_block(partial, recv, side->count, side->type, call->op, state->levels[0].comm));
done:
  return error;
}

static int orthogonal_estimate(const struct swp_plan *plan, const struct estimate *estimate,
                               double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  struct grid grid = {0};
  (void)choose_grid(estimate->spec, plan->procs, &grid); /* as it is applicable */
  const enum swp_operation operation = plan->operation;
  const bool is_vector = swp_shapes[operation].reduces || operation == SWP_BCAST;
  const double m = (double)plan->features.bytes;
  *seconds = 0;
  for (int d = 0, before = 1; d < grid.ndims; before *= grid.sizes[d++]) {
    const struct group part = swp_group_part(&group, grid.sizes[d], before * grid.sizes[d]);
    double block = is_vector && operation != SWP_REDUCE_SCATTER_BLOCK ? m : before * m;
    if (operation == SWP_ALLTOALL) {
      block = plan->procs / grid.sizes[d] * m;
      *seconds += plan->procs * m * group.copy_s_per_byte;
    }
    *seconds += swp_textbook_least_s(operation, &part, block);
  }
  return SWP_SUCCESS;
}

const struct method swp_collective_orthogonal = {
    .name = "orthogonal",
    .summary = "by the MPI library along the dimensions of a grid of ranks",
    .source = "Hartmann, Kuehnemann, Rauber, Ruenger, Adaptive selection of communication methods, 2006",
    .usage = "dims=2..30 | grid=AxB[xC...]",
    .parameters = {[DIMS] = {.name = "dims", .type = PARAMETER_INTEGER, .low = 2, .high = 30},
                   [GRID] = {.name = "grid", .type = PARAMETER_GRID, .low = 2, .high = INT_MAX}},
    .applicable = orthogonal_applicable,
    .variant = orthogonal_variant,
    .plan = orthogonal_plan,
    .free = orthogonal_free,
    .estimate = orthogonal_estimate,
    .procedures =
        {
            [SWP_BCAST] = {orthogonal_bcast, swp_image_scratch_bytes, swp_image_applicable},
            [SWP_GATHER] = {orthogonal_gather, gather_scratch_bytes, swp_total_applicable},
            [SWP_SCATTER] = {orthogonal_scatter, scatter_scratch_bytes, swp_total_applicable},
            [SWP_REDUCE] = {orthogonal_reduce, reduce_scratch_bytes},
            [SWP_ALLREDUCE] = {orthogonal_allreduce},
            [SWP_ALLGATHER] = {orthogonal_allgather, allgather_scratch_bytes, swp_total_applicable},
            [SWP_ALLGATHERV] = {orthogonal_allgatherv, allgatherv_scratch_bytes, swp_total_applicable},
            [SWP_ALLTOALL] = {orthogonal_alltoall, alltoall_scratch_bytes, swp_total_applicable},
            [SWP_REDUCE_SCATTER_BLOCK] = {orthogonal_reduce_scatter_block, reduce_scatter_scratch_bytes,
                                          swp_total_commutes},
        },
};
