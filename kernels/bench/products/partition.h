/*
 * Which rank owns which row of a square matrix, and the same elements of the vectors: contiguous blocks,
 * strided (row r on rank r mod P), or listed in a file, one part number a line. Of a listed one each rank
 * keeps its own rows and the owners of one contiguous block, which answers the others' queries; rank 0 keeps
 * all owners, 4 bytes a row, while it distributes the matrix.
 */
#ifndef PRODUCTS_PARTITION_H
#define PRODUCTS_PARTITION_H

#include "team.h"

#include <stdint.h>

enum partition_kind { PARTITION_CONTIGUOUS, PARTITION_STRIDED, PARTITION_LISTED };

struct partition {
  enum partition_kind kind;
  int64_t n;
  int parts, rank;
  int64_t nrows;   /* this rank's */
  int64_t *rows;   /* listed: this rank's, increasing */
  int *block;      /* listed: the owners of the rank's contiguous block */
  int *all_owners; /* listed: on rank 0, until partition_dealt */
};

/*
 * Makes the partition of n rows that `name` specifies: "contiguous", "strided" or the path of a file.
 * Collective; the failure is agreed, with file and line. partition_free must be called in both cases.
 */
int partition_create(const struct team *team, const char *name, int64_t n, struct partition *partition);
void partition_free(struct partition *partition);

/* Reads a file of the parts, from 0, of n rows. 0, or -1 with failure_text() set. Local. */
int partition_read(const char *path, int64_t n, int parts, int *owners);

/* The owner of any row: on rank 0, until partition_dealt. Local. */
int partition_owner(const struct partition *partition, int64_t row);
void partition_dealt(struct partition *partition);

/* The owners of n rows, increasing. Collective. */
void partition_find(const struct team *team, const struct partition *partition, int64_t n,
                    const int64_t *rows, int *owners);

/* The number of a row among the rank's own, -1 when it is not one, and back. Local. */
int64_t partition_local(const struct partition *partition, int64_t row);
int64_t partition_row(const struct partition *partition, int64_t local);

#endif
