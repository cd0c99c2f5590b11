/* Dealing nodes to ranks (Bienz, Gropp, Olson, 2019, section 4.1). */
#include "nap_deal.h"

#include <stdlib.h>

static int by_node(const void *a, const void *b) {
  const struct lot *x = a, *y = b;
  if (x->node != y->node)
    return x->node < y->node ? -1 : 1;
  return (x->share > y->share) - (x->share < y->share);
}

static int by_volume(const void *a, const void *b) {
  const struct lot *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return by_node(a, b);
}

static void sort(struct lot *lots, int64_t count, int (*compare)(const void *, const void *)) {
  if (count > 1)
    qsort(lots, (size_t)count, sizeof *lots, compare);
}

void swp_nap_sort_lots(struct lot *lots, int64_t count) {
  sort(lots, count, by_node);
}

/* The lot with the largest shares that can have one more, or NULL. */
static struct lot *largest_shares(struct lot *lots, int64_t count, int64_t item_bytes) {
  struct lot *largest = NULL;
  for (struct lot *lot = lots; lot < lots + count; lot++)
    if (lot->shares < lot->bytes / item_bytes &&
        (largest == NULL || (double)lot->bytes * largest->shares > (double)largest->bytes * lot->shares))
      largest = lot;
  return largest;
}

void swp_nap_deal_sends(struct lot *lots, int64_t count, int size, int64_t item_bytes, bool sharing) {
  sort(lots, count, by_volume);
  for (int64_t i = 0; i < count; i++)
    lots[i].shares = 1;
  for (int64_t left = sharing ? size - count : 0; left > 0; left--) {
    struct lot *lot = largest_shares(lots, count, item_bytes);
    if (lot == NULL)
      break;
    lot->shares++;
  }
  int64_t dealt = 0;
  for (int64_t i = 0; i < count; i++) {
    lots[i].first = (int)(dealt % size);
    dealt += lots[i].shares;
  }
}

void swp_nap_deal_receives(struct lot *lots, int64_t count, int size) {
  sort(lots, count, by_volume);
  for (int64_t i = 0; i < count; i++) {
    lots[i].first = size - 1 - (int)(i % size);
    lots[i].shares = 1;
  }
}

int64_t swp_nap_share_begin(int64_t bytes, int64_t item_bytes, int shares, int share) {
  int64_t items = bytes / item_bytes;
  return (items / shares * share + items % shares * share / shares) * item_bytes;
}
