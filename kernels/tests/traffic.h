/*
 * Who sends what to whom, as pure functions of (family, processes, seed): every rank builds the whole of it,
 * so that what a rank should receive is known without any communication.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "switchpoint.h"

#include <stdbool.h>

/* The messages that one rank sends. Message i has the items items[offsets[i]] … items[offsets[i + 1] - 1]. */
struct row {
  int nsends;
  int *ranks;
  int64_t *offsets, *items;
  int64_t nitems; /* owned */
  bool opaque;    /* items are those of the offsets themselves */
};

struct traffic {
  int procs;
  struct row *rows;
};

struct family {
  const char *name;
  bool self; /* ranks send to themselves */
  void (*fill)(struct row *row, int procs, int source, uint64_t seed);
};

/* Appends a message of `count` items of its own, unless there is one to that destination. For `fill`. */
void row_once(struct row *row, int destination, int64_t count);

extern const struct family families[];
extern const int nfamilies;

/* Messages of over a MiB; apart, because they take long. */
extern const struct family large_family;

struct traffic *traffic_new(const struct family *family, int procs, uint64_t seed);
void traffic_free(struct traffic *traffic);

/* Index of the message from source to destination in the source's row, -1 if there is none. */
int traffic_find(const struct traffic *traffic, int source, int destination);

/* Items in message i of a row. */
int64_t row_items(const struct row *row, int i);

/* The exchange as `rank` describes it to the library. Receives are listed in an order of their own, and land
   behind `gap` unused items. Free with exchange_free. */
struct swp_exchange exchange_of(const struct traffic *traffic, int rank, int64_t item_bytes, int64_t gap);

/* Frees the arrays, overwritten before: a plan must not read them any more. */
void exchange_free(struct swp_exchange *exchange);

#endif
