/*
 * Detects that this rank makes no progress: a separate thread checks when the rank last gave a sign of life,
 * and interrupts it to read its stack. That thread makes no MPI calls.
 */
#ifndef BENCH_WATCHDOG_H
#define BENCH_WATCHDOG_H

enum { WATCHDOG_FRAMES = 64, WATCHDOG_NAME = 160 };

/* The stack of a rank, from the innermost call outwards. */
struct where {
  int count;
  char names[WATCHDOG_FRAMES][WATCHDOG_NAME];
};

/*
 * From now on the calling thread must call watchdog_beat at least every limit_s seconds; otherwise `hangs` is
 * called, once, in the watchdog's thread. One at a time in a process, which must have no other use for
 * SIGALRM. 0, or -1 with failure_text() set. Local.
 */
int watchdog_start(double limit_s, void (*hangs)(const struct where *where));
void watchdog_beat(void);
void watchdog_stop(void);

#endif
