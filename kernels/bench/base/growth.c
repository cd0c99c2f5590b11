#include "growth.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef BENCH_MALLINFO
#include <malloc.h>
#endif

/* Growth that may occur by chance: blocks of the heap, and pages that were never touched before. */
static const int64_t HEAP_LEAST_BYTES = 1024, RESIDENT_LEAST_BYTES = 1 << 20;

#ifdef BENCH_MALLINFO
/*
 * Fills glibc's per-thread cache of freed blocks: it counts as in use, and varying calls go on filling it for
 * a hundred thousand executions. Once full, it is the same at every reading.
 */
static void fill_cache(void) {
  enum { CACHED_MOST_BYTES = 1032, SIZES_STEP_BYTES = 16, BLOCKS = 64 };
  static void *volatile blocks[BLOCKS]; /* volatile: otherwise the compiler allocates nothing */
  for (size_t bytes = SIZES_STEP_BYTES; bytes <= CACHED_MOST_BYTES; bytes += SIZES_STEP_BYTES) {
    for (int i = 0; i < BLOCKS; i++)
      blocks[i] = malloc(bytes);
    for (int i = 0; i < BLOCKS; i++)
      free(blocks[i]);
  }
}
#endif

static int64_t heap_bytes(void) {
#ifdef BENCH_MALLINFO
  fill_cache();
  const struct mallinfo2 info = mallinfo2();
  return (int64_t)(info.uordblks + info.hblkhd);
#else
  return 0;
#endif
}

/* 0 where AddressSanitizer keeps freed memory: it finds leaks itself. */
static int64_t resident_bytes(void) {
  long long pages = 0;
#ifndef __SANITIZE_ADDRESS__
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*d %lld", &pages) != 1)
    pages = 0;
  if (file)
    fclose(file);
#endif
  return pages * sysconf(_SC_PAGESIZE);
}

void growth_read(struct growth *growth) {
  growth->resident_bytes[growth->readings] = resident_bytes();
  growth->heap_bytes[growth->readings++] = heap_bytes();
}

static int64_t leak_bytes(const int64_t *bytes, int64_t least) {
  const int64_t all = bytes[GROWTH_READINGS - 1] - bytes[0];
  const int64_t second_half = bytes[GROWTH_READINGS - 1] - bytes[GROWTH_READINGS / 2];
  for (int i = 1; i < GROWTH_READINGS; i++)
    if (bytes[i] <= bytes[i - 1])
      return 0;
  return all >= least && second_half >= all / 4 ? all : 0;
}

int64_t growth_leak_bytes(const struct growth *growth) {
  if (growth->readings < GROWTH_READINGS)
    return 0;
  const int64_t heap = leak_bytes(growth->heap_bytes, HEAP_LEAST_BYTES);
  return heap ? heap : leak_bytes(growth->resident_bytes, RESIDENT_LEAST_BYTES);
}
