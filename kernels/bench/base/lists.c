#include "lists.h"

#include "order.h"

#include <limits.h>
#include <stdlib.h>

enum { TAG_LISTS = 1 };

void items_grow(struct items *items) {
  items->room = 2 * items->room + 1024;
  items->list = reallocate(items->list, (size_t)items->room * sizeof *items->list);
}

void items_distinct(struct items *items) {
  int64_t n = 0;
  if (items->count)
    qsort(items->list, (size_t)items->count, sizeof *items->list, swp_by_int64);
  for (int64_t i = 0; i < items->count; i++)
    if (n == 0 || items->list[n - 1] != items->list[i])
      items->list[n++] = items->list[i];
  items->count = n;
}

void lists_allocate(struct lists *lists, int n, int64_t nitems) {
  lists->n = n;
  lists->ranks = allocate((size_t)n * sizeof *lists->ranks);
  lists->offsets = allocate(((size_t)n + 1) * sizeof *lists->offsets);
  lists->items = allocate((size_t)nitems * sizeof *lists->items);
  lists->offsets[0] = 0;
}

void lists_free(struct lists *lists) {
  free(lists->ranks);
  free(lists->offsets);
  free(lists->items);
  *lists = (struct lists){0};
}

/* Allocates lists whose numbers of items by rank are known. */
static void allocate_counted(int procs, const int64_t *counts, struct lists *lists) {
  int n = 0;
  int64_t nitems = 0;
  for (int r = 0; r < procs; r++) {
    n += counts[r] > 0;
    nitems += counts[r];
  }
  lists_allocate(lists, n, nitems);
  for (int r = 0, i = 0; r < procs; r++) {
    if (counts[r] == 0)
      continue;
    lists->ranks[i] = r;
    lists->offsets[i + 1] = lists->offsets[i] + counts[r];
    i++;
  }
}

void lists_group(int procs, int64_t n, const int *ranks, const int64_t *items, struct lists *lists) {
  int64_t *counts = allocate_zeros((size_t)procs * sizeof *counts);
  for (int64_t i = 0; i < n; i++)
    counts[ranks[i]]++;
  allocate_counted(procs, counts, lists);
  int64_t *next = counts; /* from now on */
  for (int i = 0; i < lists->n; i++)
    next[lists->ranks[i]] = lists->offsets[i];
  for (int64_t i = 0; i < n; i++)
    lists->items[next[ranks[i]]++] = items[i];
  free(counts);
}

/* The items of list i, as the three arguments of MPI calls; a count beyond its int ends the job. */
static int list_count(const struct lists *lists, int i) {
  const int64_t count = lists->offsets[i + 1] - lists->offsets[i];
  if (count > INT_MAX)
    team_fail("a message of the pattern has %lld items; at most %d are possible", (long long)count, INT_MAX);
  return (int)count;
}

void lists_move(const struct team *team, const struct lists *out, const int64_t *out_items,
                const struct lists *in, int64_t *in_items) {
  MPI_Request *requests = allocate((size_t)(out->n + in->n) * sizeof(MPI_Request));
  for (int i = 0; i < in->n; i++)
    MPI_Irecv(in_items + in->offsets[i], list_count(in, i), MPI_INT64_T, in->ranks[i], TAG_LISTS, team->comm,
              &requests[i]);
  for (int i = 0; i < out->n; i++)
    MPI_Isend(out_items + out->offsets[i], list_count(out, i), MPI_INT64_T, out->ranks[i], TAG_LISTS,
              team->comm, &requests[in->n + i]);
  team_wait(team, in->n + out->n, requests);
  free(requests);
}

void lists_transpose(const struct team *team, const struct lists *mine, struct lists *theirs) {
  int64_t *sent = allocate_zeros(2 * (size_t)team->procs * sizeof *sent);
  int64_t *received = sent + team->procs;
  for (int i = 0; i < mine->n; i++)
    sent[mine->ranks[i]] = mine->offsets[i + 1] - mine->offsets[i];
  team_alltoall(team, sent, received);
  allocate_counted(team->procs, received, theirs);
  free(sent);
  lists_move(team, mine, mine->items, theirs, theirs->items);
}
