/* Patterns: which rank sends which items to which. Each rank makes its own part; none needs O(P^2) memory. */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include "lists.h"

struct matrix; /* products/matrix.h */

/* The items that one rank owns, sends and receives. */
struct pattern {
  int64_t nitems;
  bool opaque;           /* the messages are the items 0, 1, … one after the other */
  struct lists sends;    /* items: this rank's, from 0 */
  struct lists recvs;    /* items: as the sender numbers them */
  int root;              /* blocks only */
  struct matrix *matrix; /* whose halo this is; NULL: none */
  int64_t *halo_columns; /* then the columns behind the items of recvs */
};

/* The size of the whole pattern, equal on every rank; a rank's messages to itself do not occur. */
struct pattern_features {
  int64_t messages, messages_max; /* total over ranks, most sent by one */
  int64_t items, items_max;       /* items sent, likewise */
  int64_t message_items_max;      /* most items of one message */
};

struct pattern_parameter {
  const char *name;
  int64_t standard, least, most;
};

enum { PATTERN_PARAMETERS = 4, PARAMETERS_MOST = 8, PATTERN_PATH_MAX = 4096 };

struct pattern_spec;

/* A family of patterns: a file here, registered by its line in families.def. */
struct pattern_family {
  const char *name;
  const char *summary;
  bool of_collectives; /* it serves only collectives, and they need it */
  bool from_file;      /* after the colon are FILE[,part=PART], not parameters */
  struct pattern_parameter parameters[PATTERN_PARAMETERS];
  /* Refuses combinations of parameters by failure_set(); may be NULL. Local. */
  int (*check)(const struct pattern_spec *spec);
  /* Sets nitems, opaque and one of the two lists, and the other by lists_transpose. Collective; failure
     agreed. */
  int (*generate)(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern);
};

/* A parsed spec such as "random:degree=6,seed=1". */
struct pattern_spec {
  const struct pattern_family *family;
  int64_t values[PATTERN_PARAMETERS]; /* in the order of the family's parameters */
  char file[PATTERN_PATH_MAX];
  char part[PATTERN_PATH_MAX]; /* "contiguous", "strided" or a file */
};

/*
 * Reads "name=value,..." into the values of `count` parameters, at most PARAMETERS_MOST; text may be NULL. A
 * parameter without a name ends them earlier. 0, or -1 with failure_text() set. Local.
 */
int parameters_parse(const char *text, const struct pattern_parameter *parameters, int count,
                     int64_t *values);

/* Prints every family, for the help. */
void patterns_help(void);

/* 0, or -1 with failure_text() set. Local. */
int pattern_parse(const char *text, struct pattern_spec *spec);

/* The spec with all its parameters; of files, the base names only, and of a matrix no part when contiguous.
 */
void pattern_print(const struct pattern_spec *spec, char *text, size_t length);

/* Collective; the failure is agreed. pattern_free must be called in both cases. */
int pattern_generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern);
void pattern_free(struct pattern *pattern);

void pattern_measure(const struct team *team, const struct pattern *pattern,
                     struct pattern_features *features);

#endif
