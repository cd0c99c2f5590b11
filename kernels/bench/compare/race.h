/* Ways of doing the same, timed one after the other in rounds of random order, so that drift hits all alike.
 */
#ifndef COMPARE_RACE_H
#define COMPARE_RACE_H

#include "../precision.h"
#include "../sync.h"

struct entrant {
  const char *name;
  void *context;                  /* of the functions below; each is collective */
  void (*prepare)(void *context); /* before the start; may be NULL */
  void (*execute)(void *context); /* timed; ends the job when it fails */
  int (*finish)(void *context);   /* checks and frees what came: 0, or -1 with failure_text() set */
  double *seconds;                /* per round, of the last rank; race() allocates it, race_free() frees it */
};

/*
 * Times the entrants in as many rounds as `seconds` allow, after some to warm up. Returns how many, at least
 * 20 and at most 2000; or -1 when a rank got what it should not, which has been reported. Collective.
 */
int race(const struct team *team, struct sync *sync, struct entrant *entrants, int count, double seconds);
void race_free(struct entrant *entrants, int count);

/* The median over rounds of the entrant's time as a multiple of the other's in the same round. */
struct interval race_ratio(const struct entrant *entrant, const struct entrant *other, int rounds);

#endif
