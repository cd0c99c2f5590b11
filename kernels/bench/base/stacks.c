#define _GNU_SOURCE
#include "stacks.h"

#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef sigev_notify_thread_id /* which glibc names from 2.40 on */
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { FRAMES = 64 };

/* libgcc finds the function around an address by the exception tables, with or without symbols. */
void *_Unwind_FindEnclosingFunction(void *address);

static struct stacks *stacks_now;
static timer_t timer;

static void add(struct stacks *stacks, void *function) {
  int i = 0;
  while (i < stacks->nfunctions && stacks->functions[i] != function)
    i++;
  if (i == STACK_FUNCTIONS) { /* a signal handler cannot allocate */
    stacks->full = true;
    return;
  }
  if (i == stacks->nfunctions)
    stacks->functions[stacks->nfunctions++] = function;
  stacks->seen[i]++;
}

/* A recursive function counts once. */
static bool is_first(void *const *functions, int index) {
  for (int i = 0; i < index; i++)
    if (functions[i] == functions[index])
      return false;
  return true;
}

static void read_stack(int signal) {
  void *frames[FRAMES];
  struct stacks *stacks = stacks_now;
  (void)signal;
  if (stacks == NULL)
    return;
  const int n = backtrace(frames, FRAMES);
  for (int i = 0; i < n; i++)
    frames[i] = _Unwind_FindEnclosingFunction((char *)frames[i] - 1);
  for (int i = 0; i < n; i++)
    if (frames[i] && is_first(frames, i))
      add(stacks, frames[i]);
  stacks->count++;
}

/* The timer is for this thread alone: a library may have others, whose stacks are irrelevant. */
static bool start_timer(int every_us) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
  const struct timespec period = {0, every_us * 1000L};
  event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
  return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
         timer_settime(timer, 0, &(struct itimerspec){period, period}, NULL) == 0;
}

void stacks_begin(struct stacks *stacks, int every_us) {
  struct sigaction action = {.sa_handler = read_stack, .sa_flags = SA_RESTART};
  void *frame;
  memset(stacks, 0, sizeof *stacks);
  backtrace(&frame, 1); /* loads its libraries, which a signal handler must not */
  stacks_now = stacks;
  sigaction(SIGALRM, &action, NULL);
  if (!start_timer(every_us))
    stacks_now = NULL; /* nothing is seen, and so nothing proved */
}

void stacks_end(void) {
  if (stacks_now != NULL)
    timer_delete(timer);
  stacks_now = NULL;
}

int stacks_seen(const struct stacks *stacks, const void *function) {
  for (int i = 0; i < stacks->nfunctions; i++)
    if (stacks->functions[i] == function)
      return stacks->seen[i];
  return 0;
}

static bool is_in_most(const struct stacks *observed, int count, const void *function) {
  for (int i = 0; i < count; i++)
    if (2 * stacks_seen(&observed[i], function) <= observed[i].count)
      return false;
  return true;
}

static bool is_in_none(const struct stacks *observed, int count, const void *function) {
  for (int i = 0; i < count; i++)
    if (observed[i].full || stacks_seen(&observed[i], function) > 0) /* full: it may have been there unseen */
      return false;
  return true;
}

bool stacks_distinguish(const struct stacks *here, const struct stacks *there, int observations) {
  for (int i = 0; i < here->nfunctions; i++)
    if (is_in_most(here, observations, here->functions[i]) &&
        is_in_none(there, observations, here->functions[i]))
      return true;
  return false;
}
