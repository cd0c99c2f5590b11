/* The inbox: messages in blocks that do not move, and the arrays that the caller sees. */
#include "inbox.h"

#include "allocate.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_ALIGNMENT = 16, FIRST_BLOCK_BYTES = 16384 };

struct block {
  struct block *next; /* older, smaller */
  size_t size, used;  /* of the data, which follow the header */
};

enum { HEADER_BYTES = 64 };
_Static_assert(sizeof(struct block) <= HEADER_BYTES && HEADER_BYTES % DATA_ALIGNMENT == 0, "aligned data");

struct entry {
  int source;
  int64_t bytes;
  void *data;
};

struct inbox {
  swp_inbox seen; /* first, so that a pointer to it is one to the inbox */
  int count, capacity;
  struct entry *entries; /* with them in one allocation: */
  void **data;
  int64_t *bytes;
  int *sources;
  struct block *blocks;
};

struct inbox *swp_inbox_create(void) {
  return swp_allocate(1, sizeof(struct inbox), NULL);
}

struct inbox *swp_inbox_of(swp_inbox *seen) {
  return (struct inbox *)(void *)seen;
}

swp_inbox *swp_inbox_seen(struct inbox *inbox) {
  return &inbox->seen;
}

/* The newest block is the largest: with it alone, repeated discoveries soon need no allocation. */
void swp_inbox_empty(struct inbox *inbox) {
  inbox->count = 0;
  inbox->seen.nsources = 0;
  if (inbox->blocks == NULL)
    return;
  while (inbox->blocks->next != NULL) {
    struct block *older = inbox->blocks->next;
    inbox->blocks->next = older->next;
    swp_release(older);
  }
  inbox->blocks->used = 0;
}

static struct block *add_block(struct inbox *inbox, size_t needed) {
  size_t size = inbox->blocks != NULL ? 2 * inbox->blocks->size : FIRST_BLOCK_BYTES;
  if (size < needed)
    size = needed;
  struct block *block = swp_allocate_buffer(HEADER_BYTES + size);
  if (block == NULL)
    return NULL;
  *block = (struct block){inbox->blocks, size, 0};
  inbox->blocks = block;
  return block;
}

static bool grow(struct inbox *inbox) {
  size_t capacity = inbox->capacity > 0 ? 2 * (size_t)inbox->capacity : 16;
  size_t bytes = sizeof *inbox->entries + sizeof *inbox->data + sizeof *inbox->bytes + sizeof *inbox->sources;
  struct entry *entries = swp_allocate(capacity, bytes, NULL);
  if (entries == NULL)
    return false;
  if (inbox->count > 0)
    memcpy(entries, inbox->entries, (size_t)inbox->count * sizeof *entries);
  swp_release(inbox->entries);
  inbox->entries = entries;
  inbox->data = (void **)(void *)(entries + capacity);
  inbox->bytes = (int64_t *)(void *)(inbox->data + capacity);
  inbox->sources = (int *)(void *)(inbox->bytes + capacity);
  inbox->capacity = (int)capacity;
  return true;
}

void *swp_inbox_add(struct inbox *inbox, int source, int64_t bytes) {
  size_t needed = (size_t)swp_round_up(bytes, DATA_ALIGNMENT);
  struct block *block = inbox->blocks;
  if (block == NULL || block->size - block->used < needed)
    block = add_block(inbox, needed);
  if (block == NULL || (inbox->count == inbox->capacity && !grow(inbox)))
    return NULL;
  void *data = (char *)block + HEADER_BYTES + block->used;
  block->used += needed;
  inbox->entries[inbox->count++] = (struct entry){source, bytes, data};
  return data;
}

/* Methods that go through the sources in order deliver them so. */
static bool is_sorted(const struct inbox *inbox) {
  int i = 1;
  while (i < inbox->count && inbox->entries[i - 1].source < inbox->entries[i].source)
    i++;
  return i >= inbox->count;
}

void swp_inbox_finish(struct inbox *inbox) {
  if (!is_sorted(inbox))
    qsort(inbox->entries, (size_t)inbox->count, sizeof *inbox->entries, swp_by_int);
  for (int i = 0; i < inbox->count; i++) {
    inbox->sources[i] = inbox->entries[i].source;
    inbox->bytes[i] = inbox->entries[i].bytes;
    inbox->data[i] = inbox->entries[i].data;
  }
  inbox->seen = (swp_inbox){inbox->count, inbox->sources, inbox->bytes, inbox->data};
}

void swp_inbox_destroy(struct inbox *inbox) {
  if (inbox == NULL)
    return;
  while (inbox->blocks != NULL) {
    struct block *block = inbox->blocks;
    inbox->blocks = block->next;
    swp_release(block);
  }
  swp_release(inbox->entries);
  swp_release(inbox);
}

void swp_inbox_free(swp_inbox **inbox) {
  if (inbox == NULL || *inbox == NULL)
    return;
  swp_inbox_destroy(swp_inbox_of(*inbox));
  *inbox = NULL;
}
