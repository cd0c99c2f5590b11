/*
 * The parallel product with a vector, written down for a comparison with another program's:
 * swp_spmv [--vectors N] [--ppn N] MATRIX PARTITION OUT ... It must be the product of the rows as they were
 * read, and all exchange methods must agree to the last bit.
 */
#include "spmv.h"
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct problem {
  const struct team *team;
  struct matrix matrix;
  struct halo halo;
  struct spmv spmv;
  int vectors;
  double *x, *received, *y, *first_y;
};

/* The elements of the vectors: 1 to 2, exact in every arithmetic that has doubles. */
static double element(int64_t row, int vector) {
  return 1 + (double)(uint32_t)((uint64_t)row * 2654435761u + (uint64_t)vector * 40503u) / 4294967296.0;
}

static void create(struct problem *problem, const struct swp_hints *hints) {
  const struct lists *recvs = &problem->halo.recvs;
  halo_create(problem->team, &problem->matrix, &problem->halo);
  bool *near = test_allocate((size_t)recvs->n * sizeof *near);
  team_find_near(problem->team, hints, recvs->n, recvs->ranks, near);
  spmv_create(&problem->matrix, recvs, problem->halo.columns, near, &problem->spmv);
  free(near);
  const int64_t nrows = problem->matrix.partition.nrows;
  const size_t bytes = (size_t)problem->vectors * sizeof(double);
  problem->x = test_allocate((size_t)nrows * bytes);
  problem->y = test_allocate((size_t)nrows * bytes);
  problem->first_y = test_allocate((size_t)nrows * bytes);
  problem->received = test_allocate((size_t)recvs->offsets[recvs->n] * bytes);
  for (int64_t row = 0; row < nrows; row++)
    for (int v = 0; v < problem->vectors; v++)
      problem->x[row * problem->vectors + v] = element(partition_row(&problem->matrix.partition, row), v);
}

static void free_all(struct problem *problem) {
  free(problem->x);
  free(problem->y);
  free(problem->first_y);
  free(problem->received);
  spmv_free(&problem->spmv);
  lists_free(&problem->halo.recvs);
  lists_free(&problem->halo.sends);
  free(problem->halo.columns);
  matrix_free(&problem->matrix);
}

/* Writes what no product may leave: all bits set is not a number. */
static void wipe(const struct problem *problem) {
  const struct lists *recvs = &problem->halo.recvs;
  const size_t bytes = (size_t)problem->vectors * sizeof(double);
  memset(problem->y, 0xff, (size_t)problem->matrix.partition.nrows * bytes);
  memset(problem->received, 0xff, (size_t)recvs->offsets[recvs->n] * bytes);
}

static void multiply(const struct problem *problem, const char *spec, const struct swp_hints *hints) {
  const struct lists *sends = &problem->halo.sends, *recvs = &problem->halo.recvs;
  const struct swp_exchange exchange = {.item_bytes = (int64_t)sizeof(double) * problem->vectors,
                                        .nitems = problem->matrix.partition.nrows,
                                        .nsends = sends->n,
                                        .send_ranks = sends->ranks,
                                        .send_offsets = sends->offsets,
                                        .send_items = sends->items,
                                        .nrecvs = recvs->n,
                                        .recv_ranks = recvs->ranks,
                                        .recv_offsets = recvs->offsets};
  swp_plan *plan = NULL;
  const int error =
      test_agreed(problem->team->comm, swp_exchange_plan(problem->team->comm, &exchange, spec, hints, &plan));
  if (error == SWP_ERR_NOT_APPLICABLE && strstr(spec, "shared") != NULL)
    return; /* nothing is sent that would go by memory, or the ranks are on one node */
  EXPECT_ERROR(error, SWP_SUCCESS);
  for (int repetition = 0; repetition < 2; repetition++) {
    wipe(problem);
    EXPECT_ERROR(
        spmv_multiply(&problem->spmv, plan, problem->vectors, problem->x, problem->received, problem->y),
        SWP_SUCCESS);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

/* Compares with the product of the rows as read, with elements that no rank sent. */
static void compare(const struct problem *problem) {
  const struct matrix *matrix = &problem->matrix;
  for (int64_t row = 0; row < matrix->partition.nrows; row++)
    for (int v = 0; v < problem->vectors; v++) {
      double sum = 0, magnitude = 0;
      for (int64_t k = matrix->offsets[row]; k < matrix->offsets[row + 1]; k++) {
        sum += matrix->values[k] * element(matrix->columns[k], v);
        magnitude += fabs(matrix->values[k] * element(matrix->columns[k], v));
      }
      const double y = problem->y[row * problem->vectors + v];
      EXPECT(fabs(y - sum) <= 1e-12 * magnitude, "row %lld, vector %d is %.17g, expected %.17g",
             (long long)partition_row(&matrix->partition, row), v, y, sum);
    }
}

/* Every rank in turn writes its elements to their places in the file. */
static void write_out(const struct problem *problem, const char *path) {
  const struct partition *partition = &problem->matrix.partition;
  for (int rank = 0; rank < problem->team->procs; rank++) {
    if (rank == problem->team->rank) {
      FILE *file = fopen(path, rank == 0 ? "wb" : "r+b");
      EXPECT(file != NULL, "cannot write %s", path);
      for (int64_t row = 0; file != NULL && row < partition->nrows; row++) {
        fseek(file, (long)(partition_row(partition, row) * problem->vectors) * (long)sizeof(double),
              SEEK_SET);
        fwrite(problem->y + row * problem->vectors, sizeof(double), (size_t)problem->vectors, file);
      }
      EXPECT(file != NULL && fclose(file) == 0, "cannot write %s", path);
    }
    MPI_Barrier(problem->team->comm);
  }
}

static void check(const struct team *team, int vectors, int ppn, char **names) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = ppn;
  struct problem problem = {.team = team, .vectors = vectors};
  test_case("%s in parts %s", names[0], names[1]);
  const int status = matrix_read(team, names[0], names[1], &problem.matrix);
  EXPECT(status == 0, "cannot be read");
  if (status == 0) {
    create(&problem, &hints);
    char *specs = all_specs(SWP_EXCHANGE, team->procs), *rest = specs;
    const size_t bytes = (size_t)problem.matrix.partition.nrows * (size_t)vectors * sizeof(double);
    for (char *spec; (spec = strtok_r(rest, " ", &rest)) != NULL;) {
      test_case("%s in parts %s by %s", names[0], names[1], spec);
      multiply(&problem, spec, &hints);
      if (spec == specs)
        memcpy(problem.first_y, problem.y, bytes);
      EXPECT(memcmp(problem.first_y, problem.y, bytes) == 0, "the product differs from that by %s", specs);
    }
    free(specs);
    compare(&problem);
    write_out(&problem, names[2]);
  }
  free_all(&problem);
}

/* The number after an option, when it is the first of the arguments that are left. */
static int take_option(const char *name, int standard, int *argc, char ***argv) {
  if (*argc < 3 || strcmp((*argv)[1], name) != 0)
    return standard;
  *argc -= 2;
  *argv += 2;
  return atoi((*argv)[0]);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_spmv");
  const int vectors = take_option("--vectors", 1, &argc, &argv);
  const int ppn = take_option("--ppn", 0, &argc, &argv);
  struct team team;
  team_create(&team);
  for (int i = 1; i + 2 < argc; i += 3)
    check(&team, vectors, ppn, argv + i);
  team_free(&team);
  return test_end();
}
