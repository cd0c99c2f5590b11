/* shared: for ranks of one node, by boards in memory that all share. */
#include "blocks.h"
#include "board_steps.h"
#include "textbook.h"

struct state {
  struct boards boards;
  uint64_t *finished; /* the boards' */
};

static const char *call_applicable(const struct spec *spec, const struct features *features) {
  const char *why = swp_total_applicable(spec, features);
  return why != NULL ? why
                     : swp_boards_cannot(features, features->procs, swp_shapes[features->operation].reduces);
}

static void shared_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_release(state->finished);
  swp_arena_give(plan->topology->arena, &state->boards.share);
}

static int shared_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state != NULL)
    state->finished = swp_plan_allocate(plan, plan->procs, sizeof *state->finished);
  const bool allocated = state != NULL && state->finished != NULL;
  int error = allocated ? SWP_SUCCESS : swp_plan_no_memory(plan);
  struct share *share = state != NULL ? &state->boards.share : NULL;
  error = swp_sharing_take(plan, plan->topology->arena, plan->comm, error, BOARDS_PART_BYTES, share);
  if (error == SWP_SUCCESS)
    swp_boards_begin(&state->boards, plan->rank, plan->procs, state->finished);
  return error;
}

static struct roles roles_of(const struct swp_plan *plan) {
  const struct shape *shape = &swp_shapes[plan->operation];
  const bool root = !shape->rooted || plan->rank == plan->features.root;
  struct roles roles = {.root = shape->rooted ? plan->features.root : -1,
                        .one_writes = shape->send == NONE || shape->send == ALL_AT_ROOT,
                        .one_reads = shape->recv == ALL_AT_ROOT || shape->recv == ONE_AT_ROOT,
                        .out_blocks = swp_holds_all(shape->send) ? plan->procs : 1,
                        .in_blocks = swp_holds_all(shape->recv) ? plan->procs : 1};
  roles.writes = !roles.one_writes || root;
  roles.reads = plan->operation == SWP_BCAST ? !root : !roles.one_reads || root;
  return roles;
}

/* ---- Moving bytes ---- */

/* The packed blocks that this rank sends come first in scratch, before those that it receives. */
static int64_t out_bytes(const struct swp_plan *plan, const struct roles *roles) {
  return roles->writes ? roles->out_blocks * plan->features.bytes : 0;
}

static int64_t moves_scratch_bytes(const struct swp_plan *plan) {
  const struct call *call = call_of(plan);
  const struct roles roles = roles_of(plan);
  const bool dense = (call->send.type == MPI_DATATYPE_NULL || call->send.dense) &&
                     (call->recv.type == MPI_DATATYPE_NULL || call->recv.dense);
  return dense ? 0 : out_bytes(plan, &roles) + (roles.reads ? roles.in_blocks * plan->features.bytes : 0);
}

/* The blocks that this rank sends: of recv where it has no other place for them. */
static int find_out(const struct swp_plan *plan, const struct roles *roles, const void *send,
                    const void *recv, struct images *images) {
  const struct call *call = call_of(plan);
  const bool own = send != MPI_IN_PLACE && plan->operation != SWP_BCAST;
  const struct side *side = own ? &call->send : &call->recv;
  const int64_t first = plan->operation != SWP_BCAST && !own && roles->out_blocks == 1 ? plan->rank : 0;
  const void *blocks = swp_item(side, own ? send : recv, first * side->count);
  images->out = side->dense ? blocks : scratch_of(plan);
  return side->dense
             ? SWP_SUCCESS
             : swp_pack(plan, side, blocks, (int64_t)roles->out_blocks * side->count, scratch_of(plan));
}

static int begin_images(const struct swp_plan *plan, const struct roles *roles, const void *send, void *recv,
                        struct images *images) {
  const struct side *side = &call_of(plan)->recv;
  *images = (struct images){.out = NULL};
  if (roles->reads)
    images->in = side->dense ? recv : scratch_of(plan) + out_bytes(plan, roles);
  return roles->writes ? find_out(plan, roles, send, recv, images) : SWP_SUCCESS;
}

static int shared_move(struct swp_plan *plan, const void *send, void *recv) {
  struct state *state = plan->method_state;
  struct roles roles = roles_of(plan);
  const struct side *side = &call_of(plan)->recv;
  struct images images;
  int error = SWP_SUCCESS;
  roles.reads &= recv != MPI_IN_PLACE;
  TRY(begin_images(plan, &roles, send, recv, &images));
  TRY(swp_boards_move(plan, &state->boards, &roles, &images, plan->features.bytes));
  if (roles.reads && !side->dense)
    TRY(swp_unpack(plan, side, images.in, (int64_t)roles.in_blocks * side->count, recv));
done:
  return error;
}

/* ---- Blocks of different sizes: their spans of recv and of send come first in scratch ---- */

enum { SPANS = 4 };

static int64_t spans_bytes(const struct swp_plan *plan) {
  return SPANS * plan->procs * (int64_t)sizeof(int64_t);
}

static int64_t image_bytes(const struct swp_plan *plan, const struct side *side) {
  return side->type == MPI_DATATYPE_NULL || side->dense ? 0 : plan->features.total_bytes;
}

static int64_t uneven_scratch_bytes(const struct swp_plan *plan) {
  return spans_bytes(plan) + image_bytes(plan, &call_of(plan)->recv) +
         image_bytes(plan, &call_of(plan)->send);
}

/* Blocks lie in the buffer where that has them as bytes, else in an image. */
static struct spans find_spans(const struct blocks *blocks, const struct side *side, int64_t *memory) {
  int64_t *bytes = memory, *places = memory + blocks->n, at = 0;
  for (int i = 0; i < blocks->n; i++) {
    bytes[i] = swp_blocks_items(blocks, i) * side->item_bytes;
    places[i] = side->dense ? swp_blocks_first(blocks, i) * side->extent : at;
    at += bytes[i];
  }
  return (struct spans){bytes, places};
}

static int shared_alltoallv(struct swp_plan *plan, const void *send, void *recv) {
  struct state *state = plan->method_state;
  const bool in_place = send == MPI_IN_PLACE;
  const struct side *to = &call_of(plan)->recv, *from = in_place ? to : &call_of(plan)->send;
  const struct blocks all = swp_blocks_of_ranks(plan, recv), sent = swp_blocks_sent(plan, send, recv);
  const struct roles roles = roles_of(plan);
  int64_t *memory = (int64_t *)(void *)scratch_of(plan);
  char *in_image = scratch_of(plan) + spans_bytes(plan);
  char *out_image = in_place ? in_image : in_image + image_bytes(plan, to);
  int error = SWP_SUCCESS;
  struct images images = {.out = from->dense ? sent.buffer : out_image,
                          .in = to->dense ? recv : in_image,
                          .in_spans = find_spans(&all, to, memory),
                          .out_spans = find_spans(&sent, from, memory + SPANS / 2 * plan->procs)};
  if (!from->dense)
    TRY(swp_blocks_pack(plan, &sent, from, out_image));
  TRY(swp_boards_move(plan, &state->boards, &roles, &images, plan->features.most_bytes));
  if (!to->dense)
    TRY(swp_blocks_unpack(plan, &all, to, in_image));
done:
  return error;
}

/* ---- Reductions ---- */

static int shared_reduce(struct swp_plan *plan, const void *send, void *recv) {
  struct state *state = plan->method_state;
  const struct call *call = call_of(plan);
  const struct roles roles = roles_of(plan);
  return swp_boards_reduce(plan, &state->boards, &roles, &call->recv, call->op, send, recv);
}

static int shared_barrier(struct swp_plan *plan, const void *send, void *recv) {
  struct state *state = plan->method_state;
  (void)send, (void)recv;
  return swp_boards_meet(plan, &state->boards);
}

static int shared_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  *seconds = swp_textbook_shared_s(plan->operation, &group, (double)plan->features.bytes);
  return SWP_SUCCESS;
}

#define MOVES {shared_move, moves_scratch_bytes, call_applicable}
#define REDUCES {shared_reduce, NULL, call_applicable}

const struct method swp_collective_shared = {
    .name = "shared",
    .summary = "boards in memory that the ranks of one node share; O(P) at a reader",
    .source = "Graham, Shipman, MPI support for multi-core architectures: shared memory collectives, 2008",
    .node_memory = true,
    .applicable = swp_sharing_applicable,
    .plan = shared_plan,
    .free = shared_free,
    .estimate = shared_estimate,
    .procedures =
        {
            [SWP_BCAST] = MOVES,
            [SWP_GATHER] = MOVES,
            [SWP_SCATTER] = MOVES,
            [SWP_ALLGATHER] = MOVES,
            [SWP_ALLTOALL] = MOVES,
            [SWP_ALLTOALLV] = {shared_alltoallv, uneven_scratch_bytes, call_applicable},
            [SWP_REDUCE] = REDUCES,
            [SWP_ALLREDUCE] = REDUCES,
            [SWP_REDUCE_SCATTER_BLOCK] = REDUCES,
            [SWP_BARRIER] = {shared_barrier},
        },
};
