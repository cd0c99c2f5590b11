#include "spmv.h"

#include "error.h"

#include <stdlib.h>

/* About so many multiplications are done between two calls for progress: some ten microseconds. */
enum { PROGRESS_EVERY = 1 << 14 };

/* The place where an element of the vector is received. */
struct place {
  int64_t column;
  int32_t at;
  bool near;
};

static int compare(const void *a, const void *b) {
  const int64_t x = ((const struct place *)a)->column, y = ((const struct place *)b)->column;
  return (x > y) - (x < y);
}

/* The places of all elements received, by column. */
static struct place *list_places(const struct lists *recvs, const int64_t *columns, const bool *near) {
  struct place *places = allocate((size_t)recvs->offsets[recvs->n] * sizeof *places);
  for (int i = 0; i < recvs->n; i++)
    for (int64_t k = recvs->offsets[i]; k < recvs->offsets[i + 1]; k++)
      places[k] = (struct place){columns[k], (int32_t)k, near[i]};
  qsort(places, (size_t)recvs->offsets[recvs->n], sizeof *places, compare);
  return places;
}

static void csr_allocate(struct csr *csr, bool all_rows, int64_t nrows, int64_t entries) {
  csr->rows = all_rows ? NULL : allocate((size_t)nrows * sizeof *csr->rows);
  csr->offsets = allocate_zeros(((size_t)nrows + 2) * sizeof *csr->offsets);
  csr->columns = allocate((size_t)entries * sizeof *csr->columns);
  csr->values = allocate((size_t)entries * sizeof *csr->values);
}

/* Frees the unused room. */
static void csr_trim(struct csr *csr) {
  const size_t nrows = (size_t)csr->nrows, entries = (size_t)csr->offsets[nrows];
  csr->rows = reallocate(csr->rows, nrows * sizeof *csr->rows);
  csr->offsets = reallocate(csr->offsets, (nrows + 1) * sizeof *csr->offsets);
  csr->columns = reallocate(csr->columns, entries * sizeof *csr->columns);
  csr->values = reallocate(csr->values, entries * sizeof *csr->values);
}

/* Adds to the row that is being filled, whose end is one place behind that of the last one. */
static void csr_add(struct csr *csr, int32_t column, double value) {
  const int64_t at = csr->offsets[csr->nrows + 1]++;
  csr->columns[at] = column;
  csr->values[at] = value;
}

/* Ends the row; if not all are stored, an empty one is dropped. */
static void csr_end_row(struct csr *csr, int64_t row) {
  const int64_t end = csr->offsets[csr->nrows + 1];
  if (csr->rows && end == csr->offsets[csr->nrows])
    return;
  if (csr->rows)
    csr->rows[csr->nrows] = (int32_t)row;
  csr->nrows++;
  csr->offsets[csr->nrows + 1] = end;
}

static void split_row(const struct matrix *matrix, int64_t row, const struct place *places, int64_t nplaces,
                      struct spmv *spmv) {
  for (int64_t k = matrix->offsets[row]; k < matrix->offsets[row + 1]; k++) {
    const int64_t own = partition_local(&matrix->partition, matrix->columns[k]);
    if (own >= 0) {
      csr_add(&spmv->on_process, (int32_t)own, matrix->values[k]);
      continue;
    }
    const struct place wanted = {.column = matrix->columns[k]};
    const struct place *place = bsearch(&wanted, places, (size_t)nplaces, sizeof *places, compare);
    csr_add(place->near ? &spmv->on_node : &spmv->off_node, place->at, matrix->values[k]);
  }
  csr_end_row(&spmv->on_process, row);
  csr_end_row(&spmv->on_node, row);
  csr_end_row(&spmv->off_node, row);
}

int spmv_create(const struct matrix *matrix, const struct lists *recvs, const int64_t *columns,
                const bool *near, struct spmv *spmv) {
  const int64_t nrows = matrix->partition.nrows, received = recvs->offsets[recvs->n];
  int64_t own = 0;
  *spmv = (struct spmv){0};
  if (nrows > INT32_MAX || received > INT32_MAX)
    return failure_set("a rank has %lld rows and receives %lld elements; at most %d can be numbered",
                       (long long)nrows, (long long)received, INT32_MAX);
  for (int64_t k = 0; k < matrix->offsets[nrows]; k++)
    own += partition_local(&matrix->partition, matrix->columns[k]) >= 0;
  struct place *places = list_places(recvs, columns, near);
  csr_allocate(&spmv->on_process, true, nrows, own);
  csr_allocate(&spmv->on_node, false, nrows, matrix->offsets[nrows] - own); /* for now */
  csr_allocate(&spmv->off_node, false, nrows, matrix->offsets[nrows] - own);
  for (int64_t row = 0; row < nrows; row++)
    split_row(matrix, row, places, received, spmv);
  csr_trim(&spmv->on_node);
  csr_trim(&spmv->off_node);
  free(places);
  return 0;
}

void spmv_free(struct spmv *spmv) {
  csr_free(&spmv->on_process);
  csr_free(&spmv->on_node);
  csr_free(&spmv->off_node);
}

/* The end of a piece of rows that begins at row `begin`. */
static int32_t piece_end(const struct csr *csr, int32_t begin, int vectors) {
  const int64_t most = csr->offsets[begin] + PROGRESS_EVERY / vectors;
  int32_t end = begin + 1;
  while (end < csr->nrows && csr->offsets[end] < most)
    end++;
  return end;
}

/* Multiplies all rows of the on-process block, and progresses the exchange after each piece. */
static int multiply_meanwhile(const struct spmv *spmv, swp_plan *plan, int vectors, const double *x,
                              double *y) {
  const struct csr *csr = &spmv->on_process;
  int done = 0, error = SWP_SUCCESS;
  for (int32_t begin = 0, end; begin < csr->nrows; begin = end) {
    end = piece_end(csr, begin, vectors);
    csr_multiply(csr, begin, end, vectors, x, y);
    if (!done && !error)
      error = swp_test(plan, &done);
  }
  return error || done ? error : swp_wait(plan);
}

static void multiply_received(const struct spmv *spmv, int vectors, const double *halo, double *y) {
  csr_multiply(&spmv->on_node, 0, spmv->on_node.nrows, vectors, halo, y);
  csr_multiply(&spmv->off_node, 0, spmv->off_node.nrows, vectors, halo, y);
}

int spmv_multiply(const struct spmv *spmv, swp_plan *plan, int vectors, const double *x, double *halo,
                  double *y) {
  int error = swp_exchange_start(plan, x, halo);
  if (!error)
    error = multiply_meanwhile(spmv, plan, vectors, x, y);
  if (!error)
    multiply_received(spmv, vectors, halo, y);
  return error;
}

void spmv_multiply_local(const struct spmv *spmv, int vectors, const double *x, const double *halo,
                         double *y) {
  csr_multiply(&spmv->on_process, 0, spmv->on_process.nrows, vectors, x, y);
  multiply_received(spmv, vectors, halo, y);
}
