#include "hang.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TICKS = 20 }; /* of a limit: a clock would continue while the job is suspended */

static struct {
  int rank;
  double limit_s;
  timer_t timer;
  bool has_timer;
  volatile sig_atomic_t ticks; /* since the last sign of life */
  const char *volatile doing, *volatile method;
  volatile int64_t size_bytes;
} now;

static void tick(int signal) {
  char line[512];
  const char *doing = now.doing, *method = now.method; /* another thread may go on meanwhile */
  (void)signal;
  if (!doing || ++now.ticks != TICKS + 1) /* later ones may come in other threads */
    return;
  int length = snprintf(line, sizeof line, "swpbench: rank %d made no progress in %g s: %s", now.rank,
                        now.limit_s, doing);
  if (method)
    length += snprintf(line + length, sizeof line - (size_t)length, " %.200s", method);
  if (now.size_bytes)
    length +=
        snprintf(line + length, sizeof line - (size_t)length, " at %lld bytes", (long long)now.size_bytes);
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, (size_t)length) == length)
    sleep(1);              /* for the words of other ranks */
  kill(getpid(), SIGKILL); /* by exit, others may outlive this rank under MPICH 5's mpiexec */
}

void hang_watch(int rank, double limit_s) {
  const struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
  const int64_t tick_ns = (int64_t)(limit_s * 1e9) / TICKS;
  const struct timespec period = {tick_ns / 1000000000, tick_ns % 1000000000};
  now.rank = rank;
  now.limit_s = limit_s;
  hang_next("preparing", NULL, 0);
  if (!now.has_timer) {
    sigaction(SIGVTALRM, &action, NULL);
    now.has_timer = !SWP_SIMULATED && timer_create(CLOCK_MONOTONIC, &event, &now.timer) == 0;
  }
  if (now.has_timer)
    timer_settime(now.timer, 0, &(struct itimerspec){period, period}, NULL);
}

void hang_next(const char *doing, const char *method, int64_t size_bytes) {
  now.method = NULL;
  now.size_bytes = size_bytes;
  now.doing = doing;
  now.method = method;
  hang_beat();
}

void hang_beat(void) {
  now.ticks = 0;
}
