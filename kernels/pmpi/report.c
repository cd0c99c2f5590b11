/* Counts of dispatched calls. */
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAY_BYTES = 400, UNSELECTED = INT_MAX };

/* Calls of one operation that were done in the same way; or of one function that is not selected for. */
struct tally {
  struct tally *next;
  int operation; /* or UNSELECTED */
  int64_t calls, bytes_least, bytes_most;
  char way[]; /* "by METHOD", "not by METHOD (why)", or "MPI_FUNCTION left to the MPI library (why)" */
};

bool report_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally *tallies;

/* Finds or makes a tally, in the order of operations. NULL: no memory. */
static struct tally *find_tally(int operation, const char *way) {
  struct tally **at = &tallies;
  while (*at != NULL &&
         ((*at)->operation < operation || ((*at)->operation == operation && strcmp((*at)->way, way) != 0)))
    at = &(*at)->next;
  if (*at != NULL && (*at)->operation == operation)
    return *at;
  struct tally *made = malloc(sizeof *made + strlen(way) + 1);
  if (made != NULL) {
    *made = (struct tally){.next = *at, .operation = operation, .bytes_least = INT64_MAX};
    strcpy(made->way, way);
    *at = made;
  }
  return made;
}

static void count(int operation, const char *way, int64_t bytes) {
  pthread_mutex_lock(&lock);
  struct tally *tally = find_tally(operation, way);
  if (tally != NULL) {
    tally->calls++;
    tally->bytes_least = bytes < tally->bytes_least ? bytes : tally->bytes_least;
    tally->bytes_most = bytes > tally->bytes_most ? bytes : tally->bytes_most;
  }
  pthread_mutex_unlock(&lock);
}

void report_count(enum swp_operation operation, const char *method, int64_t bytes) {
  char way[WAY_BYTES];
  snprintf(way, sizeof way, "by %s", method != NULL ? method : "vendor");
  count((int)operation, way, bytes);
}

void report_passed(enum swp_operation operation, const char *method, const char *why, int64_t bytes) {
  char way[WAY_BYTES];
  snprintf(way, sizeof way, "not by %s (%s)", method, why);
  count((int)operation, way, bytes);
}

void report_left(const char *function, const char *why) {
  char way[WAY_BYTES];
  snprintf(way, sizeof way, "MPI_%s left to the MPI library (%s)", function, why);
  count(UNSELECTED, way, 0);
}

static void print(const struct tally *tally) {
  if (tally->operation == UNSELECTED)
    fprintf(stderr, "switchpoint: %s: %lld calls\n", tally->way, (long long)tally->calls);
  else
    fprintf(stderr, "switchpoint: %s %s: %lld calls of %lld to %lld bytes\n",
            swp_operation_name(tally->operation), tally->way, (long long)tally->calls,
            (long long)tally->bytes_least, (long long)tally->bytes_most);
}

/* A handler of signals that ends the program may have interrupted the lock's holder. */
static bool locked(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  return pthread_mutex_timedlock(&lock, &until) == 0;
}

void report_end(const swp_table *table) {
  if (!report_on || !locked())
    return;
  report_on = false;
  fprintf(stderr, "switchpoint: %d rules; calls on rank 0:\n", swp_table_rules(table));
  if (tallies == NULL || tallies->operation == UNSELECTED)
    fprintf(stderr, "switchpoint: no call had a rule with a method other than vendor\n");
  while (tallies != NULL) {
    struct tally *next = tallies->next;
    print(tallies);
    free(tallies);
    tallies = next;
  }
  pthread_mutex_unlock(&lock);
}
