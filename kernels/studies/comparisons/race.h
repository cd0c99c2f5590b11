/* Ways of doing the same, timed one after the other in rounds of random order, so that drift affects all
   alike. */
#ifndef STUDIES_RACE_H
#define STUDIES_RACE_H

#include "operation.h"
#include "precision.h"
#include "sync.h"

struct entrant {
  const char *name;
  void *context;                  /* of the functions below; each is collective */
  void (*prepare)(void *context); /* before the start; may be NULL */
  void (*execute)(void *context); /* timed; ends the job when it fails */
  int (*finish)(void *context);   /* checks and frees the data received: 0, or -1 with failure_text() set */
  double *seconds;                /* per round, of the last rank; race() allocates it, race_free() frees it */
};

/*
 * Times the entrants in as many rounds as `seconds` allow, after some to warm up. Returns how many, at least
 * 20 and at most 2000; or -1 if a rank received wrong data, which has been reported. Collective.
 */
int race(const struct team *team, struct sync *sync, struct entrant *entrants, int count, double seconds);
void race_free(struct entrant *entrants, int count);

/* The median over rounds of the entrant's time as a multiple of the other's in the same round. */
struct interval race_ratio(const struct entrant *entrant, const struct entrant *other, int rounds);

/* Prints the entrant's name, median, and ratio to the other, without an end of line. */
void race_print(const struct entrant *entrant, const struct entrant *other, int rounds);

/* A study of an operation on some patterns, each at several sizes. */
struct comparison {
  const char *program, *operation;
  const char *const *patterns; /* NULL ends the list */
  /* Races the entrants on the workload for this many seconds, and prints the results; `pattern` is for
     people. 0, or -1 on every rank after the failure was printed. Collective. */
  int (*compare)(struct workload *workload, const struct pattern_features *features, struct sync *sync,
                 const char *pattern, double seconds);
};

/* The main function of a study, whose arguments are [SECONDS [SCHEME]]. */
int comparison_main(int argc, char **argv, const struct comparison *comparison);

#endif
