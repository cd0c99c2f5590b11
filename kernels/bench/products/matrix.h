/*
 * A square sparse matrix on the ranks, each with the rows that the partition gives it, and the elements that
 * its product with a vector needs from other ranks.
 *
 * Memory while reading: rank 0 parses the file and sends each entry to the owner of its row, in batches of a
 * fixed size, at most 6 MiB; a rank holds its own entries, 20 bytes each in room for at most 1.5 times as
 * many, and then its CSR arrays, 16 bytes each, for a moment beside them. Only a listed partition adds to
 * that, 4 bytes a row on rank 0.
 */
#ifndef PRODUCTS_MATRIX_H
#define PRODUCTS_MATRIX_H

#include "lists.h"
#include "matrix_market.h"
#include "partition.h"

struct matrix {
  struct partition partition;
  enum matrix_field field;
  int64_t *offsets; /* nrows + 1: where the entries of each of this rank's rows are */
  int64_t *columns; /* as numbered in the whole matrix; repeated positions are added up */
  double *values;
};

/* Reads the rows of this rank. Collective; the failure is agreed. matrix_free must be called in both
   cases. */
int matrix_read(const struct team *team, const char *path, const char *partition, struct matrix *matrix);
void matrix_free(struct matrix *matrix);

/* The elements of the vector that this rank's rows need and other ranks own. */
struct halo {
  struct lists recvs; /* items: as the owner numbers them, increasing */
  struct lists sends; /* items: this rank's that others need */
  int64_t *columns;   /* of the items of recvs, as the whole matrix numbers them */
};

/* Collective. The lists and the columns are the caller's. */
void halo_create(const struct team *team, const struct matrix *matrix, struct halo *halo);

#endif
