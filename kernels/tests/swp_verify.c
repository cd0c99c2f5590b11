/* The comparison of payloads finds each wrong byte of items of any size, and says which it is. */
#include "error.h"
#include "testing.h"
#include "verify.h"

#include <stdio.h>
#include <string.h>

enum { RANK = 3, ITEMS = 2, MOST_BYTES = 1100 };

static void check_each_byte(int64_t bytes) {
  const struct payload payload = {.seed = 1, .repetition = (uint64_t)bytes, .item_bytes = bytes};
  const int64_t numbers[ITEMS] = {7, 5};
  unsigned char data[ITEMS * MOST_BYTES];
  char expected[128];
  test_case("items of %lld bytes", (long long)bytes);
  payload_write(&payload, RANK, numbers, ITEMS, data);
  EXPECT_EQUAL(payload_compare(&payload, RANK, numbers, ITEMS, data), 0);
  for (int64_t at = 0; at < ITEMS * bytes; at++) {
    const unsigned char right = data[at];
    data[at] = (unsigned char)~right;
    EXPECT_EQUAL(payload_compare(&payload, RANK, numbers, ITEMS, data), -1);
    snprintf(expected, sizeof expected, "rank %d, item %lld (%lld bytes): byte %lld is 0x%02x,", RANK,
             (long long)numbers[at / bytes], (long long)bytes, (long long)(at % bytes), data[at]);
    EXPECT(strstr(failure_text(), expected), "byte %lld: '%s'", (long long)at, failure_text());
    failure_clear();
    data[at] = right;
  }
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_verify");
  for (int64_t bytes = 1; bytes <= 20; bytes++)
    check_each_byte(bytes);
  for (int64_t bytes = 500; bytes <= MOST_BYTES; bytes += 12)
    check_each_byte(bytes);
  return test_end();
}
