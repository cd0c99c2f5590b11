/* A launch and its raw file, which rank 0 writes: docs/reference/benchfile.md. */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include "contender.h"
#include "facts.h"
#include "json.h"
#include "options.h"

#include <stdio.h>

/* A method that was not measured. */
struct skipped {
  char method[METHOD_SPEC_MAX];
  int64_t size_bytes;
  char reason[512];
};

struct launch {
  const struct team *team;
  const struct options *options;
  const char *operation; /* as the header names it, and the pattern */
  char pattern[512];
  int64_t begin_ns, tick_ns;
  double crossing_s; /* canary_crossing_s when it began */
  double others;     /* others_share when it ended */
  struct facts facts;
  struct sync sync;
  FILE *file; /* on rank 0, like the members below */
  int cases, samples;
  struct skipped *skipped;
  int nskipped;
};

/* Starts the time of a launch. launch_free must be called. Local. */
struct launch launch_create(const struct team *team, const struct options *options, const char *operation);
void launch_free(struct launch *launch);

/* Opens the file, which must be new: raw data are never overwritten. Does not open it if a status is not 0.
   Collective; the failure is agreed. */
int launch_open(struct launch *launch, int status);

/* Finds out where it runs, how executions start together, and writes the header; the pattern must be set.
   Collective; the failure is agreed. */
int launch_begin(struct launch *launch);

/* Returns whether its time limit, if any, has passed. Local. */
bool launch_is_over(const struct launch *launch);

/* Notes on rank 0 a method that is not measured, and why. Local. */
void launch_skip(struct launch *launch, const char *method, int64_t size_bytes, const char *reason);

/* Write a record of this many samples; that of a method at one size. 0, or -1 with failure_text() set. Local,
   on rank 0. */
int launch_write(struct launch *launch, struct json *json, int samples);
int launch_write_case(struct launch *launch, const struct workload *workload,
                      const struct pattern_features *features, const struct contender *contender,
                      int samples);

/* Writes the closing record and closes the file. Local, on rank 0. */
int launch_close(struct launch *launch);

/* Opens the file on another rank, to write and close it in place of rank 0, which cannot. Local. 0, or -1
   with failure_text() set. */
int launch_take_over(struct launch *launch);

/* Closes the file, and prints that all went well. Collective. 0, or -1 on every rank after the failure was
   printed. */
int launch_end(struct launch *launch);

#endif
