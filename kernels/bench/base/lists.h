/* Lists of items, also by rank, and the exchange of lists between the ranks. */
#ifndef BENCH_LISTS_H
#define BENCH_LISTS_H

#include "team.h"

#include <stdint.h>

/* A growing list of items. */
struct items {
  int64_t *list;
  int64_t count, room;
};

void items_grow(struct items *items);

static inline void items_add(struct items *items, int64_t item) {
  if (items->count == items->room)
    items_grow(items);
  items->list[items->count++] = item;
}

/* Sorts them and removes duplicates. */
void items_distinct(struct items *items);

/* For each of n ranks a list of items: items[offsets[i]] .. items[offsets[i + 1] - 1] belong to ranks[i]. */
struct lists {
  int n;
  int *ranks;       /* increasing */
  int64_t *offsets; /* n + 1 */
  int64_t *items;
};

/* Room for n lists of nitems items in all. */
void lists_allocate(struct lists *lists, int n, int64_t nitems);
void lists_free(struct lists *lists);

/* Lists n items by the rank, below procs, that goes with each; the order within a list is kept. */
void lists_group(int procs, int64_t n, const int *ranks, const int64_t *items, struct lists *lists);

/*
 * Sends every rank named in `mine` the items that are listed for it: `theirs` holds, by rank, what the others
 * listed for this one. Collective, O(P) memory while it runs.
 */
void lists_transpose(const struct team *team, const struct lists *mine, struct lists *theirs);

/*
 * Sends out_items along the lists `out` and receives in_items along the lists `in`, its transpose: one item
 * for each item listed. Collective.
 */
void lists_move(const struct team *team, const struct lists *out, const int64_t *out_items,
                const struct lists *in, int64_t *in_items);

#endif
