/*
 * The parallel Adams methods PAB and PABM of van der Houwen and Messina (1999) for a system of ordinary
 * differential equations, as Hartmann, Kuehnemann, Rauber and Ruenger use them: components are distributed
 * over the ranks, and each evaluation of the stages ends with an allgatherv of all of them. Plain MPI.
 * Usage: adams pab|pabm SIZE STEPS
 * Prints the time of a step in seconds, that of the slowest rank, and a hash and a norm of the solution.
 */
#include "result.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STAGES = 4, CORRECTIONS = 2 };

/* Abscissae: the Lobatto points of (0, 1] shifted so that the last is 1. */
static const double abscissae[STAGES] = {0.1726731646460114, 0.5, 0.8273268353539886, 1};

static int rank, procs, size;
static int *counts, *displs;
static double *stages, *derivatives, *fresh; /* STAGES vectors each; of `fresh` only the rank's parts count */
static double predictor[STAGES][STAGES], corrector[STAGES][STAGES];

/* The integral of the i-th Lagrange polynomial on the abscissae from `from` to `to`, by Gauss's rule of four
   points, which is exact. */
static double integral(int i, double from, double to) {
  static const double points[] = {-0.8611363115940526, -0.3399810435848563, 0.3399810435848563,
                                  0.8611363115940526};
  static const double weights[] = {0.3478548451374538, 0.6521451548625461, 0.6521451548625461,
                                   0.3478548451374538};
  double sum = 0;
  for (int g = 0; g < 4; g++) {
    double s = (from + to) / 2 + (to - from) / 2 * points[g], value = 1;
    for (int j = 0; j < STAGES; j++)
      if (j != i)
        value *= (s - abscissae[j]) / (abscissae[i] - abscissae[j]);
    sum += weights[g] * value;
  }
  return sum * (to - from) / 2;
}

/* From the last stage, at 1 of its step and 0 of the next: predicted by the old step's polynomial, corrected
   by the new one's. */
static void find_coefficients(void) {
  for (int i = 0; i < STAGES; i++)
    for (int j = 0; j < STAGES; j++) {
      predictor[i][j] = integral(j, 1, 1 + abscissae[i]);
      corrector[i][j] = integral(j, 0, abscissae[i]);
    }
}

/* Diffusion and logistic growth on a ring. */
static double derivative(const double *y, int k) {
  double left = y[(k + size - 1) % size], right = y[(k + 1) % size];
  return left - 2 * y[k] + right + y[k] * (1 - y[k]);
}

static void evaluate(void) {
  for (int i = 0; i < STAGES; i++)
    for (int k = displs[rank]; k < displs[rank] + counts[rank]; k++)
      derivatives[i * size + k] = derivative(stages + (size_t)i * (size_t)size, k);
}

/* New stages on the rank's components from the base and the derivatives, and all of them on all ranks. */
static void advance(double coefficients[STAGES][STAGES], const double *base, double step) {
  for (int i = 0; i < STAGES; i++) {
    for (int k = displs[rank]; k < displs[rank] + counts[rank]; k++) {
      double sum = 0;
      for (int j = 0; j < STAGES; j++)
        sum += coefficients[i][j] * derivatives[j * size + k];
      fresh[i * size + k] = base[k] + step * sum;
    }
  }
  for (int i = 0; i < STAGES; i++)
    MPI_Allgatherv(fresh + i * size + displs[rank], counts[rank], MPI_DOUBLE,
                   stages + (size_t)i * (size_t)size, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void step_once(int corrections, double *base, double step) {
  memcpy(base, stages + (size_t)(STAGES - 1) * (size_t)size, (size_t)size * sizeof *base);
  evaluate();
  advance(predictor, base, step);
  for (int m = 0; m < corrections; m++) {
    evaluate();
    advance(corrector, base, step);
  }
}

/* Distributes components as evenly as possible, from smooth initial values, the same at all stages: the first
   step is as good as its predictor. */
static void make_problem(void) {
  size_t all = (size_t)STAGES * (size_t)size;
  counts = calloc((size_t)procs, sizeof *counts);
  displs = calloc((size_t)procs, sizeof *displs);
  if (counts == NULL || displs == NULL)
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  for (int i = 0, begin = 0; i < procs; begin += counts[i++]) {
    displs[i] = begin;
    counts[i] = size / procs + (i < size % procs);
  }
  stages = result_allocate(all);
  derivatives = result_allocate(all);
  fresh = result_allocate(all);
  for (int i = 0; i < STAGES; i++)
    for (int k = 0; k < size; k++)
      stages[i * size + k] = 0.5 + 0.4 * sin(6.283185307179586 * k / size);
  find_coefficients();
}

int main(int argc, char **argv) {
  const double step = 0.01;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  int corrections = argc == 4 && strcmp(argv[1], "pabm") == 0 ? CORRECTIONS : 0;
  int steps = argc == 4 ? atoi(argv[3]) : 0;
  size = argc == 4 ? atoi(argv[2]) : 0;
  if (size < 1 || steps < 1 || (corrections == 0 && strcmp(argv[1], "pab") != 0))
    result_refuse("usage: adams pab|pabm SIZE STEPS");
  make_problem();
  double *base = result_allocate((size_t)size);
  step_once(corrections, base, step); /* warms up */
  MPI_Barrier(MPI_COMM_WORLD);
  double start_s = MPI_Wtime();
  for (int i = 0; i < steps; i++)
    step_once(corrections, base, step);
  result_print((MPI_Wtime() - start_s) / steps, stages + (size_t)(STAGES - 1) * (size_t)size, size);
  free(base);
  free(counts);
  free(displs);
  free(stages);
  free(derivatives);
  free(fresh);
  return MPI_Finalize();
}
