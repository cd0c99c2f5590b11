/* Who sends what to whom. */
#include "traffic.h"

#include "testing.h"

#include <stdlib.h>
#include <string.h>

/* ---- Building a row: row_to(row, destination), then its items ---- */

static void row_to(struct row *row, int destination) {
  size_t count = (size_t)row->nsends + 1;
  row->ranks = realloc(row->ranks, count * sizeof *row->ranks);
  row->offsets = realloc(row->offsets, (count + 1) * sizeof *row->offsets);
  row->ranks[row->nsends] = destination;
  row->offsets[count] = row->offsets[count - 1];
  row->nsends++;
}

static void row_item(struct row *row, int64_t item) {
  int64_t count = ++row->offsets[row->nsends];
  if ((count & (count - 1)) == 0) /* a power of two, up to which there was room */
    row->items = realloc(row->items, 2 * (size_t)count * sizeof *row->items);
  row->items[count - 1] = item;
}

/* The next `count` items of an opaque row. */
static void row_fresh(struct row *row, int64_t count) {
  row->opaque = true;
  for (int64_t i = 0; i < count; i++)
    row_item(row, row->nitems++);
}

static bool row_has(const struct row *row, int destination) {
  for (int i = 0; i < row->nsends; i++)
    if (row->ranks[i] == destination)
      return true;
  return false;
}

void row_once(struct row *row, int destination, int64_t count) {
  if (row_has(row, destination))
    return;
  row_to(row, destination);
  row_fresh(row, count);
}

/* ---- The families ---- */

/* Up to five destinations anywhere, the rank itself among them, in no order; none for some ranks. */
static void fill_random(struct row *row, int procs, int source, uint64_t seed) {
  int degree = (int)(mix(seed, 1, (uint64_t)source, 0) % 6);
  for (int i = 0; i < degree; i++) {
    uint64_t x = mix(seed, 2, (uint64_t)source, (uint64_t)i);
    row_once(row, (int)(x % (uint64_t)procs), (int64_t)(x >> 32) % 4);
  }
}

/* The first and the last rank send to all others, who send one item to each of them. */
static void fill_hub(struct row *row, int procs, int source, uint64_t seed) {
  (void)seed;
  bool hub = source == 0 || source == procs - 1;
  for (int i = 1; i < procs; i++) {
    int peer = (source + i) % procs;
    if (hub || peer == 0 || peer == procs - 1)
      row_once(row, peer, hub ? 1 + peer % 3 : 1);
  }
}

/* A ring with two neighbours on each side. */
static void fill_ring(struct row *row, int procs, int source, uint64_t seed) {
  (void)seed;
  for (int step = 1; step <= 2; step++) {
    if ((source + step) % procs != source)
      row_once(row, (source + step) % procs, 3);
    if ((source + procs - step % procs) % procs != source)
      row_once(row, (source + procs - step % procs) % procs, 1);
  }
}

/* The nine-point neighbourhood on the widest grid of the ranks, without wrapping. */
static void fill_grid(struct row *row, int procs, int source, uint64_t seed) {
  (void)seed;
  int width = 1;
  for (int i = 2; i * i <= procs; i++)
    if (procs % i == 0)
      width = i;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      int x = source % width + dx, y = source / width + dy;
      if ((dx != 0 || dy != 0) && x >= 0 && x < width && y >= 0 && y < procs / width)
        row_once(row, y * width + x, dx == 0 || dy == 0 ? 4 : 1);
    }
}

/* Rows of a matrix in blocks of twelve: items are wanted by several ranks, out of order, some of them twice.
 */
static void fill_halo(struct row *row, int procs, int source, uint64_t seed) {
  row->nitems = 12;
  for (int peer = procs - 1; peer >= 0; peer--) {
    uint64_t x = mix(seed, 3, (uint64_t)source, (uint64_t)peer);
    bool near = abs(peer - source) == 1;
    if (peer == source || (!near && x % 3 != 0))
      continue;
    row_to(row, peer);
    int count = near ? 6 : 1 + (int)(x >> 8) % 3;
    for (int i = 0; i < count; i++)
      row_item(row, (int64_t)(mix(x, (uint64_t)i, 0, 0) % 12));
    row_item(row, peer % 12);
    row_item(row, peer % 12);
  }
}

/* Everyone sends one item to everyone, itself included. */
static void fill_dense(struct row *row, int procs, int source, uint64_t seed) {
  (void)source, (void)seed;
  for (int peer = 0; peer < procs; peer++)
    row_once(row, peer, 1);
}

/* Everyone sends two items to everyone else. */
static void fill_complete(struct row *row, int procs, int source, uint64_t seed) {
  (void)seed;
  for (int i = 1; i < procs; i++)
    row_once(row, (source + i) % procs, 2);
}

static void fill_empty(struct row *row, int procs, int source, uint64_t seed) {
  (void)row, (void)procs, (void)source, (void)seed;
}

/* Even ranks send to odd ones only: half of the ranks send nothing, the other half receives nothing. */
static void fill_one_way(struct row *row, int procs, int source, uint64_t seed) {
  (void)seed;
  for (int peer = 1; source % 2 == 0 && peer < procs; peer += 2)
    row_once(row, peer, 1 + (source + peer) % 2);
}

/* Everyone sends to itself only. */
static void fill_self(struct row *row, int procs, int source, uint64_t seed) {
  (void)procs, (void)seed;
  row_once(row, source, 3);
}

/* Neighbours without items, among others with some. */
static void fill_zero(struct row *row, int procs, int source, uint64_t seed) {
  for (int peer = 0; peer < procs; peer++) {
    uint64_t x = mix(seed, 4, (uint64_t)source, (uint64_t)peer);
    if (x % 4 != 3)
      row_once(row, peer, x % 4 == 0 ? 1 : 0);
  }
}

static void fill_one_to_all(struct row *row, int procs, int source, uint64_t seed) {
  int sender = (int)(seed % (uint64_t)procs);
  for (int peer = 0; source == sender && peer < procs; peer++)
    row_once(row, peer, 2);
}

static void fill_all_to_one(struct row *row, int procs, int source, uint64_t seed) {
  row_once(row, (int)(seed % (uint64_t)procs), 1 + source % 3);
}

/* Items i and i + 1 to the neighbours, with room before the first: offsets do not begin at 0. */
static void fill_offset(struct row *row, int procs, int source, uint64_t seed) {
  (void)seed;
  row->nitems = 2;
  row_item(row, 0); /* to offsets[0], as there is no message yet */
  row_item(row, 0);
  row_once(row, (source + 1) % procs, 2);
  row_once(row, (source + procs - 1) % procs, 1);
}

/* The first and last rank send each other 320 items (1.25 MiB at 4096 bytes each), and one item to everyone.
 */
static void fill_large(struct row *row, int procs, int source, uint64_t seed) {
  (void)seed;
  for (int peer = 0; peer < procs; peer++)
    if (peer != source && (source == 0 || source == procs - 1))
      row_once(row, peer, peer == 0 || peer == procs - 1 ? 320 : 1);
}

const struct family families[] = {
    {"random", true, fill_random},
    {"hub", false, fill_hub},
    {"ring", false, fill_ring},
    {"grid", false, fill_grid},
    {"halo", false, fill_halo},
    {"dense", true, fill_dense},
    {"complete", false, fill_complete},
    {"empty", false, fill_empty},
    {"one_way", false, fill_one_way},
    {"self", true, fill_self},
    {"zero", true, fill_zero},
    {"one_to_all", true, fill_one_to_all},
    {"all_to_one", true, fill_all_to_one},
    {"offset", true, fill_offset},
};
const int nfamilies = sizeof families / sizeof families[0];

const struct family large_family = {"large", false, fill_large};

struct traffic *traffic_new(const struct family *family, int procs, uint64_t seed) {
  struct traffic *traffic = test_allocate(sizeof *traffic);
  traffic->procs = procs;
  traffic->rows = test_allocate((size_t)procs * sizeof *traffic->rows);
  memset(traffic->rows, 0, (size_t)procs * sizeof *traffic->rows);
  for (int source = 0; source < procs; source++) {
    struct row *row = &traffic->rows[source];
    row->offsets = test_allocate(sizeof *row->offsets);
    row->offsets[0] = 0;
    family->fill(row, procs, source, seed);
  }
  return traffic;
}

void traffic_free(struct traffic *traffic) {
  for (int source = 0; source < traffic->procs; source++) {
    free(traffic->rows[source].ranks);
    free(traffic->rows[source].offsets);
    free(traffic->rows[source].items);
  }
  free(traffic->rows);
  free(traffic);
}

int traffic_find(const struct traffic *traffic, int source, int destination) {
  const struct row *row = &traffic->rows[source];
  for (int i = 0; i < row->nsends; i++)
    if (row->ranks[i] == destination)
      return i;
  return -1;
}

int64_t row_items(const struct row *row, int i) {
  return row->offsets[i + 1] - row->offsets[i];
}

static void *copy_of(const void *from, size_t bytes) {
  void *to = test_allocate(bytes);
  if (bytes > 0)
    memcpy(to, from, bytes);
  return to;
}

struct swp_exchange exchange_of(const struct traffic *traffic, int rank, int64_t item_bytes, int64_t gap) {
  const struct row *row = &traffic->rows[rank];
  size_t nsends = (size_t)row->nsends, procs = (size_t)traffic->procs;
  int *recv_ranks = test_allocate(procs * sizeof *recv_ranks);
  int64_t *recv_offsets = test_allocate((procs + 1) * sizeof *recv_offsets);
  int nrecvs = 0;
  recv_offsets[0] = gap;
  for (int i = 0; i < traffic->procs; i++) {
    int source = (rank + traffic->procs - i) % traffic->procs;
    int message = traffic_find(traffic, source, rank);
    int64_t items = message < 0 ? 0 : row_items(&traffic->rows[source], message);
    if (message < 0 || (items == 0 && rank % 2 == 0)) /* even ranks leave out what is empty */
      continue;
    recv_ranks[nrecvs++] = source;
    recv_offsets[nrecvs] = recv_offsets[nrecvs - 1] + items;
  }
  struct swp_exchange exchange = {
      .item_bytes = item_bytes, .nitems = row->nitems, .nsends = row->nsends, .nrecvs = nrecvs};
  if (nsends > 0) {
    exchange.send_ranks = copy_of(row->ranks, nsends * sizeof *row->ranks);
    exchange.send_offsets = copy_of(row->offsets, (nsends + 1) * sizeof *row->offsets);
    if (!row->opaque)
      exchange.send_items = copy_of(row->items, (size_t)row->offsets[nsends] * sizeof *row->items);
  }
  if (nrecvs > 0) {
    exchange.recv_ranks = copy_of(recv_ranks, (size_t)nrecvs * sizeof *recv_ranks);
    exchange.recv_offsets = copy_of(recv_offsets, (size_t)(nrecvs + 1) * sizeof *recv_offsets);
  }
  free(recv_ranks);
  free(recv_offsets);
  return exchange;
}

static void scribble_and_free(const void *array, size_t bytes) {
  void *memory = (void *)(uintptr_t)array;
  if (memory == NULL)
    return;
  memset(memory, 0x5a, bytes);
  free(memory);
}

void exchange_free(struct swp_exchange *exchange) {
  size_t nsends = (size_t)exchange->nsends, nrecvs = (size_t)exchange->nrecvs;
  if (exchange->send_items != NULL)
    scribble_and_free(exchange->send_items, (size_t)exchange->send_offsets[nsends] * sizeof(int64_t));
  scribble_and_free(exchange->send_ranks, nsends * sizeof(int));
  scribble_and_free(exchange->send_offsets, (nsends + 1) * sizeof(int64_t));
  scribble_and_free(exchange->recv_ranks, nrecvs * sizeof(int));
  scribble_and_free(exchange->recv_offsets, (nrecvs + 1) * sizeof(int64_t));
}
