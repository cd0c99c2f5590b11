#include "matrix.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 16 };

/* A set of columns: the first `distinct` are increasing, the others were added since. */
struct columns {
  int64_t *list;
  int64_t count, distinct, room;
};

static int compare(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void columns_sort(struct columns *columns) {
  qsort(columns->list, (size_t)columns->count, sizeof *columns->list, compare);
  int64_t n = 0;
  for (int64_t i = 0; i < columns->count; i++)
    if (n == 0 || columns->list[n - 1] != columns->list[i])
      columns->list[n++] = columns->list[i];
  columns->count = columns->distinct = n;
}

static void columns_add(struct columns *columns, int64_t column) {
  if (columns->count == columns->room) {
    columns_sort(columns); /* repeated columns go, so memory stays in proportion to the halo */
    if (columns->room < 2 * columns->distinct + ROOM) {
      columns->room = 2 * columns->distinct + ROOM;
      columns->list = reallocate(columns->list, (size_t)columns->room * sizeof *columns->list);
    }
  }
  columns->list[columns->count++] = column;
}

static struct columns columns_needed(const struct matrix *matrix) {
  struct columns columns = {.list = allocate(ROOM * sizeof *columns.list), .room = ROOM};
  const int64_t entries = matrix->offsets[matrix->partition.nrows];
  for (int64_t i = 0; i < entries; i++)
    if (partition_local(&matrix->partition, matrix->columns[i]) < 0)
      columns_add(&columns, matrix->columns[i]);
  columns_sort(&columns);
  return columns;
}

void halo_create(const struct team *team, const struct matrix *matrix, struct halo *halo) {
  struct columns columns = columns_needed(matrix);
  int *owners = allocate((size_t)columns.count * sizeof *owners);
  partition_find(team, &matrix->partition, columns.count, columns.list, owners);
  lists_group(team->procs, columns.count, owners, columns.list, &halo->recvs);
  free(owners);
  halo->columns = columns.list; /* its room suffices: now by owner */
  memcpy(halo->columns, halo->recvs.items, (size_t)columns.count * sizeof *halo->columns);

  lists_transpose(team, &halo->recvs, &halo->sends);
  for (int64_t i = 0; i < halo->sends.offsets[halo->sends.n]; i++)
    halo->sends.items[i] = partition_local(&matrix->partition, halo->sends.items[i]);
  lists_move(team, &halo->sends, halo->sends.items, &halo->recvs, halo->recvs.items);
}

void halo_free(struct halo *halo) {
  lists_free(&halo->recvs);
  lists_free(&halo->sends);
  free(halo->columns);
  *halo = (struct halo){0};
}
