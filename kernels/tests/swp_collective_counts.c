/*
 * What collective methods really send, counted, against the formulas of their papers: messages of all ranks,
 * the most of one, and bytes of all. Nothing is allocated while they do. Prints, for comparison with
 * tuner/studies, the bytes from each rank to each, row by row.
 */
#include "activity.h"
#include "operations.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BYTES = 96, UNKNOWN = -1, VIRTUAL_PPN = 2 };

/* The blocks of an alltoallv. In place, two ranks send each other the same number of bytes. */
enum blocks { EVEN, UNEVEN, UNEVEN_IN_PLACE };

static const char *const blocks_names[] = {"even", "uneven", "uneven, in place"};

/* P ranks: 2^steps of them and `extra` more; up to 2^rounds. m bytes in a vector, or in a rank's block. */
static struct {
  int64_t procs, cube, extra, steps, rounds, m;
  bool root_is_extra; /* its partner stands for it */
  enum blocks blocks;
} s;

struct sent {
  int64_t messages, most, bytes; /* or UNKNOWN */
};

/* Everyone but the root hears once. */
static struct sent to_or_from_root(int64_t most) {
  return (struct sent){s.procs - 1, most, (s.procs - 1) * s.m};
}

static struct sent star_in(void) {
  return to_or_from_root(s.procs > 1);
}

static struct sent star_out(void) {
  return to_or_from_root(s.procs - 1);
}

static struct sent binomial_out(void) {
  return to_or_from_root(s.rounds);
}

/* Three children at each level: levels are those of base 4. */
static struct sent knomial_out(void) {
  int64_t most = 0;
  for (int64_t value = 1; value < s.procs; value *= 4)
    for (int64_t child = value; child < s.procs && child < 4 * value; child += value)
      most++;
  return to_or_from_root(most);
}

/* Blocks that such a tree sends: each child of value v, a power of 4, has v ranks below it. */
static int64_t tree_blocks(void) {
  int64_t blocks = 0;
  for (int64_t position = 1; position < s.procs; position++) {
    int64_t value = 1;
    while (position / value % 4 == 0)
      value *= 4;
    blocks += value < s.procs - position ? value : s.procs - position;
  }
  return blocks;
}

static struct sent with_blocks(struct sent sent, int64_t blocks) {
  sent.bytes = blocks * s.m;
  return sent;
}

static struct sent knomial_blocks_in(void) {
  return with_blocks(star_in(), tree_blocks());
}

static struct sent knomial_blocks_out(void) {
  return with_blocks(knomial_out(), tree_blocks());
}

/* A run of ranks is cut in halves, of which one goes to the other. */
static int64_t bine_blocks(int64_t ranks) {
  return ranks == 1 ? 0 : ranks / 2 + bine_blocks(ranks / 2) + bine_blocks(ranks - ranks / 2);
}

static struct sent bine_blocks_in(void) {
  return with_blocks(star_in(), bine_blocks(s.procs));
}

static struct sent bine_blocks_out(void) {
  return with_blocks(binomial_out(), bine_blocks(s.procs));
}

static struct sent chain(void) {
  int64_t segments = (s.m + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
  return (struct sent){(s.procs - 1) * segments, s.procs > 1 ? segments : 0, (s.procs - 1) * s.m};
}

/* Pieces of m / P: half of the vector goes down at each level of the tree. */
static int64_t scattered_bytes(void) {
  return s.steps * s.m / 2;
}

static struct sent scatter_hypercube(void) {
  int64_t messages = s.cube - 1 + s.cube * s.steps + s.extra;
  int64_t bytes = scattered_bytes() + (s.cube - 1) * s.m;
  return (struct sent){messages, 2 * s.steps + (s.extra > 0), s.extra == 0 ? bytes : UNKNOWN};
}

static struct sent scatter_ring(void) {
  int64_t bytes = scattered_bytes() + (s.procs - 1) * s.m;
  return (struct sent){s.procs - 1 + s.procs * (s.procs - 1), s.rounds + s.procs - 1,
                       s.extra == 0 ? bytes : UNKNOWN};
}

/* `turns` times along all dimensions; with what ranks too many say before and hear behind. */
static int64_t cube_messages(int64_t turns) {
  return turns * s.cube * s.steps + 2 * s.extra;
}

static int64_t cube_most(int64_t turns) {
  return turns * s.steps + (s.extra > 0);
}

static struct sent hypercube_vector(void) {
  return (struct sent){cube_messages(1), cube_most(1), cube_messages(1) * s.m};
}

/* At each dimension, runs of 1, 2, 4 … positions stand for all blocks. */
static struct sent hypercube_blocks(void) {
  int64_t blocks = s.extra + (s.cube - 1) * s.procs + s.extra * s.procs;
  return (struct sent){cube_messages(1), cube_most(1), blocks * s.m};
}

static struct sent rabenseifner_all(void) {
  return (struct sent){cube_messages(2), cube_most(2), 2 * (s.extra + s.cube - 1) * s.m};
}

static struct sent rabenseifner_root(void) {
  int64_t messages = s.extra + s.cube * s.steps + s.cube - 1 + s.root_is_extra;
  int64_t vectors = s.extra + s.cube - 1 + s.root_is_extra;
  return (struct sent){messages, s.steps + (s.procs > 1), vectors * s.m + s.steps * s.m / 2};
}

/* A message to each other rank, or as many times to the next. */
static struct sent once_each(void) {
  return (struct sent){s.procs * (s.procs - 1), s.procs - 1, s.procs * (s.procs - 1) * s.m};
}

static struct sent ring_twice(void) {
  return (struct sent){2 * s.procs * (s.procs - 1), 2 * (s.procs - 1), 2 * (s.procs - 1) * s.m};
}

static struct sent bruck_blocks(void) {
  return (struct sent){s.procs * s.rounds, s.rounds, s.procs * (s.procs - 1) * s.m};
}

/* Messages for the digits other than 0 that distances between `procs` ranks have to a base. */
static int64_t digits(int64_t radix, int64_t procs) {
  int64_t count = 0;
  for (int64_t value = 1; value < procs; value *= radix)
    for (int64_t digit = 1; digit < radix && digit * value < procs; digit++)
      count++;
  return count;
}

/* The digits other than 0 of a distance: a block is sent on once for each. */
static int64_t hops(int64_t radix, int64_t distance) {
  int64_t count = 0;
  for (; distance > 0; distance /= radix)
    count += distance % radix != 0;
  return count;
}

static struct sent bruck_4_blocks(void) {
  const int64_t each = digits(4, s.procs);
  return (struct sent){s.procs * each, each, s.procs * (s.procs - 1) * s.m};
}

static struct sent all_hops(int64_t radix) {
  const int64_t each = digits(radix, s.procs);
  int64_t blocks = 0;
  for (int64_t distance = 0; distance < s.procs; distance++)
    blocks += hops(radix, distance);
  return (struct sent){s.procs * each, each, s.procs * blocks * s.m};
}

static struct sent bruck_hops(void) {
  return all_hops(2);
}

static struct sent bruck_4_hops(void) {
  return all_hops(4);
}

/* Half of the blocks in each dimension; applicable where no rank is extra. */
static struct sent bine_hops(void) {
  int64_t messages = s.procs * s.steps;
  return (struct sent){messages, s.steps, messages * (s.procs / 2) * s.m};
}

/* Rows of 4 as long as there are 4 times as many ranks, then a row of the rest; extra ranks as before. */
static struct sent multiplying(bool blocks) {
  int64_t power = 1, others = 0, sent = 0;
  while (4 * power <= s.procs)
    power *= 4;
  const int64_t size = s.procs / power * power, extra = s.procs - size;
  for (int64_t stride = 1; stride < size; stride *= 4) {
    const int64_t row = size / stride < 4 ? size / stride : 4;
    others += row - 1;
    sent += (row - 1) * stride;
  }
  return (struct sent){size * others + 2 * extra, others + (extra > 0),
                       (blocks ? extra + sent * s.procs + extra * s.procs : size * others + 2 * extra) * s.m};
}

static struct sent multiplying_vector(void) {
  return multiplying(false);
}

static struct sent multiplying_blocks(void) {
  return multiplying(true);
}

/* What a rank sends to another: if uneven, to some nothing, who may nevertheless send it something unless
   that is in place. */
static int64_t block_bytes(int64_t from, int64_t to) {
  return s.blocks == EVEN ? s.m : (from + 1) * (to + (s.blocks == UNEVEN ? 2 : 1)) % 3 * s.m / 2;
}

/* A message for each block that is not empty. */
static struct sent blocks_each(void) {
  struct sent sent = {0, 0, 0};
  for (int64_t from = 0; from < s.procs; from++) {
    int64_t messages = 0;
    for (int64_t to = 0; to < s.procs; to++) {
      const int64_t bytes = to == from ? 0 : block_bytes(from, to);
      messages += bytes > 0;
      sent.bytes += bytes;
    }
    sent.messages += messages;
    sent.most = messages > sent.most ? messages : sent.most;
  }
  return sent;
}

/* Turns along the ranks of a node, or all ranks, and then along the nodes. A block travels with the four
   bytes of its size, an empty one too. */
static struct sent uneven_bruck(int64_t radix, int64_t global) {
  const int64_t ppn = global > 0 ? VIRTUAL_PPN : s.procs, nodes = s.procs / ppn;
  const int64_t each = digits(radix, ppn) + digits(global, nodes);
  struct sent sent = {s.procs * each, each, 0};
  for (int64_t from = 0; from < s.procs; from++)
    for (int64_t to = 0; to < s.procs; to++) {
      const int64_t places = (to % ppn - from % ppn + ppn) % ppn;
      const int64_t farther = (to / ppn - from / ppn + nodes) % nodes;
      sent.bytes += (hops(radix, places) + hops(global, farther)) * (block_bytes(from, to) + 4);
    }
  return sent;
}

static struct sent bruck_by_two(void) {
  return uneven_bruck(2, 0);
}

static struct sent bruck_by_three(void) {
  return uneven_bruck(3, 0);
}

static struct sent bruck_by_nodes(void) {
  return uneven_bruck(2, 3);
}

/* Empty messages up and down a tree. */
static struct sent tree_both_ways(int64_t radix) {
  int64_t most = 0;
  for (int64_t position = 0; position < s.procs; position++) {
    int64_t sent = position > 0;
    for (int64_t value = 1; value < s.procs && position / value % radix == 0; value *= radix)
      for (int64_t child = position + value; child < s.procs && child < position + radix * value;
           child += value)
        sent++;
    most = sent > most ? sent : most;
  }
  return (struct sent){2 * (s.procs - 1), most, 0};
}

static struct sent binomial_both_ways(void) {
  return tree_both_ways(2);
}

static struct sent knomial_both_ways(void) {
  return tree_both_ways(4);
}

static struct sent without_bytes(struct sent sent) {
  sent.bytes = 0;
  return sent;
}

static struct sent dissemination(void) {
  return without_bytes(bruck_blocks());
}

static struct sent dissemination_by_four(void) {
  return without_bytes(bruck_4_blocks());
}

static struct sent nothing(void) {
  return (struct sent){0, 0, 0};
}

static const struct {
  enum swp_operation operation;
  const char *method;
  struct sent (*expected)(void);
} checks[] = {
    {SWP_BCAST, "binomial", binomial_out},
    {SWP_BCAST, "knomial:radix=4", knomial_out},
    {SWP_GATHER, "knomial:radix=4", knomial_blocks_in},
    {SWP_SCATTER, "knomial:radix=4", knomial_blocks_out},
    {SWP_REDUCE, "knomial:radix=4", star_in},
    {SWP_BCAST, "bine", binomial_out},
    {SWP_GATHER, "bine", bine_blocks_in},
    {SWP_SCATTER, "bine", bine_blocks_out},
    {SWP_REDUCE, "bine", star_in},
    {SWP_ALLREDUCE, "bine", rabenseifner_all},
    {SWP_ALLGATHER, "bine", hypercube_blocks},
    {SWP_ALLTOALL, "bine", bine_hops},
    {SWP_REDUCE_SCATTER_BLOCK, "bine", hypercube_blocks},
    {SWP_BCAST, "chain:segment=96", chain},
    {SWP_BCAST, "scatter_allgather:allgather=hypercube", scatter_hypercube},
    {SWP_BCAST, "scatter_allgather:allgather=ring", scatter_ring},
    {SWP_GATHER, "star", star_in},
    {SWP_SCATTER, "star", star_out},
    {SWP_REDUCE, "star", star_in},
    {SWP_REDUCE, "rabenseifner", rabenseifner_root},
    {SWP_ALLREDUCE, "hypercube", hypercube_vector},
    {SWP_ALLREDUCE, "rabenseifner", rabenseifner_all},
    {SWP_ALLREDUCE, "ring", ring_twice},
    {SWP_ALLGATHER, "ring", once_each},
    {SWP_ALLGATHER, "hypercube", hypercube_blocks},
    {SWP_ALLGATHER, "bruck", bruck_blocks},
    {SWP_ALLGATHERV, "ring", once_each},
    {SWP_ALLGATHERV, "bruck", bruck_blocks},
    {SWP_ALLTOALL, "pairwise", once_each},
    {SWP_ALLTOALL, "bruck", bruck_hops},
    {SWP_ALLGATHER, "bruck:radix=4", bruck_4_blocks},
    {SWP_ALLGATHERV, "bruck:radix=4", bruck_4_blocks},
    {SWP_ALLTOALL, "bruck:radix=4", bruck_4_hops},
    {SWP_ALLREDUCE, "multiplying:radix=4", multiplying_vector},
    {SWP_ALLGATHER, "multiplying:radix=4", multiplying_blocks},
    {SWP_ALLTOALLV, "pairwise", blocks_each},
    {SWP_ALLTOALLV, "bruck:radix=2", bruck_by_two},
    {SWP_ALLTOALLV, "bruck:radix=3", bruck_by_three},
    {SWP_ALLTOALLV, "bruck:radix=2,global=3", bruck_by_nodes},
    {SWP_REDUCE_SCATTER_BLOCK, "pairwise", once_each},
    {SWP_REDUCE_SCATTER_BLOCK, "hypercube", hypercube_blocks},
    {SWP_REDUCE_SCATTER_BLOCK, "ring", once_each},
    {SWP_BARRIER, "binomial", binomial_both_ways},
    {SWP_BARRIER, "knomial:radix=4", knomial_both_ways},
    {SWP_BARRIER, "bruck", dissemination},
    {SWP_BARRIER, "bruck:radix=4", dissemination_by_four},
    {SWP_BCAST, "shared", nothing},
    {SWP_GATHER, "shared", nothing},
    {SWP_SCATTER, "shared", nothing},
    {SWP_REDUCE, "shared", nothing},
    {SWP_ALLREDUCE, "shared", nothing},
    {SWP_ALLGATHER, "shared", nothing},
    {SWP_ALLTOALL, "shared", nothing},
    {SWP_REDUCE_SCATTER_BLOCK, "shared", nothing},
    {SWP_ALLTOALLV, "shared", nothing},
    {SWP_BARRIER, "shared", nothing},
};

/* By a grid the butterfly of bine sends as much, but to others. */
static const struct {
  int procs;
  const char *method;
} grids[] = {{8, "bine:grid=2x4"}, {16, "bine:grid=4x4"}, {16, "bine:grid=8x2"}};

static int rank;

/* The vector has an even number of items for each rank and position, so that pieces are equal. */
static void set_sizes(int procs, int root, enum blocks blocks) {
  s.procs = procs;
  for (s.cube = 1, s.steps = 0; 2 * s.cube <= procs; s.cube *= 2)
    s.steps++;
  s.extra = procs - s.cube;
  s.rounds = s.steps + (s.extra > 0);
  s.m = 8 * s.procs * s.cube * (int64_t)sizeof(int);
  s.root_is_extra = root < 2 * s.extra && root % 2 == 1;
  s.blocks = blocks;
}

static void print_bytes(enum swp_operation operation, const char *method, int root, const int64_t *bytes_to) {
  const int procs = (int)s.procs;
  int64_t *all = test_allocate((size_t)(s.procs * s.procs) * sizeof *all);
  MPI_Gather(bytes_to, procs, MPI_INT64_T, all, procs, MPI_INT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%s %s %d:", swp_operation_name(operation), method, root);
    for (int i = 0; i < procs * procs; i++)
      printf(" %g", (double)all[i] / (double)s.m);
    printf("\n");
  }
  free(all);
}

/* Executed twice: what is sent must not depend on what was before. */
static void execute_counted(swp_plan *plan, const void *send, void *recv, struct sent expected,
                            int64_t *bytes_to) {
  for (int turn = 0; turn < 2; turn++) {
    memset(bytes_to, 0, (size_t)s.procs * sizeof *bytes_to);
    MPI_Barrier(MPI_COMM_WORLD);
    activity_start(NULL, bytes_to);
    EXPECT_ERROR(swp_collective_execute(plan, send, recv), SWP_SUCCESS);
    struct activity activity = activity_stop();
    EXPECT_EQUAL(activity.allocations, 0);
    EXPECT_EQUAL(reduced(activity.messages, MPI_SUM), expected.messages);
    EXPECT_EQUAL(reduced(activity.messages, MPI_MAX), expected.most);
    int64_t bytes = reduced(activity.bytes, MPI_SUM);
    if (expected.bytes != UNKNOWN)
      EXPECT_EQUAL(bytes, expected.bytes);
  }
}

static void check(enum swp_operation operation, const char *method, struct sent expected, int root) {
  const int items = (int)(s.m / (int64_t)sizeof(int));
  size_t ranks = (size_t)s.procs, all = ranks * (size_t)items;
  int *send = test_allocate(all * sizeof(int)), *recv = test_allocate(all * sizeof(int));
  int *counts = test_allocate(ranks * sizeof(int)), *send_counts = test_allocate(ranks * sizeof(int));
  int *displs = test_allocate(ranks * sizeof(int));
  int64_t *bytes_to = test_allocate(ranks * sizeof *bytes_to);
  swp_plan *plan = NULL;
  test_case("%s %s, root %d, %s blocks", swp_operation_name(operation), method, root, blocks_names[s.blocks]);
  for (int i = 0; i < (int)s.procs; i++) {
    counts[i] = (int)(block_bytes(i, rank) / (int64_t)sizeof(int));
    send_counts[i] = (int)(block_bytes(rank, i) / (int64_t)sizeof(int));
    displs[i] = i * items;
  }
  memset(send, 0, all * sizeof(int));
  memset(recv, 0, all * sizeof(int));
  struct swp_collective problem = {operation, items,   MPI_INT, items,       MPI_INT, counts,
                                   displs,    MPI_SUM, root,    send_counts, displs};
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = strstr(method, "global") != NULL ? VIRTUAL_PPN : 0;
  EXPECT_ERROR(swp_collective_plan(MPI_COMM_WORLD, &problem, method, &hints, &plan), SWP_SUCCESS);
  if (plan != NULL) {
    execute_counted(plan, s.blocks == UNEVEN_IN_PLACE ? MPI_IN_PLACE : send, recv, expected, bytes_to);
    print_bytes(operation, method, root, bytes_to);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  free(send), free(recv), free(counts), free(send_counts), free(displs), free(bytes_to);
}

/* One of the checks, where the ranks suffice, by its method or the same with a grid. */
static void check_one(size_t k, const char *method, int procs, int root, enum blocks blocks) {
  set_sizes(procs, root, blocks);
  const bool has_nodes = procs % VIRTUAL_PPN == 0 && procs > VIRTUAL_PPN;
  if ((strstr(method, "global") == NULL || has_nodes) && (checks[k].expected != bine_hops || s.extra == 0))
    check(checks[k].operation, method, checks[k].expected(), root);
}

int main(int argc, char **argv) {
  int procs;
  test_begin(&argc, &argv, "swp_collective_counts");
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int roots[] = {0, procs / 2, procs - 1};
  for (size_t k = 0; k < sizeof checks / sizeof checks[0]; k++) {
    const bool rooted = swp_shapes[checks[k].operation].rooted;
    for (int i = 0; i < (rooted ? 3 : 1); i++)
      check_one(k, checks[k].method, procs, roots[i], EVEN);
    for (int blocks = UNEVEN; checks[k].operation == SWP_ALLTOALLV && blocks <= UNEVEN_IN_PLACE; blocks++)
      check_one(k, checks[k].method, procs, 0, (enum blocks)blocks);
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++)
      if (grids[i].procs == procs && !rooted && strcmp(checks[k].method, "bine") == 0)
        check_one(k, grids[i].method, procs, 0, EVEN);
  }
  return test_end();
}
