/*
 * bruck: a step for each digit of P - 1 to the base `radix`, for any number of ranks P. Blocks lie packed in
 * the order in which they are met: for an allgather from the rank's own one on, for an alltoall by the
 * distance that they have to go. Without blocks it is a barrier by dissemination. With levels=2, see
 * bruck_levels.c.
 */
#include "bruck.h"

#include "blocks.h"
#include "radix.h"
#include "textbook.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_RADIX = 2, MORE = 4, MOST_RADIX = 64 };

enum { RADIX, LEVELS };

static bool has_levels(const struct spec *spec) {
  return spec->arguments[LEVELS].given;
}

static bool bruck_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  const int more = procs > MORE ? 1 : 0;
  if (index == 0)
    return snprintf(text, length, "bruck") > 0;
  if (index == more)
    return snprintf(text, length, "bruck:radix=%d", MORE) > 0;
  return index == more + 1 && operation == SWP_ALLGATHER && snprintf(text, length, "bruck:levels=2") > 0;
}

static const char *bruck_applicable(const struct spec *spec, const struct features *features) {
  if (!has_levels(spec))
    return NULL;
  return spec->arguments[RADIX].given ? "either radix=K or levels=2" : swp_levels_applicable(features);
}

static int bruck_plan(struct swp_plan *plan) {
  return has_levels(&plan->spec) ? swp_levels_plan(plan) : SWP_SUCCESS;
}

/* ---- Allgather ---- */

static int64_t allgather_scratch_bytes(const struct swp_plan *plan) {
  return has_levels(&plan->spec) ? swp_levels_scratch_bytes(plan) : plan->features.total_bytes;
}

/* Bytes of this many blocks, beginning with a rank's. */
static int run_bytes(const struct swp_plan *plan, const struct blocks *blocks, int first, int count) {
  int64_t items = 0;
  for (int i = 0; i < count; i++)
    items += swp_blocks_items(blocks, (first + i) % plan->procs);
  return (int)(items * call_of(plan)->recv.item_bytes);
}

static int bruck_allgather(struct swp_plan *plan, const void *send, void *recv) {
  if (has_levels(&plan->spec))
    return swp_levels_allgather(plan, send, recv);
  const struct call *call = call_of(plan);
  struct blocks blocks = swp_blocks_of_ranks(plan, recv);
  const int procs = plan->procs, rank = plan->rank, radix = swp_radix_of(&plan->spec);
  MPI_Request requests[2 * MOST_RADIX];
  int own_bytes = run_bytes(plan, &blocks, rank, 1), bytes = own_bytes, error = SWP_SUCCESS;
  TRY(swp_blocks_place_own(plan, &blocks, send));
  TRY(swp_pack(plan, &call->recv, swp_blocks_at(&blocks, rank), swp_blocks_items(&blocks, rank),
               scratch_of(plan)));
  for (int64_t value = 1; value < procs; value *= radix) {
    int n = 0;
    for (int64_t next = value; next < procs && next < radix * value; next += value) {
      const int distance = (int)next, count = (int)(value < procs - next ? value : procs - next);
      const int from = (rank + distance) % procs, to = (rank - distance + procs) % procs;
      const int came = run_bytes(plan, &blocks, from, count);
      MPI_TRY(MPI_Irecv(scratch_of(plan) + bytes, came, MPI_PACKED, from, COLLECTIVE_TAG, plan->comm,
                        &requests[n++]));
      MPI_TRY(MPI_Isend(scratch_of(plan), run_bytes(plan, &blocks, rank, count), MPI_PACKED, to,
                        COLLECTIVE_TAG, plan->comm, &requests[n++]));
      bytes += came;
    }
    TRY(swp_complete(plan, n, requests));
  }
  bytes = own_bytes;
  for (int i = 1; i < procs; i++) {
    int block = (rank + i) % procs;
    TRY(swp_unpack(plan, &call->recv, scratch_of(plan) + bytes, swp_blocks_items(&blocks, block),
                   swp_blocks_at(&blocks, block)));
    bytes += run_bytes(plan, &blocks, block, 1);
  }
done:
  return error;
}

/* ---- Alltoall ---- */

/* All blocks, and those that a step sends and receives: all but those of digit 0. */
static int64_t alltoall_scratch_bytes(const struct swp_plan *plan) {
  const int64_t procs = plan->procs, radix = swp_radix_of(&plan->spec);
  return (procs + 2 * (procs - (procs + radix - 1) / radix)) * plan->features.bytes;
}

/* Copies the blocks whose distance has a digit between their places and a run. Returns the run's end. */
static char *copy_digit(const struct swp_plan *plan, int64_t value, int digit, char *run, bool to_run) {
  const int radix = swp_radix_of(&plan->spec);
  const size_t block = (size_t)plan->features.bytes;
  for (int64_t i = digit * value; i < plan->procs; i += radix * value)
    for (int64_t k = i; k < i + value && k < plan->procs; k++, run += block) {
      char *place = scratch_of(plan) + (size_t)k * block;
      memcpy(to_run ? run : place, to_run ? place : run, block);
    }
  return run;
}

/* Sends on the blocks whose distance has another digit than 0 at this place; received blocks take their
   places. */
static int forward(struct swp_plan *plan, int64_t value) {
  const int procs = plan->procs, rank = plan->rank, radix = swp_radix_of(&plan->spec);
  char *out = scratch_of(plan) + procs * plan->features.bytes;
  char *const in = out + (procs - (procs + radix - 1) / radix) * plan->features.bytes;
  char *came = in;
  MPI_Request requests[2 * MOST_RADIX];
  int n = 0, error = SWP_SUCCESS;
  for (int digit = 1; digit < radix && digit * value < procs; digit++) {
    const int distance = (int)(digit * value);
    char *end = copy_digit(plan, value, digit, out, true);
    const int bytes = (int)(end - out);
    MPI_TRY(MPI_Irecv(came, bytes, MPI_PACKED, (rank - distance + procs) % procs, COLLECTIVE_TAG, plan->comm,
                      &requests[n++]));
    MPI_TRY(MPI_Isend(out, bytes, MPI_PACKED, (rank + distance) % procs, COLLECTIVE_TAG, plan->comm,
                      &requests[n++]));
    out = end;
    came += bytes;
  }
  TRY(swp_complete(plan, n, requests));
  came = in;
  for (int digit = 1; digit < radix && digit * value < procs; digit++)
    came = copy_digit(plan, value, digit, came, false);
done:
  return error;
}

static int bruck_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  const struct side *from = send == MPI_IN_PLACE ? &call->recv : &call->send, *to = &call->recv;
  const void *source = send == MPI_IN_PLACE ? recv : send;
  int procs = plan->procs, rank = plan->rank, error = SWP_SUCCESS;
  int64_t block = plan->features.bytes;
  for (int i = 0; i < procs; i++)
    TRY(swp_pack(plan, from, swp_item(from, source, (int64_t)((rank + i) % procs) * from->count), from->count,
                 scratch_of(plan) + i * block));
  for (int64_t value = 1; value < procs; value *= swp_radix_of(&plan->spec))
    TRY(forward(plan, value));
  for (int i = 0; i < procs; i++)
    TRY(swp_unpack(plan, to, scratch_of(plan) + i * block, to->count,
                   swp_item(to, recv, (int64_t)((rank - i + procs) % procs) * to->count)));
done:
  return error;
}

/* ---- Barrier ---- */

static int bruck_barrier(struct swp_plan *plan, const void *send, void *recv) {
  const int procs = plan->procs, rank = plan->rank, radix = swp_radix_of(&plan->spec);
  MPI_Request requests[2 * MOST_RADIX];
  int error = SWP_SUCCESS;
  (void)send, (void)recv;
  for (int64_t value = 1; value < procs; value *= radix) {
    int n = 0;
    for (int64_t next = value; next < procs && next < radix * value; next += value) {
      const int distance = (int)next;
      MPI_TRY(MPI_Irecv(NULL, 0, MPI_BYTE, (rank - distance + procs) % procs, COLLECTIVE_TAG, plan->comm,
                        &requests[n++]));
      MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, (rank + distance) % procs, COLLECTIVE_TAG, plan->comm,
                        &requests[n++]));
    }
    TRY(swp_complete(plan, n, requests));
  }
done:
  return error;
}

/* Without a radix, the formula is that of the algorithm as libraries have it. */
static int bruck_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  if (has_levels(estimate->spec))
    return swp_estimate_formula(plan, estimate, swp_levels_s, seconds);
  if (!estimate->spec->arguments[RADIX].given)
    return swp_estimate_textbook(plan, estimate, seconds);
  radix_formula *its = plan->operation == SWP_ALLTOALL  ? swp_radix_bruck_alltoall_s
                       : plan->operation == SWP_BARRIER ? swp_radix_bruck_barrier_s
                                                        : swp_radix_bruck_allgather_s;
  return swp_estimate_radix(plan, estimate, its, seconds);
}

const struct method swp_collective_bruck = {
    .name = "bruck",
    .summary = "ceil(log P) steps that forward packed blocks, or none in a barrier, for any number of ranks",
    .source =
        "Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient algorithms for all-to-all communications, 1997",
    .usage = "radix=K (2 to 64; 2 when not given) or levels=2 (allgather; one level when not given)",
    .parameters = {[RADIX] = {.name = "radix",
                              .type = PARAMETER_INTEGER,
                              .low = LEAST_RADIX,
                              .high = MOST_RADIX,
                              .otherwise = LEAST_RADIX},
                   [LEVELS] = {.name = "levels", .type = PARAMETER_INTEGER, .low = 2, .high = 2}},
    .variant = bruck_variant,
    .applicable = bruck_applicable,
    .plan = bruck_plan,
    .free = swp_levels_free,
    .estimate = bruck_estimate,
    .procedures =
        {
            [SWP_ALLGATHER] = {bruck_allgather, allgather_scratch_bytes, swp_total_applicable},
            [SWP_ALLGATHERV] = {bruck_allgather, allgather_scratch_bytes, swp_total_applicable},
            [SWP_ALLTOALL] = {bruck_alltoall, alltoall_scratch_bytes, swp_total_applicable},
            [SWP_BARRIER] = {bruck_barrier},
        },
};
