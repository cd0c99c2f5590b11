#include "matrix.h"

#include <stdlib.h>
#include <string.h>

/* Columns beyond twice the distinct ones, after which repeated ones are removed. */
enum { ROOM = 1 << 16 };

/* The columns, each once: repeated ones are removed now and then, so memory stays proportional to the halo.
 */
static struct items columns_needed(const struct matrix *matrix) {
  struct items columns = {0};
  const int64_t entries = matrix->offsets[matrix->partition.nrows];
  for (int64_t i = 0, full = ROOM; i < entries; i++) {
    if (partition_local(&matrix->partition, matrix->columns[i]) < 0)
      items_add(&columns, matrix->columns[i]);
    if (columns.count == full) {
      items_distinct(&columns);
      full = 2 * columns.count + ROOM;
    }
  }
  items_distinct(&columns);
  return columns;
}

void halo_create(const struct team *team, const struct matrix *matrix, struct halo *halo) {
  struct items columns = columns_needed(matrix);
  int *owners = allocate((size_t)columns.count * sizeof *owners);
  partition_find(team, &matrix->partition, columns.count, columns.list, owners);
  lists_group(team->procs, columns.count, owners, columns.list, &halo->recvs);
  free(owners);
  halo->columns = columns.list; /* its room suffices; now sorted by owner */
  if (columns.count > 0)
    memcpy(halo->columns, halo->recvs.items, (size_t)columns.count * sizeof *halo->columns);

  lists_transpose(team, &halo->recvs, &halo->sends);
  for (int64_t i = 0; i < halo->sends.offsets[halo->sends.n]; i++)
    halo->sends.items[i] = partition_local(&matrix->partition, halo->sends.items[i]);
  lists_move(team, &halo->sends, halo->sends.items, &halo->recvs, halo->recvs.items);
}
