/* Allocation that a plan accounts for, and that tests can make fail. */
#include "allocate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static atomic_long fail_at; /* 0: never */
static atomic_long count_so_far;

void *swp_allocate_buffer(size_t bytes) {
  long number = atomic_fetch_add(&count_so_far, 1) + 1;
  long limit = atomic_load(&fail_at);
  if (limit != 0 && number >= limit)
    return NULL;
  return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

/* The bytes that an allocation of this many bytes takes. */
static int64_t rounded(size_t bytes) {
  return (int64_t)((bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

void *swp_allocate(size_t count, size_t bytes, int64_t *account) {
  if (bytes != 0 && count > (SIZE_MAX - ALIGNMENT) / bytes)
    return NULL;
  size_t size = count * bytes;
  void *memory = swp_allocate_buffer(size);
  if (memory == NULL)
    return NULL;
  memset(memory, 0, size);
  if (account != NULL)
    *account += rounded(size);
  return memory;
}

/* Moves the items to memory for so many. False: there is none, and the array is as before. */
static bool resize(struct array *array, int64_t capacity, size_t bytes, int64_t *account) {
  int64_t added = 0;
  void *items = swp_allocate((size_t)capacity, bytes, &added);
  if (items == NULL)
    return false;
  if (array->count > 0)
    memcpy(items, array->items, (size_t)array->count * bytes);
  swp_release(array->items);
  if (account != NULL)
    *account += added - (array->capacity > 0 ? rounded((size_t)array->capacity * bytes) : 0);
  array->items = items;
  array->capacity = capacity;
  return true;
}

void *swp_array_add(struct array *array, size_t bytes, int64_t *account) {
  enum { FIRST = 4 };
  if (array->count == array->capacity &&
      !resize(array, array->capacity > 0 ? 2 * array->capacity : FIRST, bytes, account))
    return NULL;
  return (char *)array->items + (size_t)array->count++ * bytes;
}

void swp_array_trim(struct array *array, size_t bytes, int64_t *account) {
  if (array->count < array->capacity)
    resize(array, array->count, bytes, account);
}

/* Kept memory, listed so that leak checkers find it in use. */
struct kept {
  struct kept *next;
  void *memory;
};

static _Atomic(struct kept *) kept;
static _Thread_local bool keeps;

bool swp_release_keeps(bool keep) {
  const bool before = keeps;
  keeps = keep;
  return before;
}

static void keep_for_ever(void *memory) {
  struct kept *entry = malloc(sizeof *entry);
  if (entry == NULL)
    return;
  *entry = (struct kept){atomic_load(&kept), memory};
  while (!atomic_compare_exchange_weak(&kept, &entry->next, entry)) {
  }
}

void swp_release(void *memory) {
  if (keeps && memory != NULL)
    keep_for_ever(memory);
  else
    free(memory);
}

void swp_release_counted(void *memory, size_t count, size_t bytes, int64_t *account) {
  if (memory != NULL)
    *account -= rounded(count * bytes);
  swp_release(memory);
}

void swp_allocate_fail_after(long n) {
  atomic_store(&fail_at, n == 0 ? 0 : atomic_load(&count_so_far) + n);
}

long swp_allocate_count(void) {
  return atomic_load(&count_so_far);
}
