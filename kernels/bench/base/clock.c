#include "clock.h"

#include <sched.h>
#include <time.h>

enum { TICK_READINGS = 10000 };

int64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_wait(int64_t until_ns, bool yields) {
  int64_t now = clock_ns();
  if (SWP_SIMULATED && now < until_ns) { /* SMPI's nanosleep advances its clock; a loop would not end */
    const struct timespec left = {(until_ns - now) / 1000000000, (until_ns - now) % 1000000000};
    nanosleep(&left, NULL);
    return until_ns; /* which the rounded clock may miss */
  }
  for (; now < until_ns; now = clock_ns())
    if (yields)
      sched_yield();
  return now;
}

int64_t clock_tick_ns(void) {
  if (SWP_SIMULATED)
    return 1;
  int64_t least = INT64_MAX;
  int64_t last = clock_ns();
  for (int i = 0; i < TICK_READINGS; i++) {
    const int64_t now = clock_ns();
    if (now > last && now - last < least)
      least = now - last;
    last = now;
  }
  return least == INT64_MAX ? 1 : least;
}
