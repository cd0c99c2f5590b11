/* Memory of this rank, which is read to evict all else from its processor's caches. */
#ifndef BENCH_CACHE_H
#define BENCH_CACHE_H

#include <stddef.h>

struct cache_filler {
  unsigned char *bytes;
  size_t size; /* as the last level of cpu0's caches has, or as much as most have where it is unknown */
};

/* Makes a filler with its pages, which the caller frees. Local; out of memory ends the job. */
struct cache_filler cache_filler_create(void);
void cache_filler_free(struct cache_filler *filler);

/* Reads every cache line of it; nothing if it is empty. Local. */
void cache_fill(const struct cache_filler *filler);

#endif
