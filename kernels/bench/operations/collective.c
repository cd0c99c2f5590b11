/* The collectives, on blocks of one size for each rank but for alltoallv; reductions add doubles. */
#include "error.h"
#include "operation.h"
#include "rng.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum blocks { NONE, ONE, ONE_AT_ROOT, ALL, ALL_AT_ROOT };
enum { PEERS, ROOTED };
enum { MOVES, REDUCES };

/* The contents of the buffers. */
static const struct contents {
  enum blocks send, recv;
  bool reduces;
} contents[] = {
#define OPERATION(upper, lower, method, rooted, reduces, send, recv) [SWP_##upper] = {send, recv, reduces},
#include <switchpoint_operations.def>
#undef OPERATION
};

static const struct contents *contents_of(const struct workload *workload) {
  return &contents[workload->operation->operation];
}

static bool is_root(const struct workload *workload) {
  return workload->team->rank == workload->root;
}

/* Blocks of a buffer on this rank. */
static int count_blocks(const struct workload *workload, enum blocks blocks) {
  if ((blocks == ONE_AT_ROOT || blocks == ALL_AT_ROOT) && !is_root(workload))
    return 0;
  return blocks >= ALL ? workload->team->procs : blocks != NONE;
}

static int send_blocks(const struct workload *workload) {
  return count_blocks(workload, contents_of(workload)->send);
}

static int recv_blocks(const struct workload *workload) {
  return count_blocks(workload, contents_of(workload)->recv);
}

static int check(const struct operation *operation, const struct pattern_spec *pattern,
                 const int64_t *sizes_bytes, int nsizes) {
  enum { ROOT };
  if (!operation->rooted && pattern->values[ROOT] != 0)
    return failure_set("--pattern: %s has no root", operation->name);
  for (int i = 0; i < nsizes; i++) {
    if (sizes_bytes[i] > INT_MAX)
      return failure_set("--sizes: %lld exceeds the largest block, 2 GiB - 1", (long long)sizes_bytes[i]);
    if (contents[operation->operation].recv == NONE && sizes_bytes[i] != 1)
      return failure_set("--sizes: %lld: a %s moves no data; write 1, as which it counts",
                         (long long)sizes_bytes[i], operation->name);
    if (contents[operation->operation].reduces && sizes_bytes[i] % (int64_t)sizeof(double) != 0)
      return failure_set("--sizes: %lld: %s adds doubles; write multiples of 8", (long long)sizes_bytes[i],
                         operation->name);
  }
  return 0;
}

/* ---- Blocks with counts and places of their own ---- */

enum { LISTS = 4 };

/* The k-th of as many sizes as ranks: evenly from 0 to twice the mean, which is that of all together. */
static int64_t uneven_bytes(int64_t mean_bytes, int procs, int k) {
  const int above = procs - k, lower = k + 1 < above ? k + 1 : above;
  const int64_t bytes = 2 * mean_bytes * lower / (procs + 1);
  return lower == k + 1 ? bytes : 2 * mean_bytes - bytes;
}

static void place_blocks(const int *counts, int procs, int *places) {
  for (int i = 0, at = 0; i < procs; at += counts[i++])
    places[i] = at;
}

/* In an alltoallv each rank sends, and receives, blocks of all sizes, in an order that is not regular. */
static void make_lists(struct workload *workload) {
  const int procs = workload->team->procs, rank = workload->team->rank;
  const int64_t block = workload->payload.item_bytes;
  const bool uneven = workload->operation->operation == SWP_ALLTOALLV;
  int *lists = workload->lists = allocate((LISTS + 2) * (size_t)procs * sizeof *lists);
  int *received = lists, *sent = lists + 2 * procs, *from = lists + LISTS * procs, *to = from + procs;
  rng_permutation(&(struct rng){1}, procs, from);
  rng_permutation(&(struct rng){2}, procs, to);
  for (int i = 0; i < procs; i++) {
    received[i] = (int)(uneven ? uneven_bytes(block, procs, (from[i] + to[rank]) % procs) : block);
    sent[i] = (int)(uneven ? uneven_bytes(block, procs, (from[rank] + to[i]) % procs) : block);
  }
  place_blocks(received, procs, received + procs);
  place_blocks(sent, procs, sent + procs);
}

static void free_lists(struct workload *workload) {
  free(workload->lists);
}

static int size(struct workload *workload) {
  const enum swp_operation operation = workload->operation->operation;
  workload->send_bytes = send_blocks(workload) * workload->payload.item_bytes;
  workload->recv_bytes = recv_blocks(workload) * workload->payload.item_bytes;
  if (operation != SWP_ALLGATHERV && operation != SWP_ALLTOALLV)
    return 0;
  if (workload->payload.item_bytes * workload->team->procs > INT_MAX)
    return failure_set("%s: blocks of %lld bytes of %d ranks are over 2 GiB - 1", workload->operation->name,
                       (long long)workload->payload.item_bytes, workload->team->procs);
  make_lists(workload);
  return 0;
}

static struct swp_collective problem_of(const struct workload *workload) {
  const bool reduces = contents_of(workload)->reduces;
  const int64_t bytes = workload->payload.item_bytes;
  const int count = (int)(reduces ? bytes / (int64_t)sizeof(double) : bytes);
  const MPI_Datatype type = reduces ? MPI_DOUBLE : MPI_BYTE;
  const int *lists = workload->lists, procs = workload->team->procs;
  return (struct swp_collective){
      .operation = workload->operation->operation,
      .send_count = count,
      .send_type = type,
      .recv_count = count,
      .recv_type = type,
      .recv_counts = lists,
      .displs = lists ? lists + procs : NULL,
      .send_counts = lists ? lists + 2 * (int64_t)procs : NULL,
      .send_displs = lists ? lists + 3 * (int64_t)procs : NULL,
      .op = reduces ? MPI_SUM : MPI_OP_NULL,
      .root = workload->root,
  };
}

static int plan(const struct workload *workload, const char *method, swp_plan **plan) {
  const struct swp_collective problem = problem_of(workload);
  return swp_collective_plan(workload->team->comm, &problem, method, &workload->hints, plan);
}

static int turn(struct workload *workload, swp_plan *plan) {
  workload->root = (workload->root + 1) % workload->team->procs;
  if (workload_fit(workload))
    return -1;
  const struct swp_collective problem = problem_of(workload);
  return swp_collective_set(plan, &problem) ? failure_set("%s", swp_error_message()) : 0;
}

/* From which the elements that ranks add derive. */
struct operands {
  uint64_t first;
  int shift;
};

static struct operands operands_of(const struct workload *workload) {
  int bits = 0;
  while (workload->team->procs >> bits)
    bits++;
  return (struct operands){hash_pair(workload->payload.seed, workload->payload.repetition), 12 + bits};
}

/* Element i of a rank is base + rank * step: integers whose sum over all ranks is exact, below 2^53. */
static void draw(struct operands its, int64_t i, double *base, double *step) {
  const uint64_t word = its.first + (uint64_t)i * 0x9e3779b97f4a7c15u;
  *base = (double)(word >> its.shift);
  *step = (double)(word & 7) + 1;
}

static void write_operands(const struct workload *workload) {
  double *numbers = (double *)(void *)workload->send;
  const int64_t n = workload->send_bytes / (int64_t)sizeof *numbers;
  const struct operands its = operands_of(workload);
  for (int64_t i = 0; i < n; i++) {
    double base, step;
    draw(its, i, &base, &step);
    numbers[i] = base + workload->team->rank * step;
  }
}

/* An alltoallv's block from or to a rank, as the only item of a payload. */
static struct payload block_of(const struct workload *workload, const int *counts, int peer, char *buffer,
                               char **block) {
  struct payload payload = workload->payload;
  payload.item_bytes = counts[peer];
  *block = buffer + counts[workload->team->procs + peer];
  return payload;
}

static void prepare_uneven(struct workload *workload) {
  const int procs = workload->team->procs;
  memset(workload->recv, 0, (size_t)workload->recv_bytes);
  for (int i = 0; i < procs; i++) {
    const int64_t number = i;
    char *block;
    const struct payload payload =
        block_of(workload, workload->lists + 2 * (int64_t)procs, i, workload->send, &block);
    payload_write(&payload, workload->team->rank, &number, 1, block);
  }
}

static int verify_uneven(const struct workload *workload) {
  const int64_t number = workload->team->rank;
  for (int i = 0; i < workload->team->procs; i++) {
    char *block;
    const struct payload payload = block_of(workload, workload->lists, i, workload->recv, &block);
    if (payload_compare(&payload, i, &number, 1, block))
      return -1;
  }
  return 0;
}

static void prepare(struct workload *workload) {
  if (workload->operation->operation == SWP_ALLTOALLV) {
    prepare_uneven(workload);
    return;
  }
  const bool is_bcast = workload->operation->operation == SWP_BCAST;
  memset(workload->recv, 0, (size_t)workload->recv_bytes);
  if (contents_of(workload)->reduces)
    write_operands(workload);
  else if (is_bcast && is_root(workload))
    payload_write(&workload->payload, workload->team->rank, NULL, 1, workload->recv);
  else
    payload_write(&workload->payload, workload->team->rank, NULL, send_blocks(workload), workload->send);
}

static int execute(struct workload *workload, swp_plan *plan) {
  return swp_collective_execute(plan, workload->send, workload->recv);
}

static int verify_sums(const struct workload *workload) {
  const double *sums = (const double *)(const void *)workload->recv, procs = workload->team->procs;
  const int64_t n = workload->recv_bytes / (int64_t)sizeof *sums;
  const bool scattered = workload->operation->operation == SWP_REDUCE_SCATTER_BLOCK;
  const int64_t first = scattered ? workload->team->rank * n : 0;
  const struct operands its = operands_of(workload);
  for (int64_t i = 0; i < n; i++) {
    double base, step;
    draw(its, first + i, &base, &step);
    const double expected = procs * base + procs * (procs - 1) / 2 * step;
    if (sums[i] != expected)
      return failure_set("wrong payload: element %lld of the result is %.17g, expected %.17g", (long long)i,
                         sums[i], expected);
  }
  return 0;
}

/* Block i is from rank i, or all are from the root; its number there is this rank's if each rank gets another
   one. */
static int verify(const struct workload *workload) {
  const struct contents *its = contents_of(workload);
  const int64_t number = its->send >= ALL ? workload->team->rank : 0;
  if (its->reduces)
    return verify_sums(workload);
  if (workload->operation->operation == SWP_ALLTOALLV)
    return verify_uneven(workload);
  for (int i = 0; i < recv_blocks(workload); i++) {
    const int source = its->recv >= ALL ? i : workload->root;
    if (payload_compare(&workload->payload, source, &number, 1,
                        workload->recv + i * workload->payload.item_bytes))
      return -1;
  }
  return 0;
}

const struct operation operation_collectives[] = {
#define OPERATION(upper, lower, method, has_root, reduces, send, recv)                                       \
  [SWP_##upper] = {.name = #lower,                                                                           \
                   .operation = SWP_##upper,                                                                 \
                   .rooted = has_root,                                                                       \
                   .check = check,                                                                           \
                   .size = size,                                                                             \
                   .free = free_lists,                                                                       \
                   .plan = plan,                                                                             \
                   .prepare = prepare,                                                                       \
                   .turn = turn,                                                                             \
                   .execute = execute,                                                                       \
                   .verify = verify},
#include <switchpoint_operations.def>
#undef OPERATION
};
