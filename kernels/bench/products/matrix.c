#include "matrix.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 1 << 16, TAG_ENTRIES = 3 };

/* This rank's entries in order of arrival, by the number of the row on this rank. */
struct arrivals {
  int32_t *rows;
  int64_t *columns;
  double *values;
  int64_t count, room;
};

static void arrivals_add(struct arrivals *arrivals, const struct partition *partition,
                         const struct matrix_entry *entries, int n) {
  if (arrivals->count + n > arrivals->room) {
    arrivals->room = arrivals->count + arrivals->count / 2 + n;
    const size_t room = (size_t)arrivals->room;
    arrivals->rows = reallocate(arrivals->rows, room * sizeof *arrivals->rows);
    arrivals->columns = reallocate(arrivals->columns, room * sizeof *arrivals->columns);
    arrivals->values = reallocate(arrivals->values, room * sizeof *arrivals->values);
  }
  for (int i = 0; i < n; i++, arrivals->count++) {
    arrivals->rows[arrivals->count] = (int32_t)partition_local(partition, entries[i].row);
    arrivals->columns[arrivals->count] = entries[i].column;
    arrivals->values[arrivals->count] = entries[i].value;
  }
}

static void arrivals_free(struct arrivals *arrivals) {
  free(arrivals->rows);
  free(arrivals->columns);
  free(arrivals->values);
}

/* A batch being distributed: rank 0 has all of it, sorted by owner; each rank gets its part. */
struct deal {
  struct matrix_entry *read, *sorted, *mine;
  int *counts, *firsts; /* on rank 0, by rank */
  MPI_Request *requests;
};

static void deal_allocate(const struct team *team, struct deal *deal) {
  const size_t procs = team->rank == 0 ? (size_t)team->procs : 0, batch = team->rank == 0 ? BATCH : 0;
  deal->read = allocate(2 * batch * sizeof *deal->read); /* a mirrored entry beside each */
  deal->sorted = allocate(2 * batch * sizeof *deal->sorted);
  deal->mine = allocate(2 * (size_t)BATCH * sizeof *deal->mine);
  deal->counts = allocate(procs * sizeof *deal->counts);
  deal->firsts = allocate(procs * sizeof *deal->firsts);
  deal->requests = allocate((procs + 1) * sizeof *deal->requests);
}

static void deal_free(struct deal *deal) {
  free(deal->read);
  free(deal->sorted);
  free(deal->mine);
  free(deal->counts);
  free(deal->firsts);
  free(deal->requests);
}

/* Reads a batch and adds what symmetry implies: the number of entries, 0 at the end, -1. */
static int read_batch(struct matrix_market *file, struct matrix_entry *entries) {
  int n = matrix_market_read(file, entries, BATCH);
  if (file->symmetry == MATRIX_GENERAL)
    return n;
  for (int i = 0, last = n; i < last; i++)
    if (entries[i].row != entries[i].column) {
      const double value = file->symmetry == MATRIX_SKEW_SYMMETRIC ? -entries[i].value : entries[i].value;
      entries[n++] = (struct matrix_entry){entries[i].column, entries[i].row, value};
    }
  return n;
}

static void sort_by_owner(const struct partition *partition, int n, struct deal *deal) {
  memset(deal->counts, 0, (size_t)partition->parts * sizeof *deal->counts);
  for (int i = 0; i < n; i++)
    deal->counts[partition_owner(partition, deal->read[i].row)]++;
  for (int rank = 0, first = 0; rank < partition->parts; first += deal->counts[rank++])
    deal->firsts[rank] = first;
  for (int i = 0; i < n; i++)
    deal->sorted[deal->firsts[partition_owner(partition, deal->read[i].row)]++] = deal->read[i];
}

/* Rank 0 sends every rank its part of the sorted batch; returns the number of entries received here. */
static int send_parts(const struct team *team, struct deal *deal) {
  int n = 0, count = 0;
  MPI_Iscatter(deal->counts, 1, MPI_INT, &n, 1, MPI_INT, 0, team->comm, &deal->requests[0]);
  team_wait(team, 1, deal->requests);
  const int bytes = (int)sizeof *deal->mine;
  if (n > 0)
    MPI_Irecv(deal->mine, n * bytes, MPI_BYTE, 0, TAG_ENTRIES, team->comm, &deal->requests[count++]);
  const struct matrix_entry *part = deal->sorted;
  for (int rank = 0; team->rank == 0 && rank < team->procs; part += deal->counts[rank++])
    if (deal->counts[rank] > 0)
      MPI_Isend(part, deal->counts[rank] * bytes, MPI_BYTE, rank, TAG_ENTRIES, team->comm,
                &deal->requests[count++]);
  team_wait(team, count, deal->requests);
  return n;
}

static int deal_out(const struct team *team, struct matrix_market *file, const struct partition *partition,
                    struct arrivals *arrivals) {
  struct deal deal;
  deal_allocate(team, &deal);
  int n;
  do {
    n = team->rank == 0 ? read_batch(file, deal.read) : 0;
    if (team->rank == 0 && n > 0)
      sort_by_owner(partition, n, &deal);
    team_bcast(team, &n, 1, MPI_INT);
    if (n > 0)
      arrivals_add(arrivals, partition, deal.mine, send_parts(team, &deal));
  } while (n > 0);
  deal_free(&deal);
  return n;
}

static void make_rows(const struct arrivals *arrivals, struct matrix *matrix) {
  const int64_t nrows = matrix->partition.nrows;
  matrix->offsets = allocate_zeros(((size_t)nrows + 2) * sizeof *matrix->offsets);
  matrix->columns = allocate((size_t)arrivals->count * sizeof *matrix->columns);
  matrix->values = allocate((size_t)arrivals->count * sizeof *matrix->values);
  int64_t *next = matrix->offsets + 1; /* while it is filled, one place behind its end */
  for (int64_t i = 0; i < arrivals->count; i++)
    next[arrivals->rows[i] + 1]++;
  for (int64_t row = 0; row < nrows; row++)
    next[row + 1] += next[row];
  for (int64_t i = 0; i < arrivals->count; i++) {
    const int64_t at = next[arrivals->rows[i]]++;
    matrix->columns[at] = arrivals->columns[i];
    matrix->values[at] = arrivals->values[i];
  }
}

int matrix_read(const struct team *team, const char *path, const char *partition, struct matrix *matrix) {
  struct matrix_market file = {0};
  struct arrivals arrivals = {0};
  *matrix = (struct matrix){0};
  int status = team_agree(team, team->rank == 0 ? matrix_market_open(path, &file) : 0);
  if (status == 0) {
    int64_t head[2] = {file.rows, file.field};
    team_bcast(team, head, 2, MPI_INT64_T);
    matrix->field = (enum matrix_field)head[1];
    status = partition_create(team, partition, head[0], &matrix->partition);
  }
  if (status == 0)
    status = team_agree(team, deal_out(team, &file, &matrix->partition, &arrivals));
  if (status == 0)
    make_rows(&arrivals, matrix);
  partition_dealt(&matrix->partition);
  arrivals_free(&arrivals);
  matrix_market_close(&file);
  return status;
}

void matrix_free(struct matrix *matrix) {
  partition_free(&matrix->partition);
  free(matrix->offsets);
  free(matrix->columns);
  free(matrix->values);
  *matrix = (struct matrix){0};
}
