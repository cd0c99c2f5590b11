/* The command lines of `swpbench run`, `swpbench probe`, `swpbench overlap` and `swpbench soak`. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "operation.h"
#include "pattern.h"
#include "sync.h"

/* Bits, so that an option can be of several. */
enum measuring { COMMAND_RUN = 1, COMMAND_PROBE = 2, COMMAND_OVERLAP = 4, COMMAND_SOAK = 8 };

enum { RACES_MOST = 64 };

/* Methods that race at some of the sizes: those of the first race come first. */
struct size_race {
  int nsizes;
  const char *methods;
  int max_samples;
};

struct options {
  const struct operation *operation; /* of run and soak */
  struct pattern_spec pattern;       /* of run and soak */
  const char *pattern_text;
  const char *methods;
  const char *computation; /* of overlap; NULL: as much as there is */
  int64_t *sizes_bytes;    /* increasing within a race */
  int nsizes;
  char *races_text;
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
  const char *yield;
  int64_t ppn;   /* of virtual nodes; 0: the machine's nodes */
  int placement; /* of enum swp_placement */
  int max_samples;
  int64_t executions; /* of soak */
  double limit_s;     /* of soak: how long a rank may take for a step */
  bool anonymous;
  bool quiet;
};

/* Reads the arguments after the command. 0, or -1 with failure_text() set. Local; options_free is due in both
 * cases. */
int options_parse(int argc, char **argv, enum measuring command, struct options *options);
void options_free(struct options *options);

/* The help of all of swpbench. */
void options_help(void);

/* Reads "8:1M:x2,3000" into increasing sizes without repeats, to be freed. 0 or -1. */
int sizes_parse(const char *text, int64_t **sizes_bytes, int *count);

#endif
