/*
 * multiplying: recursive doubling with any radix. Positions have digits to this base; in each step those that
 * differ in one digit exchange what they have, all at once. Of a number of ranks that is no such power, the
 * highest digit has fewer values, and some pairs act as one (blocks.h).
 */
#include "blocks.h"
#include "radix.h"

#include <stdio.h>

enum { RADIX = 4, MOST_RADIX = 64 };

/* There is no variant for so few ranks that each exchanges with each other one. */
static bool multiplying_variant(enum swp_operation operation, int index, int procs, char *text,
                                size_t length) {
  (void)operation;
  return index == 0 && procs > RADIX && snprintf(text, length, "multiplying:radix=%d", RADIX) > 0;
}

static struct fold find_fold(const struct swp_plan *plan) {
  return swp_fold_of(plan, 0, swp_radix_positions(plan->procs, swp_radix_of(&plan->spec)));
}

/* The positions that differ from this one in one digit: `first`, and further ones by `stride`. */
struct digit {
  int first, stride, count, own;
};

static struct digit digit_of(const struct swp_plan *plan, const struct fold *fold, int stride) {
  const int radix = swp_radix_of(&plan->spec), rest = fold->size / stride;
  const int count = rest < radix ? rest : radix, own = fold->position / stride % count;
  return (struct digit){fold->position - own * stride, stride, count, own};
}

/* ---- Allgather ---- */

static int multiplying_allgather(struct swp_plan *plan, const void *send, void *recv) {
  struct blocks blocks = swp_blocks_of_ranks(plan, recv);
  const struct fold fold = find_fold(plan);
  MPI_Request requests[2 * MOST_RADIX];
  int count = call_of(plan)->recv.count, error = SWP_SUCCESS;
  TRY(swp_blocks_place_own(plan, &blocks, send));
  if (fold.position < 0) {
    TRY(swp_send(plan, swp_blocks_at(&blocks, plan->rank), count, blocks.type, fold.partner));
    return swp_receive(plan, recv, (int)blocks.items, blocks.type, fold.partner);
  }
  if (fold.partner >= 0)
    TRY(swp_receive(plan, swp_blocks_at(&blocks, fold.partner), count, blocks.type, fold.partner));
  for (int stride = 1; stride < fold.size; stride *= swp_radix_of(&plan->spec)) {
    const struct digit digit = digit_of(plan, &fold, stride);
    const int run = fold.position - fold.position % stride, from = swp_fold_first(&fold, run);
    const int items = swp_blocks_run(&blocks, from, swp_fold_first(&fold, run + stride));
    int n = 0;
    for (int i = 0; i < digit.count; i++) {
      const int peer = swp_fold_rank(&fold, digit.first + i * stride), its = run + (i - digit.own) * stride;
      const int its_first = swp_fold_first(&fold, its);
      if (i == digit.own)
        continue;
      MPI_TRY(MPI_Irecv(swp_blocks_at(&blocks, its_first),
                        swp_blocks_run(&blocks, its_first, swp_fold_first(&fold, its + stride)), blocks.type,
                        peer, COLLECTIVE_TAG, plan->comm, &requests[n++]));
      MPI_TRY(MPI_Isend(swp_blocks_at(&blocks, from), items, blocks.type, peer, COLLECTIVE_TAG, plan->comm,
                        &requests[n++]));
    }
    TRY(swp_complete(plan, n, requests));
  }
  if (fold.partner >= 0)
    TRY(swp_send(plan, recv, (int)blocks.items, blocks.type, fold.partner));
done:
  return error;
}

/* ---- Allreduce ---- */

/* The vectors received in a step. */
static int rooms_of(const struct swp_plan *plan) {
  const int radix = swp_radix_of(&plan->spec);
  return (radix < plan->procs ? radix : plan->procs) - 1;
}

static int64_t allreduce_scratch_bytes(const struct swp_plan *plan) {
  return rooms_of(plan) * swp_recv_room(plan);
}

/* Joins vectors in the order of digits: the last one, of this rank or in the last room, gets all. */
static int join(struct swp_plan *plan, const struct digit *digit, void **sum, void **rooms) {
  const struct side *side = &call_of(plan)->recv;
  const int last = digit->count - 1;
  int error = SWP_SUCCESS;
  void *all = digit->own == last ? *sum : rooms[last - 1];
  for (int i = last - 1; i >= 0; i--) {
    const void *its = i == digit->own ? *sum : rooms[i < digit->own ? i : i - 1];
    MPI_TRY(MPI_Reduce_local(its, all, side->count, side->type, call_of(plan)->op));
  }
  if (all != *sum) {
    rooms[last - 1] = *sum;
    *sum = all;
  }
done:
  return error;
}

static int multiplying_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  const struct fold fold = find_fold(plan);
  MPI_Request requests[2 * MOST_RADIX];
  void *sum = recv, *rooms[MOST_RADIX];
  int error = SWP_SUCCESS;
  for (int i = 0; i < rooms_of(plan); i++)
    rooms[i] = swp_recv_place(plan, i);
  TRY(swp_fold_in(plan, &fold, send == MPI_IN_PLACE ? recv : send, &sum, &rooms[0]));
  for (int stride = 1; fold.position >= 0 && stride < fold.size; stride *= swp_radix_of(&plan->spec)) {
    const struct digit digit = digit_of(plan, &fold, stride);
    int n = 0;
    for (int i = 0; i < digit.count; i++) {
      const int peer = swp_fold_rank(&fold, digit.first + i * stride);
      if (i == digit.own)
        continue;
      /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): no digit has more others than there are rooms */
      MPI_TRY(
          MPI_Irecv(rooms[n / 2], side->count, side->type, peer, COLLECTIVE_TAG, plan->comm, &requests[n]));
      MPI_TRY(MPI_Isend(sum, side->count, side->type, peer, COLLECTIVE_TAG, plan->comm, &requests[n + 1]));
      n += 2;
    }
    TRY(swp_complete(plan, n, requests));
    TRY(join(plan, &digit, &sum, rooms));
  }
  TRY(swp_fold_out(plan, &fold, sum, recv));
done:
  return error;
}

static int multiplying_estimate(const struct swp_plan *plan, const struct estimate *estimate,
                                double *seconds) {
  radix_formula *its = plan->operation == SWP_ALLREDUCE ? swp_radix_multiplying_allreduce_s
                                                        : swp_radix_multiplying_allgather_s;
  return swp_estimate_radix(plan, estimate, its, seconds);
}

const struct method swp_collective_multiplying = {
    .name = "multiplying",
    .summary = "radix - 1 exchanges at once, of what the ones before brought",
    .source = "Wilkins et al., Generalized collective algorithms for the exascale era, CLUSTER 2023",
    .usage = "radix=K (3 to 64; 4 when not given)",
    .parameters =
        {{.name = "radix", .type = PARAMETER_INTEGER, .low = 3, .high = MOST_RADIX, .otherwise = RADIX}},
    .variant = multiplying_variant,
    .estimate = multiplying_estimate,
    .procedures =
        {
            [SWP_ALLREDUCE] = {multiplying_allreduce, allreduce_scratch_bytes},
            [SWP_ALLGATHER] = {multiplying_allgather, NULL, swp_total_applicable},
        },
};
