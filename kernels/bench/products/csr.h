/* Compressed sparse rows, and their product with the rows of a dense block of vectors. */
#ifndef PRODUCTS_CSR_H
#define PRODUCTS_CSR_H

#include <stdint.h>

struct csr {
  int32_t nrows; /* stored here */
  int32_t *rows; /* their numbers, increasing; NULL: all rows, each its place */
  int64_t *offsets;
  int32_t *columns;
  double *values;
};

/*
 * Multiplies the stored rows begin .. end-1 with x, and puts the result into the places of these rows in y:
 * sets them if all rows are stored, adds to them if only some are. Elements of x and y are `vectors` adjacent
 * doubles.
 */
void csr_multiply(const struct csr *csr, int32_t begin, int32_t end, int vectors, const double *x, double *y);

void csr_free(struct csr *csr);

#endif
