/*
 * shared: for ranks of one node. A rank copies what others need to a board in memory that all share, where
 * they read it; what is larger than a board goes piece by piece, the next one while the others read this one.
 * Where blocks of a rank differ by receiver, its board has a piece of each. What is reduced each reader folds
 * from the last rank down to the first, so that all get the same.
 */
#include "boards.h"
#include "call.h"
#include "textbook.h"

#include <limits.h>
#include <string.h>

enum { LEAST_PIECE_BYTES = 32 }; /* of the largest predefined type */

struct state {
  struct boards boards;
  uint64_t *finished; /* the boards' */
};

static const char *moves_applicable(const struct spec *spec, const struct features *features) {
  const char *why = swp_total_applicable(spec, features);
  if (why != NULL)
    return why;
  return features->procs <= BOARD_BYTES / LEAST_PIECE_BYTES ? NULL : "a board has no room for so many ranks";
}

static const char *reduction_applicable(const struct spec *spec, const struct features *features) {
  return features->predefined ? moves_applicable(spec, features)
                              : "the operation or its type is not predefined";
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
  struct share share;
  if (state != NULL)
    state->finished = swp_plan_allocate(plan, plan->procs, sizeof *state->finished);
  const bool allocated = state != NULL && state->finished != NULL;
  int error = allocated ? SWP_SUCCESS : swp_plan_no_memory(plan);
  error = swp_arena_take(plan->topology->arena, plan->comm, error, BOARDS_PART_BYTES, &share);
  if (error != SWP_SUCCESS)
    return error;
  swp_boards_begin(&state->boards, &share, plan->rank, plan->procs, state->finished);
  plan->account += share.bytes;
  return SWP_SUCCESS;
}

/* ---- Who posts what to whom ---- */

/* The roles of a rank in all steps of a call. */
struct roles {
  int root;        /* -1: none */
  bool one_writes; /* the root alone, otherwise every rank */
  bool one_reads;  /* likewise */
  bool writes, reads;
  int out_blocks, in_blocks; /* of this rank, 1 or one for each rank */
};

static struct roles roles_of(const struct swp_plan *plan) {
  const struct shape *shape = &swp_shapes[plan->operation];
  const bool root = !shape->rooted || plan->rank == plan->features.root;
  struct roles roles = {.root = shape->rooted ? plan->features.root : -1,
                        .one_writes = shape->send == NONE || shape->send == ALL_AT_ROOT,
                        .one_reads = shape->recv == ALL_AT_ROOT || shape->recv == ONE_AT_ROOT,
                        .out_blocks = swp_holds_all(shape->send) ? plan->procs : 1,
                        .in_blocks = swp_holds_all(shape->recv) ? plan->procs : 1};
  roles.writes = !roles.one_writes || root;
  roles.reads = !roles.one_reads || root;
  return roles;
}

/* Whether others read what this rank posts. */
static bool has_readers(const struct swp_plan *plan, const struct roles *roles) {
  return roles->writes && plan->procs > 1 && !(roles->one_reads && plan->rank == roles->root);
}

static int reader_of(const struct roles *roles) {
  return roles->one_reads ? roles->root : READ_BY_ALL;
}

static void end_step(struct boards *boards) {
  swp_boards_finish(boards);
  boards->step++;
}

/* ---- Moving bytes ---- */

/* The blocks as they travel. */
struct images {
  const char *out; /* NULL: this rank sends nothing to others */
  char *in;        /* NULL: it receives nothing */
  bool unpacks;
};

static int64_t moves_scratch_bytes(const struct swp_plan *plan) {
  const struct call *call = call_of(plan);
  const struct roles roles = roles_of(plan);
  const bool dense = (call->send.type == MPI_DATATYPE_NULL || call->send.dense) &&
                     (call->recv.type == MPI_DATATYPE_NULL || call->recv.dense);
  return dense ? 0 : (roles.out_blocks + roles.in_blocks) * plan->features.bytes;
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
  *images = (struct images){NULL, NULL, false};
  if (roles->reads && recv != MPI_IN_PLACE && !(plan->operation == SWP_BCAST && roles->writes)) {
    images->unpacks = !side->dense;
    images->in = side->dense ? recv : scratch_of(plan) + roles->out_blocks * plan->features.bytes;
  }
  return roles->writes ? find_out(plan, roles, send, recv, images) : SWP_SUCCESS;
}

static int post_bytes(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                      const struct images *images, int64_t first, int64_t bytes) {
  char *data = swp_board(boards, plan->rank)->data;
  int error = swp_boards_await_readers(plan, boards);
  if (error != SWP_SUCCESS)
    return error;
  for (int to = 0; to < roles->out_blocks; to++)
    if (roles->out_blocks == 1 || to != plan->rank)
      memcpy(data + to * bytes, images->out + to * plan->features.bytes + first, (size_t)bytes);
  swp_boards_post(boards, reader_of(roles));
  return SWP_SUCCESS;
}

/* Reads a rank's piece for this one; its own without the board. */
static int fetch_bytes(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                       const struct images *images, int from, int64_t first, int64_t bytes) {
  const int64_t block = plan->features.bytes, place = roles->out_blocks > 1 ? plan->rank : 0;
  char *to = images->in + (roles->in_blocks > 1 ? from * block : 0) + first;
  const char *data = images->out + place * block + first;
  int error = SWP_SUCCESS;
  if (from != plan->rank) {
    TRY(swp_boards_await(plan, boards, from));
    data = swp_board(boards, from)->data + place * bytes;
  }
  if (to != data)
    memcpy(to, data, (size_t)bytes);
done:
  return error;
}

/* One step: this many bytes of each block, from `first` on. */
static int move_piece(struct swp_plan *plan, const struct roles *roles, const struct images *images,
                      int64_t first, int64_t bytes) {
  struct state *state = plan->method_state;
  struct boards *boards = &state->boards;
  int error = SWP_SUCCESS;
  if (has_readers(plan, roles))
    TRY(post_bytes(plan, boards, roles, images, first, bytes));
  if (images->in != NULL && roles->one_writes)
    TRY(fetch_bytes(plan, boards, roles, images, roles->root, first, bytes));
  else
    for (int i = 0; images->in != NULL && i < plan->procs; i++)
      TRY(fetch_bytes(plan, boards, roles, images, (plan->rank + i) % plan->procs, first, bytes));
  end_step(boards);
done:
  return error;
}

static int shared_move(struct swp_plan *plan, const void *send, void *recv) {
  const struct roles roles = roles_of(plan);
  const struct side *side = &call_of(plan)->recv;
  const int64_t block = plan->features.bytes, most = BOARD_BYTES / roles.out_blocks;
  struct images images;
  int error = SWP_SUCCESS;
  TRY(begin_images(plan, &roles, send, recv, &images));
  for (int64_t first = 0; first < block; first += most)
    TRY(move_piece(plan, &roles, &images, first, block - first < most ? block - first : most));
  if (images.unpacks)
    TRY(swp_unpack(plan, side, images.in, (int64_t)roles.in_blocks * side->count, recv));
done:
  return error;
}

/* ---- Reducing items ---- */

/* The piece of a step: this many items of each block, from `first` on. */
struct items {
  const struct side *side;
  const void *out; /* this rank's operands: where recv is, in place */
  void *recv;
  bool in_place;
  int64_t first;
  int count;
};

static int64_t stride_of(const struct items *items) {
  return items->count * items->side->extent;
}

/* An operand of this rank. */
static const void *operand_at(const struct items *items, int64_t block) {
  return swp_item(items->side, items->out, block * items->side->count + items->first);
}

/* In place, this rank's own operand too, as the result comes where it is. */
static int post_items(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                      const struct items *items) {
  char *data = swp_board(boards, plan->rank)->data;
  const size_t bytes = (size_t)(stride_of(items) - items->side->extent + items->side->span);
  int error = swp_boards_await_readers(plan, boards);
  if (error != SWP_SUCCESS)
    return error;
  for (int to = 0; to < roles->out_blocks; to++)
    memcpy(data + to * stride_of(items), operand_at(items, to), bytes);
  swp_boards_post(boards, reader_of(roles));
  return SWP_SUCCESS;
}

static int fold(struct swp_plan *plan, struct boards *boards, const struct roles *roles,
                const struct items *items) {
  const struct side *side = items->side;
  const int64_t place = roles->out_blocks > 1 ? plan->rank : 0;
  void *sum = swp_item(side, items->recv, items->first);
  int error = SWP_SUCCESS;
  for (int rank = plan->procs - 1; rank >= 0; rank--) {
    const void *operand = operand_at(items, place);
    if (rank != plan->rank || items->in_place) {
      TRY(swp_boards_await(plan, boards, rank));
      operand = swp_board(boards, rank)->data + place * stride_of(items);
    }
    if (rank == plan->procs - 1)
      TRY(swp_copy(plan, side, operand, items->count, side, sum, items->count));
    else
      MPI_TRY(MPI_Reduce_local(operand, sum, items->count, side->type, call_of(plan)->op));
  }
done:
  return error;
}

static int shared_reduce(struct swp_plan *plan, const void *send, void *recv) {
  struct state *state = plan->method_state;
  struct boards *boards = &state->boards;
  const struct roles roles = roles_of(plan);
  const struct side *side = &call_of(plan)->recv;
  const bool in_place = send == MPI_IN_PLACE;
  const int most = (int)(BOARD_BYTES / (roles.out_blocks * side->extent));
  struct items items = {.side = side, .out = in_place ? recv : send, .recv = recv, .in_place = in_place};
  int error = SWP_SUCCESS;
  for (; items.first < side->count; items.first += most) {
    items.count = side->count - items.first < most ? (int)(side->count - items.first) : most;
    if (has_readers(plan, &roles) || in_place)
      TRY(post_items(plan, boards, &roles, &items));
    if (roles.reads)
      TRY(fold(plan, boards, &roles, &items));
    end_step(boards);
  }
done:
  return error;
}

static int shared_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  *seconds =
      plan->procs > 1 ? swp_textbook_shared_s(plan->operation, &group, (double)plan->features.bytes) : 0;
  return SWP_SUCCESS;
}

#define MOVES {shared_move, moves_scratch_bytes, moves_applicable}
#define REDUCES {shared_reduce, NULL, reduction_applicable}

const struct method swp_collective_shared = {
    .name = "shared",
    .summary = "boards in memory that the ranks of one node share; O(P) at a reader",
    .source = "Graham, Shipman, MPI support for multi-core architectures: shared memory collectives, 2008",
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
            [SWP_REDUCE] = REDUCES,
            [SWP_ALLREDUCE] = REDUCES,
            [SWP_REDUCE_SCATTER_BLOCK] = REDUCES,
        },
};
