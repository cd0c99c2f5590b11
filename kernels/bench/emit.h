/* The raw file of a launch: docs/reference/benchfile.md. Rank 0 writes it. */
#ifndef BENCH_EMIT_H
#define BENCH_EMIT_H

#include "contender.h"
#include "facts.h"
#include "options.h"

#include <stdio.h>

struct launch {
  const struct team *team;
  const struct options *options;
  const struct facts *facts;
  const struct sync *sync;
  int64_t tick_ns;
  const char *operation, *pattern; /* as the header names them */
};

/* What was not measured. */
struct skipped {
  char method[METHOD_SPEC_MAX];
  int64_t size_bytes;
  char reason[512];
};

struct output {
  const char *path;
  FILE *file;
  int cases, samples;
};

/* Opens a new or empty file: raw data are never overwritten. All return 0, or -1 with failure_text() set.
 * Local.
 */
int output_open(struct output *output, const char *path);
int output_close(struct output *output);

int emit_header(struct output *output, const struct launch *launch);
int emit_case(struct output *output, const struct launch *launch, const struct workload *workload,
              const struct pattern_features *features, const struct contender *contender, int samples);

/* Writes the closing record and closes the file. Local, on rank 0. */
int emit_closing(struct output *output, double seconds, const struct skipped *skipped, int nskipped);

/* Does that, and tells on stdout that all went well. Collective. 0, or -1 on
 * every rank after the failure was told. */
int emit_end(struct output *output, const struct team *team, double seconds, const struct skipped *skipped,
             int nskipped);

#endif
