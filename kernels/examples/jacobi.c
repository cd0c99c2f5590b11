/*
 * Jacobi iteration for a dense system, in the three forms of Hartmann, Kuehnemann, Rauber and Ruenger: they
 * compute the same, but communicate differently. Plain MPI.
 * Usage: jacobi rows|columns-all|columns-root SIZE ITERATIONS
 *   rows          blocks of rows; allgather of the new vector
 *   columns-all   blocks of columns; allreduce of the sums, allgather of the new vector
 *   columns-root  blocks of columns; reduce of the sums, broadcast of the new vector
 * Prints the time of an iteration in seconds, that of the slowest rank, and a hash and a norm of the result.
 */
#include "result.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, procs, size, block;
static double *matrix;    /* the rank's rows, or its columns by rows: size * block */
static double *sums;      /* of the off-diagonal products */
static double *next_sums; /* over all ranks */
static double *vector;    /* the iterate, on all ranks */
static double *mine;      /* the rank's part of the next */

static double element(int row, int column) {
  return row == column ? 2.0 * size : 1.0 / (1 + (row * 7 + column * 13) % 11);
}

static double right_side(int row) {
  return 1 + row % 5;
}

static void iterate_by_rows(void) {
  for (int i = 0; i < block; i++) {
    int row = rank * block + i;
    double sum = 0;
    for (int j = 0; j < size; j++)
      sum += matrix[(size_t)i * (size_t)size + (size_t)j] * vector[j];
    mine[i] = (right_side(row) - sum) / element(row, row);
  }
  MPI_Allgather(mine, block, MPI_DOUBLE, vector, block, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void multiply_columns(void) {
  for (int row = 0; row < size; row++) {
    double sum = 0;
    for (int j = 0; j < block; j++)
      sum += matrix[(size_t)row * (size_t)block + (size_t)j] * vector[rank * block + j];
    sums[row] = sum;
  }
}

static void iterate_by_columns_all(void) {
  multiply_columns();
  MPI_Allreduce(sums, next_sums, size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < block; i++) {
    int row = rank * block + i;
    mine[i] = (right_side(row) - next_sums[row]) / element(row, row);
  }
  MPI_Allgather(mine, block, MPI_DOUBLE, vector, block, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void iterate_by_columns_root(void) {
  multiply_columns();
  MPI_Reduce(sums, next_sums, size, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int row = 0; rank == 0 && row < size; row++)
    vector[row] = (right_side(row) - next_sums[row]) / element(row, row);
  MPI_Bcast(vector, size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static const struct form {
  const char *name;
  void (*iterate)(void);
  int by_rows;
} forms[] = {{"rows", iterate_by_rows, 1},
             {"columns-all", iterate_by_columns_all, 0},
             {"columns-root", iterate_by_columns_root, 0}};

static const struct form *find_form(const char *name) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (strcmp(forms[i].name, name) == 0)
      return &forms[i];
  return NULL;
}

static void make_system(const struct form *form) {
  size_t elements = (size_t)size * (size_t)block;
  matrix = result_allocate(elements);
  sums = result_allocate((size_t)size);
  next_sums = result_allocate((size_t)size);
  vector = result_allocate((size_t)size);
  mine = result_allocate((size_t)block);
  for (size_t k = 0; k < elements; k++) {
    int row = form->by_rows ? rank * block + (int)(k / (size_t)size) : (int)(k / (size_t)block);
    int column = form->by_rows ? (int)(k % (size_t)size) : rank * block + (int)(k % (size_t)block);
    matrix[k] = row == column ? 0 : element(row, column);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  const struct form *form = argc == 4 ? find_form(argv[1]) : NULL;
  int iterations = argc == 4 ? atoi(argv[3]) : 0;
  size = argc == 4 ? atoi(argv[2]) : 0;
  if (form == NULL || iterations < 1 || size < 1 || size % procs != 0)
    result_refuse(
        "usage: jacobi rows|columns-all|columns-root SIZE ITERATIONS, SIZE a multiple of the ranks");
  block = size / procs;
  make_system(form);
  form->iterate(); /* warms up */
  MPI_Barrier(MPI_COMM_WORLD);
  double start_s = MPI_Wtime();
  for (int i = 0; i < iterations; i++)
    form->iterate();
  result_print((MPI_Wtime() - start_s) / iterations, vector, size);
  double *memory[] = {matrix, sums, next_sums, vector, mine};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    free(memory[i]);
  return MPI_Finalize();
}
