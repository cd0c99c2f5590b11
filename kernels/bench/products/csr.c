#include "csr.h"

#include <stdlib.h>

/* Computes a sum as several partial ones, which the compiler may keep in one register: -fopenmp-simd. */
static double row_product(const double *restrict values, const int32_t *restrict columns, int64_t n,
                          const double *restrict x) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++)
    sum += values[i] * x[columns[i]];
  return sum;
}

static void multiply_one(const struct csr *csr, int32_t begin, int32_t end, const double *restrict x,
                         double *restrict y) {
  for (int32_t i = begin; i < end; i++) {
    const int64_t first = csr->offsets[i];
    const double sum = row_product(csr->values + first, csr->columns + first, csr->offsets[i + 1] - first, x);
    if (csr->rows)
      y[csr->rows[i]] += sum;
    else
      y[i] = sum;
  }
}

static void multiply_several(const struct csr *csr, int32_t begin, int32_t end, int vectors,
                             const double *restrict x, double *restrict y) {
  for (int32_t i = begin; i < end; i++) {
    double *restrict to = y + (int64_t)(csr->rows ? csr->rows[i] : i) * vectors;
    for (int v = 0; v < vectors && !csr->rows; v++)
      to[v] = 0;
    for (int64_t k = csr->offsets[i]; k < csr->offsets[i + 1]; k++) {
      const double value = csr->values[k];
      const double *restrict from = x + (int64_t)csr->columns[k] * vectors;
#pragma omp simd
      for (int v = 0; v < vectors; v++)
        to[v] += value * from[v];
    }
  }
}

void csr_multiply(const struct csr *csr, int32_t begin, int32_t end, int vectors, const double *x,
                  double *y) {
  if (vectors == 1)
    multiply_one(csr, begin, end, x, y);
  else
    multiply_several(csr, begin, end, vectors, x, y);
}

void csr_free(struct csr *csr) {
  free(csr->rows);
  free(csr->offsets);
  free(csr->columns);
  free(csr->values);
  *csr = (struct csr){0};
}
