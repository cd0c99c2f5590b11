/*
 * A strict reader of square Matrix Market coordinate files (math.nist.gov/MatrixMarket/formats.html) that
 * streams: it returns the entries in batches, in the file's order. Refuses by failure_set(), with file and
 * line.
 */
#ifndef PRODUCTS_MATRIX_MARKET_H
#define PRODUCTS_MATRIX_MARKET_H

#include "lines.h"

enum matrix_field { MATRIX_REAL, MATRIX_INTEGER, MATRIX_COMPLEX, MATRIX_PATTERN };
enum matrix_symmetry { MATRIX_GENERAL, MATRIX_SYMMETRIC, MATRIX_SKEW_SYMMETRIC, MATRIX_HERMITIAN };

struct matrix_entry {
  int64_t row, column; /* from 0 */
  double value;        /* 1 where the field is pattern, the real part where it is complex */
};

struct matrix_market {
  struct lines lines;
  enum matrix_field field;
  enum matrix_symmetry symmetry; /* unless general, the file holds only the lower triangle */
  int64_t rows, entries;         /* and as many columns as rows: others are refused */
  int64_t entries_read;
};

/* Opens the file and reads up to the first entry. 0 or -1; matrix_market_close must be called in both
   cases. */
int matrix_market_open(const char *path, struct matrix_market *matrix);

/* Reads up to `most` entries; 0 after the last, when the rest of the file has been checked; -1 on an error.
 */
int matrix_market_read(struct matrix_market *matrix, struct matrix_entry *batch, int most);

void matrix_market_close(struct matrix_market *matrix);

#endif
