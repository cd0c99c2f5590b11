/* Allocation that a plan accounts for, and that tests can make fail. */
#ifndef SWP_ALLOCATE_H
#define SWP_ALLOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Zeroed memory for count elements of `bytes` each, 64-byte aligned; NULL when memory runs out or the size
 * overflows. A count of 0 gives a valid pointer. Free with swp_release. `*account` (may be NULL) grows by the
 * size.
 */
void *swp_allocate(size_t count, size_t bytes, int64_t *account);

/* Uninitialised memory, aligned likewise: for payload, for which zeroing would cost a second pass. */
void *swp_allocate_buffer(size_t bytes);

void swp_release(void *memory);

/* Releases what was allocated for so many elements, and takes it off the account. */
void swp_release_counted(void *memory, size_t count, size_t bytes, int64_t *account);

/* The least multiple of the unit that is as large. */
static inline int64_t swp_round_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/* A growing array; items is NULL or must be released. */
struct array {
  void *items;
  int64_t count, capacity;
};

/* Appends and returns a zeroed element; NULL, with nothing changed, if memory runs out. `*account` as
   above. */
void *swp_array_add(struct array *array, size_t bytes, int64_t *account);

/* With keep, swp_release by this thread never frees memory, as MPI may still read or write it. Returns the
   previous setting. */
bool swp_release_keeps(bool keep);

/* Shrinks the array to its elements, if memory allows. */
void swp_array_trim(struct array *array, size_t bytes, int64_t *account);

/* For tests: the n-th allocation from now on (1: the next) fails, and all after it; 0 switches this off. */
void swp_allocate_fail_after(long n);

/* For tests: allocations so far in this process. */
long swp_allocate_count(void);

#endif
