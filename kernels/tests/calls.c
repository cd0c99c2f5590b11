/* Random calls of collectives. */
#include "calls.h"

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 6, DENSE_SHAPES = 2, UNIT = 6, REDUCTIONS = 8, ORDERED = 6, BELOW_ZERO = 7 };

/* Types whose items hold that many 32-bit integers each: dense, with gaps, in reverse order, with a lower
   bound below 0. */
static struct {
  MPI_Datatype type;
  int elements;
} shapes[SHAPES];

/* Reductions with their types. */
static struct {
  MPI_Op op;
  MPI_Datatype type;
  bool floating; /* bytes at random are no good operands */
} reductions[REDUCTIONS];

MPI_Aint call_extent(MPI_Datatype type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

/* Products of 2x2 matrices do not commute; with wrapping integers they are exact and associative. */
static void multiply(void *left, void *right, int *length, MPI_Datatype *type) {
  const MPI_Aint extent = call_extent(*type);
  size_t apart = extent == (MPI_Aint)(4 * sizeof(uint32_t)) ? 1 : 2;
  for (int i = 0; i < *length; i++) {
    const uint32_t *a = (const uint32_t *)((const char *)left + i * extent);
    uint32_t *b = (uint32_t *)((char *)right + i * extent), b0 = b[0], b1 = b[apart];
    uint32_t b2 = b[2 * apart], b3 = b[3 * apart];
    b[0] = a[0] * b0 + a[apart] * b2;
    b[apart] = a[0] * b1 + a[apart] * b3;
    b[2 * apart] = a[2 * apart] * b0 + a[3 * apart] * b2;
    b[3 * apart] = a[2 * apart] * b1 + a[3 * apart] * b3;
  }
}

/* Commutes; for the type of three integers with gaps. */
static void add(void *left, void *right, int *length, MPI_Datatype *type) {
  const MPI_Aint extent = call_extent(*type);
  for (int i = 0; i < *length; i++)
    for (int k = 0; k < 3; k++)
      ((uint32_t *)((char *)right + i * extent))[2 * k] += ((uint32_t *)((char *)left + i * extent))[2 * k];
}

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent) {
  MPI_Datatype result;
  MPI_Type_create_resized(type, lower, extent, &result);
  MPI_Type_commit(&result);
  return result;
}

static MPI_Datatype scattered(int count, const MPI_Aint *offsets, MPI_Aint lower, MPI_Aint extent) {
  MPI_Datatype type, result;
  MPI_Type_create_hindexed_block(count, 1, offsets, MPI_INT32_T, &type);
  result = resized(type, lower, extent);
  MPI_Type_free(&type);
  return result;
}

void calls_begin(void) {
  static const MPI_Aint reversed[] = {40, 32, 24, 16, 8, 0}, two[] = {4, 12}, four[] = {0, 8, 16, 24};
  MPI_Datatype pair, triple, gapped = scattered(4, four, -8, 40), matrix;
  MPI_Type_contiguous(2, MPI_INT32_T, &pair);
  MPI_Type_vector(3, 1, 2, MPI_INT32_T, &triple);
  MPI_Type_contiguous(4, MPI_UINT32_T, &matrix);
  MPI_Type_commit(&pair);
  MPI_Type_commit(&triple);
  MPI_Type_commit(&matrix);
  shapes[0].type = MPI_INT32_T, shapes[0].elements = 1;
  shapes[1].type = pair, shapes[1].elements = 2;
  shapes[2].type = triple, shapes[2].elements = 3;
  shapes[3].type = scattered(6, reversed, 0, 48), shapes[3].elements = 6;
  shapes[4].type = scattered(2, two, -8, 20), shapes[4].elements = 2;
  shapes[5].type = resized(MPI_INT32_T, 0, 8), shapes[5].elements = 1;
  for (int i = 0; i < REDUCTIONS; i++)
    reductions[i].op = MPI_SUM;
  reductions[0].type = MPI_INT32_T;
  reductions[1].type = MPI_INT64_T, reductions[1].op = MPI_MAX;
  reductions[2].type = MPI_DOUBLE, reductions[2].floating = true;
  reductions[3].type = MPI_2INT, reductions[3].op = MPI_MINLOC;
  reductions[4].type = MPI_BYTE, reductions[4].op = MPI_BXOR;
  MPI_Op_create(add, 1, &reductions[5].op), reductions[5].type = triple;
  MPI_Op_create(multiply, 0, &reductions[6].op), reductions[6].type = matrix;
  MPI_Op_create(multiply, 0, &reductions[BELOW_ZERO].op), reductions[BELOW_ZERO].type = gapped;
}

void calls_end(void) {
  for (int i = 1; i < SHAPES; i++)
    MPI_Type_free(&shapes[i].type);
  for (int i = 5; i < REDUCTIONS; i++) {
    MPI_Op_free(&reductions[i].op);
    if (i > 5)
      MPI_Type_free(&reductions[i].type);
  }
}

/* Memory for so many items, with content that is a function of seed and place. */
static struct call_buffer buffer_make(MPI_Datatype type, int64_t items, uint64_t seed, bool floating) {
  struct call_buffer result;
  result.bytes = 2 * CALL_MARGIN + (size_t)(items * call_extent(type));
  result.bytes += 8 - result.bytes % 8;
  result.memory = test_allocate(result.bytes);
  result.expected = test_allocate(result.bytes);
  for (size_t at = 0; at < result.bytes; at += 8) {
    uint64_t word = mix(seed, at, 5, 0);
    double number = (double)(word % 1000);
    memcpy(result.memory + at, floating ? (void *)&number : (void *)&word, 8);
  }
  memcpy(result.expected, result.memory, result.bytes);
  result.buffer = result.memory + CALL_MARGIN;
  return result;
}

static void buffer_move(struct call_buffer *buffer, MPI_Aint bytes) {
  buffer->buffer = (char *)buffer->buffer + bytes;
}

static void buffer_free(struct call_buffer *buffer) {
  free(buffer->memory);
  free(buffer->expected);
}

/* Values that MPI ignores: nonsense that it must not read. */
static void make_nonsense(int *count, MPI_Datatype *type) {
  *count = -3;
  *type = MPI_DATATYPE_NULL;
}

/* A value for a buffer that MPI ignores on this rank. */
static void *unused(uint64_t seed, int rank) {
  return mix(seed, (uint64_t)rank, 6, 0) % 2 == 0 ? NULL : MPI_IN_PLACE;
}

/* A side of blocks of `elements` integers in one of the first so many shapes; gives the items of a block. */
static int make_side(uint64_t seed, int rank, int nshapes, int elements, MPI_Datatype *type) {
  int shape = (int)(mix(seed, (uint64_t)rank, 1, 0) % (uint64_t)nshapes);
  *type = shapes[shape].type;
  return elements / shapes[shape].elements;
}

/* Every fourth call is of nothing. */
static int draw_elements(uint64_t seed, int rank, int most_units) {
  uint64_t units = mix(seed, (uint64_t)rank, 2, 0);
  return units % 4 == 0 ? 0 : UNIT * (int)(units / 4 % (uint64_t)most_units + 1);
}

static int elements_of(MPI_Datatype type) {
  int size;
  MPI_Type_size(type, &size);
  return size / (int)sizeof(int32_t);
}

/* Draws the elements that one rank of an alltoallv has for another; in place, as many go the other way. */
static int pair_elements(uint64_t seed, int from, int to, int most_units, bool in_place) {
  const bool swaps = in_place && to < from;
  return draw_elements(mix(seed, (uint64_t)(swaps ? to : from), 8, 0), swaps ? from : to, most_units);
}

/* In every other call, displacements begin below zero. */
static int items_below(uint64_t seed) {
  return (int)(seed / 6 % 2) * 5;
}

/* Blocks of their own size for each rank, with gaps between them, in rank order or the other way; of a
   quarter of the calls all that are sent begin at one place. Gives the items of the memory. */
static int make_pairs(uint64_t seed, int rank, int procs, bool sends, int most_units, bool in_place,
                      int elements_per_item, int **counts, int **displs) {
  int at = 1 - items_below(seed), end = 1;
  *counts = test_allocate((size_t)procs * sizeof(int));
  *displs = test_allocate((size_t)procs * sizeof(int));
  for (int i = 0; i < procs; i++) {
    const int peer = seed % 2 == 0 ? i : procs - 1 - i;
    const int elements = pair_elements(seed, sends ? rank : peer, sends ? peer : rank, most_units, in_place);
    const int count = elements / elements_per_item;
    (*counts)[peer] = count;
    (*displs)[peer] = at;
    end = at + count > end ? at + count : end;
    at += sends && seed / 12 % 4 == 0 ? 0 : count + (int)(seed / 2 % 3);
  }
  return end + items_below(seed);
}

/* Gather, scatter, allgather, allgatherv, alltoall, alltoallv, bcast: every rank has its own types. */
static void make_movement(struct test_call *call, int rank, int procs, uint64_t seed, int most_units,
                          bool in_place, enum call_range range) {
  struct swp_collective *problem = &call->problem;
  enum swp_operation operation = problem->operation;
  bool root = rank == problem->root, gathers = operation == SWP_GATHER, scatters = operation == SWP_SCATTER;
  bool by_counts = operation == SWP_ALLGATHERV, by_pairs = operation == SWP_ALLTOALLV;
  int elements = by_counts
                     ? pair_elements(seed, rank, 0, most_units, in_place) /* as if all were for rank 0 */
                     : draw_elements(seed, -1, most_units);
  bool plain = range != CALL_ANY && (by_counts || by_pairs || operation == SWP_ALLTOALL);
  int drawer = plain ? -1 : rank, nshapes = plain ? DENSE_SHAPES : SHAPES;
  problem->send_count = make_side(seed + 1, drawer, nshapes, elements, &problem->send_type);
  problem->recv_count = make_side(seed + 2 - plain, drawer, nshapes, elements, &problem->recv_type);
  int recv_items = problem->recv_count * (operation == SWP_BCAST || scatters ? 1 : procs);
  int64_t send_items = (int64_t)problem->send_count * (operation == SWP_ALLTOALL || scatters ? procs : 1);
  if (by_counts || by_pairs)
    recv_items = make_pairs(seed, by_pairs ? rank : 0, procs, false, most_units, in_place,
                            elements_of(problem->recv_type), &call->counts, &call->displs);
  if (by_pairs)
    send_items = make_pairs(seed, rank, procs, true, most_units, in_place, elements_of(problem->send_type),
                            &call->send_counts, &call->send_displs);
  problem->recv_counts = call->counts, problem->displs = call->displs;
  problem->send_counts = call->send_counts, problem->send_displs = call->send_displs;
  call->send_buffer = buffer_make(problem->send_type, send_items, mix(seed, (uint64_t)rank, 3, 0), false);
  call->recv_buffer = buffer_make(problem->recv_type, recv_items, mix(seed, (uint64_t)rank, 4, 0), false);
  if (by_counts || by_pairs)
    buffer_move(&call->recv_buffer, items_below(seed) * call_extent(problem->recv_type));
  if (by_pairs)
    buffer_move(&call->send_buffer, items_below(seed) * call_extent(problem->send_type));
  call->send = operation == SWP_BCAST || (scatters && !root) ? unused(seed, rank) : call->send_buffer.buffer;
  call->recv = gathers && !root ? unused(seed, rank) : call->recv_buffer.buffer;
  if (operation == SWP_BCAST || (scatters && !root))
    make_nonsense(&problem->send_count, &problem->send_type);
  if (gathers && !root)
    make_nonsense(&problem->recv_count, &problem->recv_type);
  if (in_place && scatters && root) {
    call->recv = MPI_IN_PLACE;
    make_nonsense(&problem->recv_count, &problem->recv_type);
  } else if (in_place && operation != SWP_BCAST && !scatters && (root || !gathers)) {
    call->send = MPI_IN_PLACE;
    make_nonsense(&problem->send_count, &problem->send_type);
    problem->send_counts = problem->send_displs = NULL;
  }
}

/* Nothing is read. */
static void make_barrier(struct test_call *call) {
  make_nonsense(&call->problem.send_count, &call->problem.send_type);
  make_nonsense(&call->problem.recv_count, &call->problem.recv_type);
  call->send_buffer = buffer_make(MPI_BYTE, 0, 0, false);
  call->recv_buffer = buffer_make(MPI_BYTE, 0, 0, false);
}

static int draw_reduction(uint64_t seed, enum swp_operation operation, enum call_range range) {
  const bool tame_blocks = operation == SWP_REDUCE_SCATTER_BLOCK && range != CALL_ANY;
  return (int)(mix(seed, 5, 0, 0) % (tame_blocks ? BELOW_ZERO : REDUCTIONS));
}

static bool draw_in_place(uint64_t seed) {
  return mix(seed, 7, 0, 0) % 3 == 0;
}

uint64_t call_ordered_seed(uint64_t from, enum swp_operation operation, int most_units, enum call_range range,
                           bool in_place) {
  uint64_t seed = from;
  while (draw_reduction(seed, operation, range) < ORDERED || draw_in_place(seed) != in_place ||
         draw_elements(seed, -1, most_units) == 0)
    seed++;
  return seed;
}

static void make_reduction(struct test_call *call, int rank, int procs, uint64_t seed, int most_units,
                           bool in_place, enum call_range range) {
  struct swp_collective *problem = &call->problem;
  bool block = problem->operation == SWP_REDUCE_SCATTER_BLOCK;
  const int which = draw_reduction(seed, problem->operation, range);
  bool root = rank == problem->root || problem->operation != SWP_REDUCE;
  in_place = in_place && !(range != CALL_ANY && problem->operation == SWP_REDUCE && problem->root > 0);
  problem->recv_count = draw_elements(seed, -1, most_units) / UNIT;
  problem->recv_type = reductions[which].type;
  problem->op = reductions[which].op;
  make_nonsense(&problem->send_count, &problem->send_type);
  const int64_t items = (int64_t)problem->recv_count * (block ? procs : 1);
  const bool floating = reductions[which].floating;
  call->send_buffer = buffer_make(problem->recv_type, items, mix(seed, (uint64_t)rank, 3, 0), floating);
  call->recv_buffer = buffer_make(problem->recv_type, items, mix(seed, (uint64_t)rank, 4, 0), floating);
  call->send = in_place && root ? MPI_IN_PLACE : call->send_buffer.buffer;
  call->recv = root ? call->recv_buffer.buffer : unused(seed, rank);
}

/* Gives the type the buffer's address; returns where its items begin then. */
static void *make_absolute(MPI_Datatype *type, const void *buffer) {
  MPI_Aint address;
  MPI_Get_address(buffer, &address);
  MPI_Type_create_hindexed_block(1, 1, &address, *type, type);
  MPI_Type_commit(type);
  return MPI_BOTTOM;
}

/* Gives absolute addresses to what is moved: the MPI_Allreduce of MPICH 5.0.2 crashes on such types. */
static void give_absolute(struct test_call *call) {
  struct call_given *given = &call->given;
  if (call->recv == call->recv_buffer.buffer)
    given->recv = make_absolute(&given->problem.recv_type, call->recv);
  if (call->send == call->send_buffer.buffer)
    given->send = make_absolute(&given->problem.send_type, call->send);
}

struct test_call call_make(MPI_Comm comm, enum swp_operation operation, uint64_t seed, int most_units,
                           enum call_range range) {
  struct test_call call = {.problem = {.operation = operation, .op = MPI_OP_NULL}};
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  call.problem.root = (int)(mix(seed, 6, 0, 0) % (uint64_t)procs);
  bool in_place = draw_in_place(seed);
  bool reduces =
      operation == SWP_REDUCE || operation == SWP_ALLREDUCE || operation == SWP_REDUCE_SCATTER_BLOCK;
  if (reduces)
    make_reduction(&call, rank, procs, seed, most_units, in_place, range);
  else if (operation == SWP_BARRIER)
    make_barrier(&call);
  else
    make_movement(&call, rank, procs, seed, most_units, in_place, range);
  call.given = (struct call_given){call.problem, call.send, call.recv};
  if (range == CALL_ANY && !reduces && mix(seed, (uint64_t)rank, 9, 0) % 4 == 0)
    give_absolute(&call);
  snprintf(call.text, sizeof call.text, "%s %llx: %d of a type to %d of a type, root %d%s",
           swp_operation_name(operation), (unsigned long long)seed, call.problem.send_count,
           call.problem.recv_count, call.problem.root, in_place ? ", in place" : "");
  return call;
}

void call_free(struct test_call *call) {
  if (call->given.problem.send_type != call->problem.send_type)
    MPI_Type_free(&call->given.problem.send_type);
  if (call->given.problem.recv_type != call->problem.recv_type)
    MPI_Type_free(&call->given.problem.recv_type);
  buffer_free(&call->send_buffer);
  buffer_free(&call->recv_buffer);
  free(call->counts);
  free(call->displs);
  free(call->send_counts);
  free(call->send_displs);
}
