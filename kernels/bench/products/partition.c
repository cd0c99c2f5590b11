#include "partition.h"

#include "blocks.h"
#include "error.h"
#include "lines.h"
#include "lists.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_OWNERS = 2, DIGITS_MOST = 18 };

/* The number of parts in a name such as "bcsstk01.metis.8.part", -1 if it has none. */
static long parts_of_name(const char *path) {
  static const char ENDING[] = ".part";
  const char *end = path + strlen(path) - strlen(ENDING);
  if (end <= path || strcmp(end, ENDING) != 0)
    return -1;
  const char *begin = end;
  while (begin > path && isdigit((unsigned char)begin[-1]))
    begin--;
  return begin > path && begin < end && begin[-1] == '.' ? strtol(begin, NULL, 10) : -1;
}

static int read_owner(const struct lines *lines, int parts, int *owner) {
  const char *text = lines->line + strspn(lines->line, " \t");
  const char *digits = text + (*text == '-'), *end = digits + strspn(digits, "0123456789");
  const bool number = end > digits && end - digits <= DIGITS_MOST && end[strspn(end, " \t")] == '\0';
  const long part = number ? strtol(text, NULL, 10) : -1;
  if (part >= 0 && part < parts) {
    *owner = (int)part;
    return 0;
  }
  return failure_set("%s:%lld: not a part number from 0 to %d, one part for each rank", lines->path,
                     (long long)lines->number, parts - 1);
}

static int read_owners(struct lines *lines, int64_t n, int parts, int *owners) {
  int status = lines_open(lines->path, lines) ? -1 : 1;
  for (int64_t row = 0; status == 1 && (status = lines_next(lines)) == 1; row++) {
    if (row == n)
      return failure_set("%s:%lld: more lines than the %lld rows of the matrix", lines->path,
                         (long long)lines->number, (long long)n);
    if (read_owner(lines, parts, &owners[row]))
      return -1;
  }
  if (status == 0 && lines->number < n)
    return failure_set("%s:%lld: the file ends before the %lld rows of the matrix have their parts",
                       lines->path, (long long)lines->number, (long long)n);
  return status;
}

int partition_read(const char *path, int64_t n, int parts, int *owners) {
  const long named = parts_of_name(path);
  if (named >= 0 && named != parts)
    return failure_set("%s is for %ld parts, but there are %d ranks", path, named, parts);
  struct lines lines = {.path = path};
  const int status = read_owners(&lines, n, parts, owners);
  lines_close(&lines);
  return status;
}

static int read_file(struct partition *partition, const char *path) {
  partition->all_owners = allocate((size_t)partition->n * sizeof *partition->all_owners);
  return partition_read(path, partition->n, partition->parts, partition->all_owners);
}

/* Rank 0 sends every rank the owners of its contiguous block. */
static void scatter_blocks(const struct team *team, struct partition *partition) {
  const int64_t n = partition->n;
  const int procs = team->procs;
  partition->block = allocate((size_t)block_size(n, procs, team->rank) * sizeof *partition->block);
  MPI_Request *requests = allocate(((size_t)procs + 1) * sizeof(MPI_Request));
  int count = 0;
  MPI_Irecv(partition->block, (int)block_size(n, procs, team->rank), MPI_INT, 0, TAG_OWNERS, team->comm,
            &requests[count++]);
  for (int rank = 0; team->rank == 0 && rank < procs; rank++)
    MPI_Isend(partition->all_owners + block_first(n, procs, rank), (int)block_size(n, procs, rank), MPI_INT,
              rank, TAG_OWNERS, team->comm, &requests[count++]);
  team_wait(team, count, requests);
  free(requests);
}

/* Sends each owner its rows; they arrive in increasing order, as the blocks do. */
static void find_own_rows(const struct team *team, struct partition *partition) {
  const int64_t size = block_size(partition->n, team->procs, team->rank);
  int64_t *rows = allocate((size_t)size * sizeof *rows);
  for (int64_t i = 0; i < size; i++)
    rows[i] = block_first(partition->n, team->procs, team->rank) + i;
  struct lists outgoing, incoming;
  lists_group(team->procs, size, partition->block, rows, &outgoing);
  lists_transpose(team, &outgoing, &incoming);
  partition->nrows = incoming.offsets[incoming.n];
  partition->rows = incoming.items;
  incoming.items = NULL;
  lists_free(&incoming);
  lists_free(&outgoing);
  free(rows);
}

int partition_create(const struct team *team, const char *name, int64_t n, struct partition *partition) {
  *partition = (struct partition){.n = n, .parts = team->procs, .rank = team->rank};
  if (block_size(n, team->procs, 0) > INT32_MAX)
    return team_agree(team, failure_set("%lld rows are too many for %d ranks: at most %d each", (long long)n,
                                        team->procs, INT32_MAX));
  if (strcmp(name, "contiguous") == 0) {
    partition->nrows = block_size(n, team->procs, team->rank);
    return 0;
  }
  if (strcmp(name, "strided") == 0) {
    partition->kind = PARTITION_STRIDED;
    partition->nrows = block_size(n, team->procs, team->rank);
    return 0;
  }
  partition->kind = PARTITION_LISTED;
  if (team_agree(team, team->rank == 0 ? read_file(partition, name) : 0))
    return -1;
  scatter_blocks(team, partition);
  find_own_rows(team, partition);
  return 0;
}

void partition_dealt(struct partition *partition) {
  free(partition->all_owners);
  partition->all_owners = NULL;
}

void partition_free(struct partition *partition) {
  partition_dealt(partition);
  free(partition->rows);
  free(partition->block);
  *partition = (struct partition){0};
}

int partition_owner(const struct partition *partition, int64_t row) {
  if (partition->kind == PARTITION_LISTED)
    return partition->all_owners[row];
  return partition->kind == PARTITION_STRIDED ? (int)(row % partition->parts)
                                              : block_owner(partition->n, partition->parts, row);
}

void partition_find(const struct team *team, const struct partition *partition, int64_t n,
                    const int64_t *rows, int *owners) {
  if (partition->kind != PARTITION_LISTED) {
    for (int64_t i = 0; i < n; i++)
      owners[i] = partition_owner(partition, rows[i]);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    owners[i] = block_owner(partition->n, partition->parts, rows[i]);
  struct lists questions, asked;
  lists_group(partition->parts, n, owners, rows, &questions); /* increasing already: the order stays */
  lists_transpose(team, &questions, &asked);
  const int64_t first = block_first(partition->n, partition->parts, partition->rank);
  for (int64_t i = 0; i < asked.offsets[asked.n]; i++)
    asked.items[i] = partition->block[asked.items[i] - first];
  lists_move(team, &asked, asked.items, &questions, questions.items);
  for (int64_t i = 0; i < n; i++)
    owners[i] = (int)questions.items[i];
  lists_free(&questions);
  lists_free(&asked);
}

int64_t partition_local(const struct partition *partition, int64_t row) {
  if (partition->kind == PARTITION_STRIDED)
    return row % partition->parts == partition->rank ? row / partition->parts : -1;
  if (partition->kind == PARTITION_CONTIGUOUS) {
    const int64_t local = row - block_first(partition->n, partition->parts, partition->rank);
    return local >= 0 && local < partition->nrows ? local : -1;
  }
  int64_t low = 0, high = partition->nrows;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (partition->rows[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low < partition->nrows && partition->rows[low] == row ? low : -1;
}

int64_t partition_row(const struct partition *partition, int64_t local) {
  if (partition->kind == PARTITION_LISTED)
    return partition->rows[local];
  return partition->kind == PARTITION_STRIDED
             ? local * partition->parts + partition->rank
             : block_first(partition->n, partition->parts, partition->rank) + local;
}
