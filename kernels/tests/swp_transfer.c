/* Messages over MPI's int counts: their types have the right size and extent, found without such buffers. */
#include "testing.h"
#include "schedule.h"

#include <limits.h>

static const int64_t GIB = (int64_t)1 << 30;

static void expect_type(const struct run *runs, int64_t nruns) {
  struct transfer transfer = {0};
  MPI_Count size, first, extent;
  int64_t bytes = 0, end = 0;
  for (int64_t i = 0; i < nruns; i++) {
    bytes += runs[i].bytes;
    end = runs[i].offset + runs[i].bytes;
  }
  test_case("%lld bytes in %lld runs from %lld", (long long)bytes, (long long)nruns,
            (long long)runs[0].offset);
  int error = swp_transfer_set(&transfer, 0, PLACE_USER, runs, nruns);
  EXPECT_ERROR(error, SWP_SUCCESS);
  if (error != SWP_SUCCESS)
    return;
  MPI_Type_size_x(transfer.type, &size);
  MPI_Type_get_true_extent_x(transfer.type, &first, &extent);
  if (transfer.type == MPI_BYTE)
    extent = transfer.count;
  EXPECT_EQUAL(size * transfer.count, bytes);
  EXPECT_EQUAL(transfer.offset + first, runs[0].offset);
  EXPECT_EQUAL(extent, end - runs[0].offset);
  swp_transfer_free(&transfer);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_transfer");
  expect_type(&(struct run){8, 24}, 1);
  expect_type(&(struct run){0, INT_MAX}, 1);
  expect_type(&(struct run){16, (int64_t)INT_MAX + 1}, 1);
  expect_type(&(struct run){0, 5 * GIB + 3}, 1);
  expect_type(&(struct run){7 * GIB, 2 * GIB}, 1);
  expect_type((struct run[]){{8, 8}, {24, 16}}, 2);
  expect_type((struct run[]){{GIB, 3}, {3 * GIB, 4 * GIB + 1}, {9 * GIB, 1}}, 3);
  expect_type((struct run[]){{0, 3 * GIB}, {4 * GIB, 3 * GIB}}, 2);
  return test_end();
}
