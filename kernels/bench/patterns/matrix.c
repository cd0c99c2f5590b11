/*
 * matrix: the halo of a sparse matrix-vector product. Rows and the vector lie in contiguous blocks on the
 * ranks; an item is one element of the vector, needed by each rank that has an entry in its column.
 */
#include "../error.h"
#include "../matrix_market.h"
#include "../pattern.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 1 << 16 };

/* n things dealt to p ranks in contiguous blocks, the first n mod p of them one larger. */
static int64_t block_first(int64_t n, int p, int rank) {
  const int64_t rest = n % p;
  return n / p * rank + (rank < rest ? rank : rest);
}

static int block_owner(int64_t n, int p, int64_t index) {
  const int64_t size = n / p, rest = n % p;
  if (index < rest * (size + 1))
    return (int)(index / (size + 1));
  return (int)(rest + (index - rest * (size + 1)) / size);
}

/* The columns that this rank needs and does not own. */
struct needs {
  int64_t row_first, row_end, column_first, column_end; /* own blocks */
  int64_t *columns;
  int64_t count, distinct, room; /* the first `distinct` are increasing, the others were added since */
};

static int compare(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void needs_sort(struct needs *needs) {
  qsort(needs->columns, (size_t)needs->count, sizeof *needs->columns, compare);
  int64_t n = 0;
  for (int64_t i = 0; i < needs->count; i++)
    if (n == 0 || needs->columns[n - 1] != needs->columns[i])
      needs->columns[n++] = needs->columns[i];
  needs->count = needs->distinct = n;
}

static void needs_add(struct needs *needs, int64_t row, int64_t column) {
  if (row < needs->row_first || row >= needs->row_end ||
      (column >= needs->column_first && column < needs->column_end))
    return;
  if (needs->count == needs->room) {
    needs_sort(needs); /* repeated columns go, so memory stays in proportion to the halo */
    if (needs->room < 2 * needs->distinct + BATCH) {
      needs->room = 2 * needs->distinct + BATCH;
      needs->columns = reallocate(needs->columns, (size_t)needs->room * sizeof *needs->columns);
    }
  }
  needs->columns[needs->count++] = column;
}

/* Rank 0 reads the entries and shows every batch to all ranks, each of which keeps what its rows need. */
static int read_needs(const struct team *team, struct matrix_market *matrix, struct needs *needs) {
  struct matrix_entry *batch = allocate(BATCH * sizeof *batch);
  int n;
  do {
    n = team->rank == 0 ? matrix_market_read(matrix, batch, BATCH) : 0;
    team_bcast(team, &n, 1, MPI_INT);
    if (n <= 0)
      break;
    team_bcast(team, batch, 2 * n, MPI_INT64_T);
    for (int i = 0; i < n; i++) {
      needs_add(needs, batch[i].row, batch[i].column);
      if (matrix->symmetry != MATRIX_GENERAL)
        needs_add(needs, batch[i].column, batch[i].row);
    }
  } while (n > 0);
  free(batch);
  return n;
}

/* What is needed, by owner and as the owner numbers it. */
static void group_by_owner(const struct needs *needs, int64_t columns, int procs, struct lists *lists) {
  int owners = 0, owner = -1;
  for (int64_t i = 0; i < needs->count; i++)
    if (block_owner(columns, procs, needs->columns[i]) != owner) {
      owner = block_owner(columns, procs, needs->columns[i]);
      owners++;
    }
  lists_allocate(lists, owners, needs->count);
  lists->n = 0;
  for (int64_t i = 0; i < needs->count; i++) {
    owner = block_owner(columns, procs, needs->columns[i]);
    if (lists->n == 0 || lists->ranks[lists->n - 1] != owner)
      lists->ranks[lists->n++] = owner;
    lists->items[i] = needs->columns[i] - block_first(columns, procs, owner);
    lists->offsets[lists->n] = i + 1;
  }
}

static int generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  struct matrix_market matrix = {0};
  const int opened = team->rank == 0 ? matrix_market_open(spec->file, &matrix) : 0;
  int64_t head[3] = {matrix.rows, matrix.columns, matrix.symmetry};
  int status = team_agree(team, opened);
  struct needs needs = {0};
  if (status == 0) {
    team_bcast(team, head, 3, MPI_INT64_T);
    matrix.symmetry = (enum matrix_symmetry)head[2];
    needs.room = BATCH;
    needs.columns = allocate(BATCH * sizeof *needs.columns);
    needs.row_first = block_first(head[0], team->procs, team->rank);
    needs.row_end = block_first(head[0], team->procs, team->rank + 1);
    needs.column_first = block_first(head[1], team->procs, team->rank);
    needs.column_end = block_first(head[1], team->procs, team->rank + 1);
    status = team_agree(team, read_needs(team, &matrix, &needs));
  }
  if (status == 0) {
    needs_sort(&needs);
    pattern->nitems = needs.column_end - needs.column_first;
    group_by_owner(&needs, head[1], team->procs, &pattern->recvs);
    lists_transpose(team, &pattern->recvs, &pattern->sends);
  }
  free(needs.columns);
  matrix_market_close(&matrix);
  return status;
}

const struct pattern_family pattern_matrix = {
    .name = "matrix",
    .summary = "halo of a Matrix Market file's product with a vector",
    .from_file = true,
    .generate = generate,
};
