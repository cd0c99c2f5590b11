/* Sides of irregular collectives. */
#include "sides.h"

#include "testing.h"

#include <stdlib.h>

enum { GAP = 0x5a5a5a5a, TYPES = 3 };

static MPI_Datatype types[TYPES]; /* an integer, with gaps of none, one and two behind it */

void sides_begin(void) {
  types[0] = MPI_INT;
  for (int i = 1; i < TYPES; i++) {
    MPI_Type_create_resized(MPI_INT, 0, (i + 1) * (MPI_Aint)sizeof(int), &types[i]);
    MPI_Type_commit(&types[i]);
  }
}

void sides_end(void) {
  for (int i = 1; i < TYPES; i++)
    MPI_Type_free(&types[i]);
}

void side_begin(struct side *side, int n) {
  side->n = n;
  side->counts = test_allocate(((size_t)n + 1) * sizeof *side->counts);
}

static void lay_block(struct side *side, int i, int at) {
  side->at[i] = at;
  side->displs[i] = at / side->strides[i];
  side->places[i] = at * (int)sizeof(int);
  side->large_counts[i] = side->counts[i];
  side->large_displs[i] = side->displs[i];
  side->large_places[i] = side->places[i];
}

static void fill_gaps(struct side *side) {
  side->memory = test_allocate(((size_t)side->length + 1) * sizeof(int));
  for (int i = 0; i <= side->length; i++)
    side->memory[i] = GAP;
}

void side_lay(struct side *side, int layout, bool backward) {
  const size_t length = (size_t)side->n + 1;
  side->displs = test_allocate(length * sizeof *side->displs);
  side->places = test_allocate(length * sizeof *side->places);
  side->large_counts = test_allocate(length * sizeof *side->large_counts);
  side->large_displs = test_allocate(length * sizeof *side->large_displs);
  side->large_places = test_allocate(length * sizeof *side->large_places);
  side->types = test_allocate(length * sizeof(MPI_Datatype));
  side->at = test_allocate(length * sizeof *side->at);
  side->strides = test_allocate(length * sizeof *side->strides);
  side->type = types[layout % TYPES];
  side->length = 0;
  for (int k = 0; k < side->n; k++) {
    int i = backward ? side->n - 1 - k : k, kind = (layout + (side->mixed ? i : 0)) % TYPES;
    side->types[i] = types[kind];
    side->strides[i] = kind + 1;
    side->length += backward ? side->strides[i] : 0;
    lay_block(side, i, side->shared ? 0 : side->length);
    side->length += side->counts[i] * side->strides[i];
  }
  if (side->shared)
    side->length = side->count * (layout % TYPES + 1);
  fill_gaps(side);
}

int *side_item(const struct side *side, int block, int index) {
  return &side->memory[side->at[block] + index * side->strides[block]];
}

static int value(uint64_t seed, int from, int to, int index) {
  return (int)(mix(seed, (uint64_t)from * 1000 + (uint64_t)to, (uint64_t)index, 43) & 0xffffff);
}

void side_fill(const struct side *side, int block, uint64_t seed, int from, int to) {
  for (int i = 0; i < side->counts[block]; i++)
    *side_item(side, block, i) = value(seed, from, to, i);
}

void side_check(const struct side *side, int block, uint64_t seed, int from, int to) {
  for (int i = 0; i < side->counts[block]; i++) {
    EXPECT_EQUAL(*side_item(side, block, i), value(seed, from, to, i));
    *side_item(side, block, i) = GAP;
  }
}

void side_check_gaps(const struct side *side) {
  for (int i = 0; i <= side->length; i++)
    EXPECT_EQUAL(side->memory[i], GAP);
}

void side_end(struct side *side) {
  free(side->counts);
  free(side->displs);
  free(side->places);
  free(side->large_counts);
  free(side->large_displs);
  free(side->large_places);
  free(side->types);
  free(side->at);
  free(side->strides);
  free(side->memory);
}
