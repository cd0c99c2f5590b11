/*
 * A strict reader of Matrix Market coordinate files (math.nist.gov/MatrixMarket/formats.html) that streams:
 * it gives the positions of the entries in batches and checks their values. Refuses by failure_set(), with
 * file and line.
 */
#ifndef BENCH_MATRIX_MARKET_H
#define BENCH_MATRIX_MARKET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum matrix_field { MATRIX_REAL, MATRIX_INTEGER, MATRIX_COMPLEX, MATRIX_PATTERN };
enum matrix_symmetry { MATRIX_GENERAL, MATRIX_SYMMETRIC, MATRIX_SKEW_SYMMETRIC, MATRIX_HERMITIAN };

struct matrix_entry {
  int64_t row, column; /* from 0 */
};

struct matrix_market {
  const char *path;
  FILE *file;
  char *line;
  size_t room;
  int64_t line_number;
  enum matrix_field field;
  enum matrix_symmetry symmetry; /* unless general, the file holds only the lower triangle */
  int64_t rows, columns, entries;
  int64_t entries_read;
};

/* Opens the file and reads up to the first entry. 0 or -1; matrix_market_close is due in both cases. */
int matrix_market_open(const char *path, struct matrix_market *matrix);

/* Reads up to `most` entries; 0 after the last, when the rest of the file has been checked; -1 on an error.
 */
int matrix_market_read(struct matrix_market *matrix, struct matrix_entry *batch, int most);

void matrix_market_close(struct matrix_market *matrix);

#endif
