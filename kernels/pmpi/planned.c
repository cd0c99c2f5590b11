/* Irregular collectives as planned exchanges. */
#include "planned.h"

#include "dispatch.h"
#include "self.h"
#include "startup.h"
#include "types.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The data to a rank, or from one. */
struct block {
  int count;
  MPI_Datatype type;
  bool owned; /* the type */
  MPI_Aint at;
  int64_t bytes;
};

struct side {
  int count;            /* of ranks */
  int *ranks;           /* theirs; MPI_PROC_NULL has no block */
  int64_t *planned;     /* bytes of their blocks */
  struct block *blocks; /* of the present call */
  int64_t total;        /* bytes */
  bool in_place;        /* they are sent from the receive buffer, or received where they are already */
  bool in_row;          /* they are contiguous in the application's memory, from `first` on */
  MPI_Aint first;
  char *staging; /* otherwise they are packed here */
};

struct planned {
  struct planned *next; /* of the place */
  enum planned_function function;
  int root, rank;
  swp_plan *plan; /* NULL: left to the MPI library */
  int64_t bytes;
  struct side send, recv;
  void *received; /* by the present execution */
  int error;      /* of the first execution that failed: all later ones return it */
};

bool planned_on, promises_on;

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count + 1, bytes);
  if (memory == NULL) /* the other ranks have theirs, and would wait for this one */
    startup_abort("no memory for a collective by a planned exchange");
  return memory;
}

/* ---- Partners ---- */

static void make_side(struct side *side, int count) {
  side->count = count;
  side->ranks = allocate((size_t)count, sizeof *side->ranks);
  side->planned = allocate((size_t)count, sizeof *side->planned);
  side->blocks = allocate((size_t)count, sizeof *side->blocks);
}

static bool find_in_graph(MPI_Comm comm, struct side *send, struct side *recv) {
  int sources, destinations, weighted;
  if (PMPI_Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted) != MPI_SUCCESS)
    return false;
  make_side(recv, sources);
  make_side(send, destinations);
  int most = sources > destinations ? sources : destinations;
  int *weights = allocate(2 * (size_t)most, sizeof *weights);
  bool found = PMPI_Dist_graph_neighbors(comm, sources, recv->ranks, weights, destinations, send->ranks,
                                         weights + most) == MPI_SUCCESS;
  free(weights);
  return found;
}

static bool find_in_old_graph(MPI_Comm comm, int rank, struct side *send, struct side *recv) {
  int count;
  if (PMPI_Graph_neighbors_count(comm, rank, &count) != MPI_SUCCESS)
    return false;
  make_side(send, count);
  make_side(recv, count);
  return PMPI_Graph_neighbors(comm, rank, count, send->ranks) == MPI_SUCCESS &&
         PMPI_Graph_neighbors(comm, rank, count, recv->ranks) == MPI_SUCCESS;
}

static bool find_in_grid(MPI_Comm comm, struct side *send, struct side *recv) {
  int dims;
  if (PMPI_Cartdim_get(comm, &dims) != MPI_SUCCESS)
    return false;
  make_side(send, 2 * dims);
  make_side(recv, 2 * dims);
  for (int d = 0; d < dims; d++)
    if (PMPI_Cart_shift(comm, d, 1, &send->ranks[2 * d], &send->ranks[2 * d + 1]) != MPI_SUCCESS)
      return false;
  memcpy(recv->ranks, send->ranks, (size_t)send->count * sizeof *send->ranks);
  return true;
}

static bool find_neighbors(const struct place *place, struct side *send, struct side *recv) {
  MPI_Comm comm = atomic_load(&place->comm);
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  return topology == MPI_DIST_GRAPH ? find_in_graph(comm, send, recv)
         : topology == MPI_GRAPH    ? find_in_old_graph(comm, place->rank, send, recv)
         : topology == MPI_CART     ? find_in_grid(comm, send, recv)
                                    : false;
}

static void make_range(struct side *side, int first, int count) {
  make_side(side, count);
  for (int i = 0; i < count; i++)
    side->ranks[i] = first + i;
}

static bool find_partners(const struct place *place, const struct planned_call *given, struct side *send,
                          struct side *recv) {
  const int at_root = place->rank == given->root ? place->procs : 0;
  switch (given->function) {
  case GATHERV:
    make_range(send, given->root, 1);
    make_range(recv, 0, at_root);
    return true;
  case SCATTERV:
    make_range(send, 0, at_root);
    make_range(recv, given->root, 1);
    return true;
  case ALLTOALLW:
    make_range(send, 0, place->procs);
    make_range(recv, 0, place->procs);
    return true;
  default:
    return find_neighbors(place, send, recv);
  }
}

/* ---- Blocks ---- */

/* The properties of a type; queried once for blocks of the same type. */
struct item {
  MPI_Datatype type;
  MPI_Count bytes;
  MPI_Aint extent;
  bool dense; /* contiguous in memory */
};

static bool read_item(MPI_Datatype type, struct item *item) {
  MPI_Aint low;
  bool named;
  if (PMPI_Type_size_x(type, &item->bytes) != MPI_SUCCESS || item->bytes < 0 ||
      PMPI_Type_get_extent(type, &low, &item->extent) != MPI_SUCCESS || !types_named(type, &named))
    return false;
  item->type = type;
  item->dense = named && low == 0 && item->extent == item->bytes;
  return true;
}

/* Where the i-th block of a part is, in bytes. */
static MPI_Aint place_at(const struct part *part, int i, MPI_Aint extent) {
  const MPI_Aint unit = part->types != NULL ? 1 : extent;
  return part->displs != NULL         ? part->displs[i] * unit
         : part->large_displs != NULL ? part->large_displs[i] * unit
         : part->shared               ? 0
                                      : (MPI_Aint)i * (MPI_Aint)part->count * extent;
}

static bool read_block(const struct part *part, int i, struct item *item, struct block *block) {
  MPI_Datatype type = part->types != NULL ? part->types[i] : part->type;
  MPI_Count count = part_count(part, i);
  if (count == 0) /* MPICH allows any type then */
    return true;
  if (count < 0 || type == MPI_DATATYPE_NULL || (type != item->type && !read_item(type, item)) ||
      count > INT_MAX / (item->bytes > 0 ? item->bytes : 1)) /* MPI_Pack takes no more */
    return false;
  *block = (struct block){
      .count = (int)count, .type = type, .at = place_at(part, i, item->extent), .bytes = count * item->bytes};
  return true;
}

/* The blocks that MPI_IN_PLACE stands for are in the other buffer: those of the root for itself, or all of an
   alltoallw. False where MPI does not allow it. */
static bool find_in_place(const struct planned_call *given, bool sends, bool is_root, struct part *part) {
  *part = sends ? given->recv : given->send;
  if (given->function == ALLTOALLW)
    return sends;
  part->first = given->root;
  return is_root && given->function == (sends ? GATHERV : SCATTERV);
}

/* False if MPI would refuse an argument, or a block is too large. */
static bool read_side(const struct planned_call *given, bool sends, bool is_root, struct side *side) {
  struct part part = sends ? given->send : given->recv;
  struct item item = {.type = MPI_DATATYPE_NULL};
  side->in_place = side->count > 0 && (sends ? given->from : given->into) == MPI_IN_PLACE;
  if (side->in_place && !find_in_place(given, sends, is_root, &part))
    return false;
  side->total = 0;
  side->in_row = !side->in_place;
  for (int i = 0; i < side->count; i++) {
    struct block *block = &side->blocks[i];
    *block = (struct block){.type = MPI_DATATYPE_NULL};
    if (side->ranks[i] == MPI_PROC_NULL)
      continue;
    if (!read_block(&part, part.first + i, &item, block))
      return false;
    if (block->bytes == 0)
      continue;
    if (side->total == 0)
      side->first = block->at;
    side->in_row &= item.dense && block->at == side->first + side->total;
    side->total += block->bytes;
  }
  return true;
}

/* A side as lists of an exchange of bytes; `offsets` has one more. Returns the number of ranks. */
static int list(const struct side *side, int *ranks, int64_t *offsets) {
  int count = 0;
  for (int i = 0; i < side->count; i++)
    if (side->ranks[i] != MPI_PROC_NULL) {
      ranks[count++] = side->ranks[i];
      offsets[count] = offsets[count - 1] + side->blocks[i].bytes;
    }
  return count;
}

/* ---- Planning ---- */

/* For `direct`, or its own neighbourhood collective, the MPI library needs none of our copies. */
static bool is_ours(const char *method) {
  return strcmp(method, "direct") != 0 && strcmp(method, "neighbor") != 0;
}

/* Plans on all ranks or none: if a rank's arguments are wrong, no rank plans. */
static void plan(struct place *place, struct planned *made, bool readable) {
  struct side *send = &made->send, *recv = &made->recv;
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  struct swp_statistics problem;
  int *ranks = allocate((size_t)send->count + (size_t)recv->count, sizeof *ranks);
  int64_t *offsets = allocate((size_t)send->count + (size_t)recv->count + 1, sizeof *offsets);
  int *sources = ranks + send->count;
  int64_t *ends = offsets + send->count + 1;
  struct swp_exchange exchange = {.item_bytes = 1,
                                  .nitems = send->total,
                                  .send_ranks = ranks,
                                  .send_offsets = offsets,
                                  .recv_ranks = sources,
                                  .recv_offsets = ends};
  if (readable) {
    exchange.nsends = list(send, ranks, offsets);
    exchange.nrecvs = list(recv, sources, ends);
  }
  hints.table = startup_table();
  if (swp_exchange_plan(place->own, readable ? &exchange : NULL, NULL, &hints, &made->plan) == SWP_SUCCESS) {
    swp_plan_statistics(made->plan, &problem, NULL);
    made->bytes = problem.mavg > 0 ? (int64_t)(problem.vavg_bytes / problem.mavg) : 0;
    if (!is_ours(swp_plan_method(made->plan)))
      swp_plan_free(&made->plan);
  }
  free(ranks);
  free(offsets);
}

/* Both sides of the call. */
static bool read_call(const struct planned_call *given, struct planned *planned) {
  const bool is_root = planned->rank == given->root;
  return read_side(given, true, is_root, &planned->send) && read_side(given, false, is_root, &planned->recv);
}

struct planned *planned_make(struct place *place, const struct planned_call *given) {
  struct planned *made = allocate(1, sizeof *made);
  made->rank = place->rank;
  if (given != NULL) {
    made->function = given->function;
    made->root = given->root;
  }
  if (!place_prepare(place))
    return made;
  bool readable =
      given != NULL && find_partners(place, given, &made->send, &made->recv) && read_call(given, made);
  plan(place, made, readable);
  for (int i = 0; i < made->send.count; i++)
    made->send.planned[i] = made->send.blocks[i].bytes;
  for (int i = 0; i < made->recv.count; i++)
    made->recv.planned[i] = made->recv.blocks[i].bytes;
  return made;
}

void planned_add(struct place *place, struct planned *planned) {
  planned->next = place->planned;
  place->planned = planned;
}

struct planned *planned_find(const struct place *place, const struct planned_call *given, int *others) {
  struct planned *known = place->planned;
  *others = 0;
  while (known != NULL && (known->function != given->function || known->root != given->root)) {
    *others += known->function == given->function;
    known = known->next;
  }
  return known;
}

const char *planned_method(const struct planned *planned) {
  return planned->plan != NULL ? swp_plan_method(planned->plan) : NULL;
}

int64_t planned_bytes(const struct planned *planned) {
  return planned->bytes;
}

bool planned_failed(const struct planned *planned) {
  return planned->error != MPI_SUCCESS;
}

static bool is_as_planned(const struct side *side, const char *direction, char *text, size_t length) {
  for (int i = 0; i < side->count; i++)
    if (side->blocks[i].bytes != side->planned[i]) {
      snprintf(text, length, "%lld bytes %s rank %d, and %lld in the first call",
               (long long)side->blocks[i].bytes, direction, side->ranks[i], (long long)side->planned[i]);
      return false;
    }
  return true;
}

bool planned_set(struct planned *planned, const struct planned_call *given, char *text, size_t length) {
  if (!read_call(given, planned)) {
    snprintf(text, length, "an argument that MPI does not allow, or a block over 2 GiB");
    return false;
  }
  return is_as_planned(&planned->send, "to", text, length) &&
         is_as_planned(&planned->recv, "from", text, length);
}

static void keep_types(struct side *side) {
  struct item item = {.type = MPI_DATATYPE_NULL};
  for (int i = 0; i < side->count; i++) {
    struct block *block = &side->blocks[i];
    if (block->bytes == 0 || (block->type != item.type && !read_item(block->type, &item)) || item.dense)
      continue;
    block->owned = PMPI_Type_dup(block->type, &block->type) == MPI_SUCCESS;
  }
}

void planned_keep(struct planned *planned) {
  if (planned->plan == NULL)
    return;
  keep_types(&planned->send);
  keep_types(&planned->recv);
}

/* ---- Executing ---- */

static char *staging_of(struct side *side) {
  if (side->staging == NULL)
    side->staging = allocate((size_t)side->total, 1);
  return side->staging;
}

/* MPICH 4.0.2 refuses MPI_BOTTOM, and packs only a part of types made when some 500 others exist. */
static int pack_block(const void *items, const struct block *block, char *bytes, int size) {
  int position = 0, error = MPI_SUCCESS;
  if (items != MPI_BOTTOM)
    error = PMPI_Pack(items, block->count, block->type, bytes, size, &position, MPI_COMM_SELF);
  if (error != MPI_SUCCESS || position == size)
    return error;
  return self_copy(items, block->count, block->type, bytes, size, MPI_PACKED);
}

static int unpack_block(char *bytes, int size, void *items, const struct block *block) {
  int position = 0;
  if (items == MPI_BOTTOM)
    return self_copy(bytes, size, MPI_PACKED, items, block->count, block->type);
  return PMPI_Unpack(bytes, size, &position, items, block->count, block->type, MPI_COMM_SELF);
}

/* Copies the blocks to consecutive bytes, or back. */
static int copy_blocks(struct side *side, const void *from, void *to, bool pack) {
  char *bytes = side->staging;
  int error = MPI_SUCCESS;
  for (int i = 0; i < side->count && error == MPI_SUCCESS; i++) {
    const struct block *block = &side->blocks[i];
    const int size = (int)block->bytes;
    if (size == 0)
      continue;
    error = pack ? pack_block((const char *)from + block->at, block, bytes, size)
                 : unpack_block(bytes, size, (char *)to + block->at, block);
    bytes += size;
  }
  return error;
}

/* Sets where the bytes are sent from, and where they are received. */
static int prepare(struct planned *planned, const void *send, void *recv, const char **from, char **into) {
  struct side *sent = &planned->send, *received = &planned->recv;
  planned->received = recv;
  *from = sent->in_row ? (const char *)send + sent->first : staging_of(sent);
  *into = received->in_row ? (char *)recv + received->first : staging_of(received);
  return sent->in_row ? MPI_SUCCESS : copy_blocks(sent, sent->in_place ? recv : send, NULL, true);
}

static int finish(struct planned *planned) {
  struct side *side = &planned->recv;
  return side->in_row || side->in_place ? MPI_SUCCESS : copy_blocks(side, NULL, planned->received, false);
}

/* Executes it, or only starts it, by a function of the library. */
static int begin(struct planned *planned, const void *send, void *recv,
                 int (*exchange)(swp_plan *plan, const void *send, void *recv)) {
  const char *from;
  char *into;
  if (planned->error != MPI_SUCCESS)
    return planned->error;
  planned->error = prepare(planned, send, recv, &from, &into);
  if (planned->error == MPI_SUCCESS)
    planned->error = dispatch_mpi_error(exchange(planned->plan, from, into));
  return planned->error;
}

int planned_start(struct planned *planned, const void *send, void *recv) {
  return begin(planned, send, recv, swp_exchange_start);
}

int planned_test(struct planned *planned, bool *done) {
  int complete;
  planned->error = dispatch_mpi_error(swp_test(planned->plan, &complete));
  *done = complete != 0;
  if (planned->error == MPI_SUCCESS && *done)
    planned->error = finish(planned);
  return planned->error;
}

int planned_execute(struct planned *planned, const void *send, void *recv) {
  if (begin(planned, send, recv, swp_exchange_execute) == MPI_SUCCESS)
    planned->error = finish(planned);
  return planned->error;
}

/* Staging that MPI may still use, after an error, stays. */
static void free_side(struct side *side, bool failed) {
  for (int i = 0; i < side->count; i++)
    if (side->blocks[i].owned)
      PMPI_Type_free(&side->blocks[i].type);
  free(side->ranks);
  free(side->planned);
  free(side->blocks);
  if (!failed)
    free(side->staging);
}

void planned_free(struct planned *planned) {
  if (planned == NULL)
    return;
  const bool failed = planned->error != MPI_SUCCESS;
  swp_plan_free(&planned->plan);
  free_side(&planned->send, failed);
  free_side(&planned->recv, failed);
  free(planned);
}

void planned_forget(struct place *place) {
  while (place->planned != NULL) {
    struct planned *next = place->planned->next;
    planned_free(place->planned);
    place->planned = next;
  }
}
