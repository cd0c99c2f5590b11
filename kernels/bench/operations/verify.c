#include "verify.h"

#include "error.h"
#include "rng.h"

#include <stdbool.h>
#include <string.h>

/* Successive words of an item differ by an odd number: as fast as memory, and no two are equal. */
static const uint64_t STEP = 0x9e3779b97f4a7c15u;

enum { WORDS = 64 }; /* that are compared at once */

static uint64_t first_word(const struct payload *payload, int rank, int64_t item) {
  const uint64_t launch = hash_pair(payload->seed, payload->repetition);
  return hash_pair(hash_pair(launch, (uint64_t)rank), (uint64_t)item);
}

static void write_item(uint64_t word, int64_t bytes, unsigned char *data) {
  int64_t at = 0;
  for (; at + (int64_t)sizeof word <= bytes; at += (int64_t)sizeof word, word += STEP)
    memcpy(data + at, &word, sizeof word);
  memcpy(data + at, &word, (size_t)(bytes - at));
}

void payload_write(const struct payload *payload, int rank, const int64_t *items, int64_t n, void *data) {
  unsigned char *at = data;
  for (int64_t i = 0; i < n; i++, at += payload->item_bytes)
    write_item(first_word(payload, rank, items ? items[i] : i), payload->item_bytes, at);
}

static int report(const struct payload *payload, int source, int64_t item, int64_t byte, int expected,
                  int got) {
  return failure_set(
      "wrong payload from rank %d, item %lld (%lld bytes): byte %lld is 0x%02x, expected 0x%02x", source,
      (long long)item, (long long)payload->item_bytes, (long long)byte, got, expected);
}

/* Returns whether the words are the next of an item. Without a branch, it is as fast as memory. */
static bool are_right(uint64_t word, const unsigned char *data) {
  uint64_t got[WORDS], wrong = 0;
  memcpy(got, data, sizeof got);
  for (int i = 0; i < WORDS; i++, word += STEP)
    wrong |= got[i] ^ word;
  return wrong == 0;
}

/* Returns the place of the first wrong byte, -1 when there is none. */
static int64_t first_difference(uint64_t word, int64_t bytes, const unsigned char *data, int *expected) {
  const int64_t block = WORDS * (int64_t)sizeof word;
  int64_t at = 0;
  for (; at + block <= bytes && are_right(word, data + at); at += block)
    word += WORDS * STEP;
  for (; at < bytes; at += (int64_t)sizeof word, word += STEP) {
    const int64_t size = bytes - at < (int64_t)sizeof word ? bytes - at : (int64_t)sizeof word;
    unsigned char right[sizeof word];
    memcpy(right, &word, sizeof word);
    for (int64_t i = 0; memcmp(right, data + at, (size_t)size) != 0 && i < size; i++)
      if (right[i] != data[at + i]) {
        *expected = right[i];
        return at + i;
      }
  }
  return -1;
}

int payload_compare(const struct payload *payload, int source, const int64_t *items, int64_t n,
                    const void *data) {
  const unsigned char *at = data;
  for (int64_t i = 0; i < n; i++, at += payload->item_bytes) {
    int expected = 0;
    const uint64_t word = first_word(payload, source, items[i]);
    const int64_t byte = first_difference(word, payload->item_bytes, at, &expected);
    if (byte >= 0)
      return report(payload, source, items[i], byte, expected, at[byte]);
  }
  return 0;
}
