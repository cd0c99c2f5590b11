#include "watchdog.h"

#include "error.h"
#include "symbols.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The innermost frames, which every stack has: the handler, and its caller. */
enum { OWN_FRAMES = 2 };

static struct {
  pthread_t watched, thread;
  int64_t limit_ns;
  void (*hangs)(const struct where *where);
  atomic_uint beats; /* signs of life that it gave */
  atomic_bool ends, bites;
  void *frames[WATCHDOG_FRAMES + OWN_FRAMES];
  atomic_int nframes; /* -1: not read yet */
} dog;

static void read_stack(int signal) {
  (void)signal;
  dog.nframes = backtrace(dog.frames, WATCHDOG_FRAMES + OWN_FRAMES);
}

static void sleep_ns(int64_t ns) {
  struct timespec pause = {ns / 1000000000, ns % 1000000000};
  nanosleep(&pause, NULL); /* a macro in simulations, which takes no braces */
}

/* Waits a second for the handler: a rank that is stopped, or blocked in the kernel, does not get to it. */
static void interrupt(struct where *where) {
  enum { TRIES = 100 };
  dog.nframes = -1;
  pthread_kill(dog.watched, SIGALRM);
  for (int i = 0; i < TRIES && dog.nframes < 0; i++)
    sleep_ns(10000000);
  for (int i = OWN_FRAMES; i < dog.nframes; i++)
    symbol_name(dog.frames[i], where->names[where->count++], WATCHDOG_NAME);
}

/* Counts its own pauses, as a clock continues while the job or the machine is suspended. */
static void *watch(void *unused) {
  static struct where where;
  const int64_t pause_ns = dog.limit_ns / 20 < 100000000 ? dog.limit_ns / 20 : 100000000;
  unsigned beats = dog.beats;
  int64_t quiet_ns = 0;
  (void)unused;
  while (!dog.ends) {
    sleep_ns(pause_ns);
    quiet_ns = dog.beats == beats ? quiet_ns + pause_ns : 0;
    beats = dog.beats;
    if (!dog.ends && quiet_ns > dog.limit_ns) {
      dog.bites = true;
      interrupt(&where);
      dog.hangs(&where);
      break;
    }
  }
  return NULL;
}

int watchdog_start(double limit_s, void (*hangs)(const struct where *where)) {
  struct sigaction action = {.sa_handler = read_stack, .sa_flags = SA_RESTART};
  void *frame;
  backtrace(&frame, 1); /* loads its libraries, which a signal handler must not */
  sigaction(SIGALRM, &action, NULL);
  dog.watched = pthread_self();
  dog.limit_ns = (int64_t)(limit_s * 1e9);
  dog.hangs = hangs;
  dog.ends = false;
  watchdog_beat();
  const int error = pthread_create(&dog.thread, NULL, watch, NULL);
  return error ? failure_set("cannot start the watchdog: %s", strerror(error)) : 0;
}

void watchdog_beat(void) {
  dog.beats++;
  while (dog.bites) /* too late: the job is being ended */
    pause();
}

void watchdog_stop(void) {
  dog.ends = true;
  pthread_join(dog.thread, NULL);
}
