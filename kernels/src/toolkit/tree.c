#include "tree.h"

/* ---- Trees ---- */

/* The rank at a position. */
static int rank_at(const struct swp_plan *plan, int root, int position) {
  return (root + position) % plan->procs;
}

static int position_of(const struct swp_plan *plan, int root, int rank) {
  return (rank - root + plan->procs) % plan->procs;
}

void swp_tree_knomial(const struct swp_plan *plan, int root, int radix, struct tree *tree) {
  const int procs = plan->procs, position = position_of(plan, root, plan->rank);
  int64_t value = 1;
  *tree = (struct tree){.root = root, .position = position, .parent = -1, .first = position};
  for (; value < procs && position / value % radix == 0; value *= radix)
    for (int64_t child = position + value; child < procs && child < position + radix * value;
         child += value) {
      int64_t ranks = child + value <= procs ? value : procs - child;
      tree->children[tree->nchildren++] =
          (struct branch){rank_at(plan, root, (int)child), (int)child, (int)ranks};
    }
  tree->ranks = (int)(position + value <= procs ? value : procs - position);
  if (position != 0)
    tree->parent = rank_at(plan, root, (int)(position - position / value % radix * value));
}

/* A run of ranks [first, end) with its root, in numbers that may lie around 0. */
struct run_of_ranks {
  int first, end, root;
};

/* Cuts a run in halves; the one with the root is *near. */
static void cut(const struct run_of_ranks *run, struct run_of_ranks *near, struct run_of_ranks *far) {
  const int ranks = run->end - run->first, less = ranks / 2;
  if (run->root - run->first < ranks - less) { /* the upper half is the far one */
    const int at = run->end - less;
    *near = (struct run_of_ranks){run->first, at, run->root};
    *far = (struct run_of_ranks){at, run->end, at + less / 3};
  } else {
    const int at = run->first + less;
    *near = (struct run_of_ranks){at, run->end, run->root};
    *far = (struct run_of_ranks){run->first, at, at - 1 - less / 3};
  }
}

void swp_tree_bine(const struct swp_plan *plan, int root, bool in_order, struct tree *tree) {
  const int procs = plan->procs, before = in_order ? root : procs / 3;
  const int position = position_of(plan, root, plan->rank);
  const int own = position < procs - before ? position : position - procs;
  struct run_of_ranks run = {-before, procs - before, 0}, near, far;
  struct branch children[32];
  int n = 0;
  *tree = (struct tree){.root = root, .position = position, .parent = -1};
  while (run.root != own) {
    cut(&run, &near, &far);
    const bool leads = own >= far.first && own < far.end;
    tree->parent = rank_at(plan, root, (run.root + procs) % procs);
    run = leads ? far : near;
  }
  tree->first = position == 0 ? 0 : (run.first + procs) % procs;
  tree->ranks = run.end - run.first;
  for (; run.end - run.first > 1; run = near) {
    cut(&run, &near, &far);
    children[n++] = (struct branch){rank_at(plan, root, (far.root + procs) % procs),
                                    (far.first + procs) % procs, far.end - far.first};
  }
  while (n > 0)
    tree->children[tree->nchildren++] = children[--n];
}

static void find_tree(const struct swp_plan *plan, int root, struct tree *tree) {
  plan->spec.method->tree(plan, root, tree);
}

/* ---- Bcast ---- */

static int bcast(struct swp_plan *plan, void *buffer, int root) {
  const struct side *side = &call_of(plan)->recv;
  MPI_Request requests[TREE_CHILDREN];
  struct tree tree;
  int error = SWP_SUCCESS, n = 0;
  find_tree(plan, root, &tree);
  if (tree.parent >= 0)
    TRY(swp_receive(plan, buffer, side->count, side->type, tree.parent));
  for (int i = tree.nchildren - 1; i >= 0; i--)
    MPI_TRY(MPI_Isend(buffer, side->count, side->type, tree.children[i].rank, COLLECTIVE_TAG, plan->comm,
                      &requests[n++]));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

int swp_tree_bcast(struct swp_plan *plan, const void *send, void *recv) {
  (void)send;
  return bcast(plan, recv, plan->features.root);
}

/* ---- Blocks ---- */

/* Returns whether this rank's own buffer receives in its own type. What arrives packed is otherwise unpacked
   here: MPICH 4.0.2 truncates such messages of over 8 KiB if the type is made of several basic ones. */
static bool receives_in_type(const struct swp_plan *plan) {
  return call_of(plan)->recv.dense;
}

/* Room for the blocks of the subtree, unless this rank needs none: as a leaf it has only its own, and rank 0
   as root has all of them in order. */
static int64_t blocks_scratch_bytes(const struct swp_plan *plan, bool root_in_type, bool leaf_in_type) {
  struct tree tree;
  find_tree(plan, plan->features.root, &tree);
  bool direct = tree.parent < 0 ? plan->rank == 0 && root_in_type : tree.ranks == 1 && leaf_in_type;
  return direct ? 0 : tree.ranks * plan->features.bytes;
}

int64_t swp_tree_gather_scratch_bytes(const struct swp_plan *plan) {
  return blocks_scratch_bytes(plan, receives_in_type(plan), true);
}

int64_t swp_tree_scatter_scratch_bytes(const struct swp_plan *plan) {
  return blocks_scratch_bytes(plan, true, receives_in_type(plan));
}

/* The root's buffer holds blocks by rank, the tree by position: a subtree may be in two parts there. */
struct parts {
  int first, second; /* blocks: from rank `first` on, and from rank 0 on */
  int rank;
};

static struct parts parts_of(const struct swp_plan *plan, const struct tree *tree,
                             const struct branch *child) {
  int first = rank_at(plan, tree->root, child->first), behind = plan->procs - first, blocks = child->ranks;
  return blocks <= behind ? (struct parts){blocks, 0, first} : (struct parts){behind, blocks - behind, first};
}

/* Where the blocks from a position on are in scratch. */
static char *place_of(const struct swp_plan *plan, const struct tree *tree, int position) {
  return scratch_of(plan) + (position - tree->first) * plan->features.bytes;
}

static int gather_to_root(struct swp_plan *plan, const struct tree *tree, const void *send, char *recv) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  const int block = (int)plan->features.bytes;
  MPI_Request requests[TREE_CHILDREN];
  int error = SWP_SUCCESS, n = 0;
  for (int i = 0; i < tree->nchildren; i++) {
    const struct branch *child = &tree->children[i];
    struct parts parts = parts_of(plan, tree, child);
    bool packed = parts.second > 0 || !receives_in_type(plan);
    void *to =
        packed ? place_of(plan, tree, child->first) : swp_item(side, recv, (int64_t)parts.rank * side->count);
    MPI_TRY(MPI_Irecv(to, child->ranks * (packed ? block : side->count), packed ? MPI_PACKED : side->type,
                      child->rank, COLLECTIVE_TAG, plan->comm, &requests[n++]));
  }
  if (send != MPI_IN_PLACE)
    TRY(swp_copy(plan, &call->send, send, call->send.count, side,
                 swp_item(side, recv, (int64_t)plan->rank * side->count), side->count));
  TRY(swp_complete(plan, n, requests));
  for (int i = 0; i < tree->nchildren; i++) {
    struct parts parts = parts_of(plan, tree, &tree->children[i]);
    if (parts.second == 0 && receives_in_type(plan))
      continue;
    const char *from = place_of(plan, tree, tree->children[i].first);
    TRY(swp_unpack(plan, side, from, (int64_t)parts.first * side->count,
                   swp_item(side, recv, (int64_t)parts.rank * side->count)));
    TRY(swp_unpack(plan, side, from + (int64_t)parts.first * block, (int64_t)parts.second * side->count,
                   recv));
  }
done:
  return error;
}

int swp_tree_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *own = &call_of(plan)->send;
  const int block = (int)plan->features.bytes;
  MPI_Request requests[TREE_CHILDREN];
  struct tree tree;
  int n = 0, error = SWP_SUCCESS;
  find_tree(plan, plan->features.root, &tree);
  if (tree.parent < 0)
    return gather_to_root(plan, &tree, send, recv);
  if (tree.ranks == 1)
    return swp_send(plan, send, own->count, own->type, tree.parent);
  for (const struct branch *child = tree.children; child < tree.children + tree.nchildren; child++)
    MPI_TRY(MPI_Irecv(place_of(plan, &tree, child->first), child->ranks * block, MPI_PACKED, child->rank,
                      COLLECTIVE_TAG, plan->comm, &requests[n++]));
  TRY(swp_pack(plan, own, send, own->count, place_of(plan, &tree, tree.position)));
  TRY(swp_complete(plan, n, requests));
  TRY(swp_send(plan, scratch_of(plan), tree.ranks * block, MPI_PACKED, tree.parent));
done:
  return error;
}

static int scatter_from_root(struct swp_plan *plan, const struct tree *tree, const char *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->send;
  MPI_Request requests[TREE_CHILDREN];
  int error = SWP_SUCCESS, n = 0;
  for (int i = tree->nchildren - 1; i >= 0; i--) {
    const struct branch *child = &tree->children[i];
    struct parts parts = parts_of(plan, tree, child);
    const bool packed = parts.second > 0; /* of one child at most */
    const void *from = swp_item(side, send, (int64_t)parts.rank * side->count);
    if (packed) {
      TRY(swp_pack(plan, side, from, (int64_t)parts.first * side->count, scratch_of(plan)));
      TRY(swp_pack(plan, side, send, (int64_t)parts.second * side->count,
                   scratch_of(plan) + parts.first * plan->features.bytes));
      from = scratch_of(plan);
    }
    MPI_TRY(MPI_Isend(from, child->ranks * (packed ? (int)plan->features.bytes : side->count),
                      packed ? MPI_PACKED : side->type, child->rank, COLLECTIVE_TAG, plan->comm,
                      &requests[n++]));
  }
  if (recv != MPI_IN_PLACE)
    TRY(swp_copy(plan, side, swp_item(side, send, (int64_t)plan->rank * side->count), side->count,
                 &call->recv, recv, call->recv.count));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

int swp_tree_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *own = &call_of(plan)->recv;
  const int block = (int)plan->features.bytes;
  MPI_Request requests[TREE_CHILDREN];
  struct tree tree;
  int n = 0, error = SWP_SUCCESS;
  find_tree(plan, plan->features.root, &tree);
  if (tree.parent < 0)
    return scatter_from_root(plan, &tree, send, recv);
  if (tree.ranks == 1 && receives_in_type(plan))
    return swp_receive(plan, recv, own->count, own->type, tree.parent);
  TRY(swp_receive(plan, scratch_of(plan), tree.ranks * block, MPI_PACKED, tree.parent));
  for (int i = tree.nchildren - 1; i >= 0; i--) {
    const struct branch *child = &tree.children[i];
    MPI_TRY(MPI_Isend(place_of(plan, &tree, child->first), child->ranks * block, MPI_PACKED, child->rank,
                      COLLECTIVE_TAG, plan->comm, &requests[n++]));
  }
  TRY(swp_unpack(plan, own, place_of(plan, &tree, tree.position), own->count, recv));
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

/* ---- Reductions ---- */

/* A partial result, the one that is joined with it, and the next one, which arrives meanwhile. */
enum { ROOMS = 3 };

int64_t swp_tree_reduce_scratch_bytes(const struct swp_plan *plan) {
  return ROOMS * swp_recv_room(plan);
}

static int receive_partial(struct swp_plan *plan, const struct tree *tree, int child, void *const *rooms,
                           MPI_Request *request) {
  const struct side *side = &call_of(plan)->recv;
  int error = SWP_SUCCESS;
  if (child < tree->nchildren)
    MPI_TRY(MPI_Irecv(rooms[child % ROOMS], side->count, side->type, tree->children[child].rank,
                      COLLECTIVE_TAG, plan->comm, request));
done:
  return error;
}

/* The i-th child's partial result is in rooms[i % ROOMS], and so is then that of both. What the one before it
   had is no longer needed. */
static int join(struct swp_plan *plan, const struct tree *tree, int i, void **rooms, const void *sum) {
  const struct call *call = call_of(plan);
  const struct side *side = &call->recv;
  void **came = &rooms[i % ROOMS], **before = &rooms[(i + ROOMS - 1) % ROOMS];
  int error = SWP_SUCCESS;
  if (plan->features.commutative || tree->children[i].rank > plan->rank) {
    MPI_TRY(MPI_Reduce_local(sum, *came, side->count, side->type, call->op));
    return SWP_SUCCESS;
  }
  if (i == 0)
    TRY(swp_copy(plan, side, sum, side->count, side, *before, side->count));
  void *joined = *before;
  MPI_TRY(MPI_Reduce_local(*came, joined, side->count, side->type, call->op));
  *before = *came;
  *came = joined;
done:
  return error;
}

/* The result is in recv at the root. The tree's root is another rank if the operation does not commute, and
   positions would not be ranks. */
static int reduce(struct swp_plan *plan, const void *own, void *recv, int root) {
  const struct side *side = &call_of(plan)->recv;
  void *rooms[ROOMS];
  const void *sum = own;
  MPI_Request requests[2];
  struct tree tree;
  int error = SWP_SUCCESS;
  find_tree(plan, root, &tree);
  for (int i = 0; i < ROOMS; i++)
    rooms[i] = swp_recv_place(plan, i);
  if (tree.parent < 0 && plan->rank == root && own != recv && tree.nchildren > 0)
    rooms[(tree.nchildren - 1) % ROOMS] = recv; /* where the last one will be */
  TRY(receive_partial(plan, &tree, 0, rooms, &requests[0]));
  for (int i = 0; i < tree.nchildren; i++) {
    TRY(receive_partial(plan, &tree, i + 1, rooms, &requests[(i + 1) % 2]));
    TRY(swp_complete(plan, 1, &requests[i % 2]));
    TRY(join(plan, &tree, i, rooms, sum));
    sum = rooms[i % ROOMS];
  }
  if (tree.parent >= 0)
    TRY(swp_send(plan, sum, side->count, side->type, tree.parent));
  else if (tree.root != root)
    TRY(swp_send(plan, sum, side->count, side->type, root));
  if (plan->rank == root && tree.root != root)
    TRY(swp_receive(plan, recv, side->count, side->type, tree.root));
  else if (plan->rank == root && sum != recv)
    TRY(swp_copy(plan, side, sum, side->count, side, recv, side->count));
done:
  return error;
}

int swp_tree_reduce(struct swp_plan *plan, const void *send, void *recv) {
  return reduce(plan, send == MPI_IN_PLACE ? recv : send, recv, plan->features.root);
}

int swp_tree_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  int error = reduce(plan, send == MPI_IN_PLACE ? recv : send, recv, 0);
  return error == SWP_SUCCESS ? bcast(plan, recv, 0) : error;
}

/* ---- Barrier ---- */

int swp_tree_barrier(struct swp_plan *plan, const void *send, void *recv) {
  MPI_Request requests[TREE_CHILDREN];
  struct tree tree;
  int error = SWP_SUCCESS;
  (void)send, (void)recv;
  find_tree(plan, 0, &tree);
  for (int i = 0; i < tree.nchildren; i++)
    MPI_TRY(MPI_Irecv(NULL, 0, MPI_BYTE, tree.children[i].rank, COLLECTIVE_TAG, plan->comm, &requests[i]));
  TRY(swp_complete(plan, tree.nchildren, requests));
  if (tree.parent >= 0)
    TRY(swp_send_receive(plan, NULL, 0, MPI_BYTE, tree.parent, NULL, 0, MPI_BYTE, tree.parent));
  for (int i = tree.nchildren - 1, n = 0; i >= 0; i--, n++)
    MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, tree.children[i].rank, COLLECTIVE_TAG, plan->comm, &requests[n]));
  TRY(swp_complete(plan, tree.nchildren, requests));
done:
  return error;
}
