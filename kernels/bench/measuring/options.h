/* The options of a launch. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "operation.h"
#include "pattern.h"
#include "sync.h"

enum { RACES_MOST = 64 };

/* Methods that race, or are soaked, at some of the sizes: those of the first race come first. */
struct size_race {
  int nsizes;
  const char *methods;
  int64_t repeats; /* samples at most, or executions of a soak */
};

struct options {
  const struct operation *operation; /* of run and soak */
  struct pattern_spec pattern;       /* of run and soak */
  const char *methods;
  int64_t *sizes_bytes; /* increasing within a race */
  int nsizes;
  struct size_race races[RACES_MOST]; /* of run and soak; one, unless they are given */
  int nraces;
  const char *out;
  double budget_s; /* 0: none */
  int64_t launch;
  const char *campaign; /* NULL: the date */
  const char *system;
  const char *environment;
  int64_t seed;
  const char *sync; /* "": by the layout */
  const char *launcher;
  int64_t cores; /* of a node; 0: those that the ranks of one may use */
  const char *yield;
  int64_t ppn;   /* of virtual nodes; 0: the machine's nodes */
  int placement; /* of enum swp_placement */
  int max_samples;
  int64_t executions; /* of soak */
  double limit_s;     /* the longest time of a rank for a step */
  bool prompt;        /* of soak: no rank is made late */
  bool proved;      /* of run: the library's algorithms, by an earlier launch on this layout at these sizes */
  bool staggered;   /* of run: ranks arrive later by up to arrival_s */
  double arrival_s; /* 0: the time of an execution */
  bool cold;        /* of run: caches are filled with other memory before each sample */
  bool anonymous;
  bool quiet;
};

#endif
