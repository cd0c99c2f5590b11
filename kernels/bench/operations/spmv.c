/*
 * spmv: the product of a sparse matrix with vectors over an exchange plan; then the exchange and the local
 * products on their own. An item is a row of the block of vectors: one double of each.
 */
#include "error.h"
#include "operation.h"
#include "rng.h"

#include "spmv.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct product {
  struct spmv spmv;
  int vectors;
  double *y;
};

static int check(const struct operation *operation, const struct pattern_spec *pattern,
                 const int64_t *sizes_bytes, int nsizes) {
  (void)operation;
  if (!pattern->family->from_file)
    return failure_set("--op spmv needs --pattern matrix:FILE, not %s", pattern->family->name);
  for (int i = 0; i < nsizes; i++)
    if (sizes_bytes[i] % (int64_t)sizeof(double) || sizes_bytes[i] / (int64_t)sizeof(double) > INT_MAX)
      return failure_set("--sizes: %lld: --op spmv needs 8 bytes for each vector; write multiples of 8",
                         (long long)sizes_bytes[i]);
  return 0;
}

static int size(struct workload *workload) {
  const struct pattern *pattern = workload->pattern;
  const struct lists *recvs = &pattern->recvs;
  const int64_t item_bytes = workload->payload.item_bytes;
  workload->send_bytes = pattern->nitems * item_bytes;
  workload->recv_bytes = recvs->offsets[recvs->n] * item_bytes;
  if (pattern->matrix->field == MATRIX_COMPLEX)
    return failure_set("--op spmv: the values of the matrix are complex; only real ones are multiplied");
  struct product *product = workload->product = allocate_zeros(sizeof *product);
  product->vectors = (int)(item_bytes / (int64_t)sizeof(double));
  product->y = allocate((size_t)workload->send_bytes);
  bool *near = allocate((size_t)recvs->n * sizeof *near);
  team_find_near(workload->team, &workload->hints, recvs->n, recvs->ranks, near);
  const int status = spmv_create(pattern->matrix, recvs, pattern->halo_columns, near, &product->spmv);
  free(near);
  return status;
}

static void free_product(struct workload *workload) {
  struct product *product = workload->product;
  if (!product)
    return;
  spmv_free(&product->spmv);
  free(product->y);
  free(product);
}

/* An element of a vector, from 1 to 2: known to every rank, and another in each execution. */
static double element(const struct payload *payload, int64_t row, int vector) {
  const uint64_t execution = hash_pair(payload->seed, payload->repetition);
  const uint64_t bits = hash_pair(hash_pair(execution, (uint64_t)row), (uint64_t)vector);
  return 1 + (double)(bits >> 11) * 0x1p-53;
}

/* Elements of y that are wrongly left unset are NaN, and received ones 0. */
static void prepare(struct workload *workload) {
  const struct product *product = workload->product;
  double *x = (double *)workload->send;
  for (int64_t local = 0; local < workload->pattern->nitems; local++) {
    const int64_t row = partition_row(&workload->pattern->matrix->partition, local);
    for (int v = 0; v < product->vectors; v++)
      *x++ = element(&workload->payload, row, v);
  }
  memset(workload->recv, 0, (size_t)workload->recv_bytes);
  memset(product->y, 0xff, (size_t)workload->send_bytes);
}

static int execute(struct workload *workload, swp_plan *plan) {
  const struct product *product = workload->product;
  return spmv_multiply(&product->spmv, plan, product->vectors, (const double *)workload->send,
                       (double *)workload->recv, product->y);
}

static int compute(struct workload *workload, swp_plan *plan) {
  const struct product *product = workload->product;
  (void)plan;
  spmv_multiply_local(&product->spmv, product->vectors, (const double *)workload->send,
                      (const double *)workload->recv, product->y);
  return SWP_SUCCESS;
}

/* The elements received equal their owners', to the last bit. */
static int verify_received(const struct workload *workload) {
  const struct lists *recvs = &workload->pattern->recvs;
  const int vectors = workload->product->vectors;
  const double *received = (const double *)workload->recv;
  for (int i = 0; i < recvs->n; i++)
    for (int64_t k = recvs->offsets[i]; k < recvs->offsets[i + 1]; k++)
      for (int v = 0; v < vectors; v++) {
        const int64_t row = workload->pattern->halo_columns[k];
        const double expected = element(&workload->payload, row, v), got = received[k * vectors + v];
        if (memcmp(&got, &expected, sizeof got) != 0)
          return failure_set("wrong payload from rank %d: element %lld of vector %d is %.17g, expected %.17g",
                             recvs->ranks[i], (long long)row, v, got, expected);
      }
  return 0;
}

/*
 * A row's product is that of its entries as they were read, before they were numbered anew and split, with
 * elements that every rank knows without communication. The two sums differ by rounding only.
 */
static int verify_row(const struct workload *workload, int64_t local, int vector) {
  const struct matrix *matrix = workload->pattern->matrix;
  const int64_t first = matrix->offsets[local], end = matrix->offsets[local + 1];
  double sum = 0, magnitude = 0;
  for (int64_t k = first; k < end; k++) {
    const double term = matrix->values[k] * element(&workload->payload, matrix->columns[k], vector);
    sum += term;
    magnitude += fabs(term);
  }
  const double got = workload->product->y[local * workload->product->vectors + vector];
  if (fabs(got - sum) <= 2 * (double)(end - first) * DBL_EPSILON * magnitude)
    return 0;
  return failure_set("wrong product: row %lld of vector %d is %.17g, expected %.17g",
                     (long long)partition_row(&matrix->partition, local), vector, got, sum);
}

static int verify(const struct workload *workload) {
  if (verify_received(workload))
    return -1;
  for (int64_t local = 0; local < workload->pattern->nitems; local++)
    for (int v = 0; v < workload->product->vectors; v++)
      if (verify_row(workload, local, v))
        return -1;
  return 0;
}

const struct operation operation_spmv = {
    .name = "spmv",
    .operation = SWP_EXCHANGE,
    .phases = {{"communication", "communication_s", exchange_execute}, {"local part", "local_s", compute}},
    .nphases = 2,
    .check = check,
    .size = size,
    .free = free_product,
    .plan = exchange_plan,
    .prepare = prepare,
    .execute = execute,
    .verify = verify,
};
