/*
 * binomial: a tree in which the rank at position p, counted from the root, has the one at p without its
 * lowest bit as its parent. Subtrees are runs of positions, so blocks travel without headers. An allreduce is
 * a reduction to rank 0 and a broadcast from there.
 */
#include "call.h"
#include "textbook.h"

enum { CHILDREN = 31 };

/* This rank's place in the tree. */
struct place {
  int position;
  int bit;     /* to its parent; of the root the first power of two that is not below the number of ranks */
  int subtree; /* ranks in it, with this one */
};

static struct place find_place(const struct swp_plan *plan, int root) {
  struct place place = {.position = (plan->rank - root + plan->procs) % plan->procs, .bit = 1};
  while (place.bit < plan->procs && (place.position & place.bit) == 0)
    place.bit <<= 1;
  int behind = plan->procs - place.position;
  place.subtree = place.bit < behind ? place.bit : behind;
  return place;
}

/* The rank this many positions further on, or back. */
static int peer(const struct swp_plan *plan, int distance) {
  return (plan->rank + distance + plan->procs) % plan->procs;
}

/* Ranks in the subtree of the child `bit` further. */
static int child_subtree(const struct place *place, int bit) {
  return place->subtree - bit < bit ? place->subtree - bit : bit;
}

static int tree_bcast(struct swp_plan *plan, void *buffer, int root) {
  const struct side *side = &call_of(plan)->recv;
  struct place place = find_place(plan, root);
  MPI_Request requests[CHILDREN];
  int error = SWP_SUCCESS, n = 0;
  if (place.position != 0)
    TRY(swp_receive(plan, buffer, side->count, side->type, peer(plan, -place.bit)));
  for (int bit = place.bit >> 1; bit > 0; bit >>= 1)
    if (bit < place.subtree)
      MPI_TRY(MPI_Isend(buffer, side->count, side->type, peer(plan, bit), COLLECTIVE_TAG, plan->comm,
                        &requests[n++]));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

static int binomial_bcast(struct swp_plan *plan, const void *send, void *recv) {
  (void)send;
  return tree_bcast(plan, recv, plan->features.root);
}

/* ---- Blocks ---- */

/* Whether this rank's own buffer receives in its own type. What arrives packed is otherwise unpacked here:
   MPICH 4.0.2 truncates such messages of over 8 KiB if the type is made of several basic ones. */
static bool receives_in_type(const struct swp_plan *plan) {
  return call_of(plan)->recv.dense;
}

/* Blocks of the subtree. */
static int64_t subtree_bytes(const struct swp_plan *plan, const struct place *place) {
  return place->subtree * plan->features.bytes;
}

/* A leaf has only its own, and rank 0 as root has all blocks in order. */
static int64_t gather_scratch_bytes(const struct swp_plan *plan) {
  struct place place = find_place(plan, plan->features.root);
  bool direct = place.position == 0 ? plan->rank == 0 && receives_in_type(plan) : place.subtree == 1;
  return direct ? 0 : subtree_bytes(plan, &place);
}

static int64_t scatter_scratch_bytes(const struct swp_plan *plan) {
  struct place place = find_place(plan, plan->features.root);
  bool direct = place.position == 0 ? plan->rank == 0 : place.subtree == 1 && receives_in_type(plan);
  return direct ? 0 : subtree_bytes(plan, &place);
}

/* The root's buffer holds blocks by rank, the tree by position: a subtree may be in two parts there. */
struct parts {
  int first, second; /* blocks: from rank `first` on, and from rank 0 on */
  int rank;
};

static struct parts parts_of(const struct swp_plan *plan, int bit, int blocks) {
  int first = peer(plan, bit), behind = plan->procs - first;
  return blocks <= behind ? (struct parts){blocks, 0, first} : (struct parts){behind, blocks - behind, first};
}

static int gather_to_root(struct swp_plan *plan, const struct place *place, const void *send, char *recv) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  const int block = (int)plan->features.bytes;
  MPI_Request requests[CHILDREN];
  int error = SWP_SUCCESS, n = 0;
  for (int bit = 1; bit < place->subtree; bit <<= 1) {
    int blocks = child_subtree(place, bit);
    struct parts parts = parts_of(plan, bit, blocks);
    bool packed = parts.second > 0 || !receives_in_type(plan);
    void *to = packed ? scratch_of(plan) + (int64_t)bit * block
                      : swp_item(side, recv, (int64_t)parts.rank * side->count);
    MPI_TRY(MPI_Irecv(to, blocks * (packed ? block : side->count), packed ? MPI_PACKED : side->type,
                      peer(plan, bit), COLLECTIVE_TAG, plan->comm, &requests[n++]));
  }
  if (send != MPI_IN_PLACE)
    TRY(swp_copy(plan, &call->send, send, call->send.count, side,
                 swp_item(side, recv, (int64_t)plan->rank * side->count), side->count));
  TRY(swp_complete(plan, n, requests));
  for (int bit = 1; bit < place->subtree; bit <<= 1) {
    struct parts parts = parts_of(plan, bit, child_subtree(place, bit));
    if (parts.second == 0 && receives_in_type(plan))
      continue;
    const char *from = scratch_of(plan) + (int64_t)bit * block;
    TRY(swp_unpack(plan, side, from, (int64_t)parts.first * side->count,
                   swp_item(side, recv, (int64_t)parts.rank * side->count)));
    TRY(swp_unpack(plan, side, from + (int64_t)parts.first * block, (int64_t)parts.second * side->count,
                   recv));
  }
done:
  return error;
}

static int binomial_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  struct place place = find_place(plan, plan->features.root);
  int block = (int)plan->features.bytes, parent = peer(plan, -place.bit), n = 0, error = SWP_SUCCESS;
  MPI_Request requests[CHILDREN];
  if (place.position == 0)
    return gather_to_root(plan, &place, send, recv);
  if (place.subtree == 1)
    return swp_send(plan, send, call->send.count, call->send.type, parent);
  for (int bit = 1; bit < place.subtree; bit <<= 1)
    MPI_TRY(MPI_Irecv(scratch_of(plan) + (int64_t)bit * block, child_subtree(&place, bit) * block, MPI_PACKED,
                      peer(plan, bit), COLLECTIVE_TAG, plan->comm, &requests[n++]));
  TRY(swp_pack(plan, &call->send, send, call->send.count, scratch_of(plan)));
  TRY(swp_complete(plan, n, requests));
  TRY(swp_send(plan, scratch_of(plan), place.subtree * block, MPI_PACKED, parent));
done:
  return error;
}

static int scatter_from_root(struct swp_plan *plan, const struct place *place, const char *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->send;
  MPI_Request requests[CHILDREN];
  int error = SWP_SUCCESS, n = 0;
  for (int bit = place->bit >> 1; bit > 0; bit >>= 1) {
    if (bit >= place->subtree)
      continue;
    int blocks = child_subtree(place, bit);
    struct parts parts = parts_of(plan, bit, blocks);
    const void *from = swp_item(side, send, (int64_t)parts.rank * side->count);
    if (parts.second > 0) {
      TRY(swp_pack(plan, side, from, (int64_t)parts.first * side->count, scratch_of(plan)));
      TRY(swp_pack(plan, side, send, (int64_t)parts.second * side->count,
                   scratch_of(plan) + parts.first * plan->features.bytes));
      from = scratch_of(plan);
    }
    MPI_TRY(MPI_Isend(from, parts.second > 0 ? blocks * (int)plan->features.bytes : blocks * side->count,
                      parts.second > 0 ? MPI_PACKED : side->type, peer(plan, bit), COLLECTIVE_TAG, plan->comm,
                      &requests[n++]));
  }
  if (recv != MPI_IN_PLACE)
    TRY(swp_copy(plan, side, swp_item(side, send, (int64_t)plan->rank * side->count), side->count,
                 &call->recv, recv, call->recv.count));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

static int binomial_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  struct place place = find_place(plan, plan->features.root);
  int block = (int)plan->features.bytes, parent = peer(plan, -place.bit), n = 0, error = SWP_SUCCESS;
  MPI_Request requests[CHILDREN];
  if (place.position == 0)
    return scatter_from_root(plan, &place, send, recv);
  if (place.subtree == 1 && receives_in_type(plan))
    return swp_receive(plan, recv, call->recv.count, call->recv.type, parent);
  TRY(swp_receive(plan, scratch_of(plan), place.subtree * block, MPI_PACKED, parent));
  for (int bit = place.bit >> 1; bit > 0; bit >>= 1)
    if (bit < place.subtree)
      MPI_TRY(MPI_Isend(scratch_of(plan) + (int64_t)bit * block, child_subtree(&place, bit) * block,
                        MPI_PACKED, peer(plan, bit), COLLECTIVE_TAG, plan->comm, &requests[n++]));
  TRY(swp_unpack(plan, &call->recv, scratch_of(plan), call->recv.count, recv));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

/* ---- Reductions ---- */

/* Two partial results. */
static int64_t reduce_scratch_bytes(const struct swp_plan *plan) {
  return 2 * swp_side_room(&call_of(plan)->recv, call_of(plan)->recv.count);
}

/*
 * The result is in recv at the root. A received partial result is of the ranks behind this one, so it is the
 * right operand, and becomes the result. An operation that does not commute needs positions to be ranks, also
 * for other roots.
 */
static int tree_reduce(struct swp_plan *plan, const void *own, void *recv, int root) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  int top = plan->features.commutative ? root : 0, error = SWP_SUCCESS, next = 0;
  struct place place = find_place(plan, top);
  char *second = scratch_of(plan) + swp_side_room(side, side->count);
  void *partial[2] = {swp_side_place(side, side->count, scratch_of(plan)),
                      swp_side_place(side, side->count, second)};
  const void *sum = own;
  if (plan->rank == root && root == top && own != recv) { /* so that the last one is in the right place */
    partial[1] = recv;
    for (int bit = 1; bit < place.subtree; bit <<= 1)
      next = 1 - next;
  }
  for (int bit = 1; bit < place.subtree; bit <<= 1) {
    TRY(swp_receive(plan, partial[next], side->count, side->type, peer(plan, bit)));
    MPI_TRY(MPI_Reduce_local(sum, partial[next], side->count, side->type, call->op));
    sum = partial[next];
    next = 1 - next;
  }
  if (place.position != 0)
    TRY(swp_send(plan, sum, side->count, side->type, peer(plan, -place.bit)));
  if (plan->rank == top && root != top)
    TRY(swp_send(plan, sum, side->count, side->type, root));
  else if (plan->rank == root && root != top)
    TRY(swp_receive(plan, recv, side->count, side->type, top));
  else if (plan->rank == root && sum != recv)
    TRY(swp_copy(plan, side, sum, side->count, side, recv, side->count));
done:
  return error;
}

static int binomial_reduce(struct swp_plan *plan, const void *send, void *recv) {
  return tree_reduce(plan, send == MPI_IN_PLACE ? recv : send, recv, plan->features.root);
}

static int binomial_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  int error = tree_reduce(plan, send == MPI_IN_PLACE ? recv : send, recv, 0);
  return error == SWP_SUCCESS ? tree_bcast(plan, recv, 0) : error;
}

const struct method swp_collective_binomial = {
    .name = "binomial",
    .summary = "along a binomial tree; allreduce as reduce and bcast",
    .source = "Hartmann, Kuehnemann, Rauber, Ruenger, Adaptive selection of communication methods, 2006",
    .estimate = swp_estimate_textbook,
    .procedures =
        {
            [SWP_BCAST] = {binomial_bcast},
            [SWP_GATHER] = {binomial_gather, gather_scratch_bytes, swp_total_applicable},
            [SWP_SCATTER] = {binomial_scatter, scatter_scratch_bytes, swp_total_applicable},
            [SWP_REDUCE] = {binomial_reduce, reduce_scratch_bytes},
            [SWP_ALLREDUCE] = {binomial_allreduce, reduce_scratch_bytes},
        },
};
