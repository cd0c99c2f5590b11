/* Counts of dispatched calls. */
#include "report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls of one operation that were done in the same way. */
struct tally {
  struct tally *next;
  enum swp_operation operation;
  int64_t calls, bytes_least, bytes_most;
  char way[]; /* "by METHOD", or "not by METHOD (why)" */
};

enum { WAY_BYTES = 400 };

bool report_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally *tallies;

/* In the order of operations. NULL: no memory. */
static struct tally *find_tally(enum swp_operation operation, const char *way) {
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

static void count(enum swp_operation operation, const char *way, int64_t bytes) {
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
  count(operation, way, bytes);
}

void report_passed(enum swp_operation operation, const char *method, const char *why, int64_t bytes) {
  char way[WAY_BYTES];
  snprintf(way, sizeof way, "not by %s (%s)", method, why);
  count(operation, way, bytes);
}

void report_end(const swp_table *table) {
  if (!report_on)
    return;
  fprintf(stderr, "switchpoint: %d rules; calls on rank 0 of operations with a rule:\n",
          swp_table_rules(table));
  if (tallies == NULL)
    fprintf(stderr, "switchpoint: no call had a rule with a method other than vendor\n");
  while (tallies != NULL) {
    struct tally *next = tallies->next;
    fprintf(stderr, "switchpoint: %s %s: %lld calls of %lld to %lld bytes\n",
            swp_operation_name((int)tallies->operation), tallies->way, (long long)tallies->calls,
            (long long)tallies->bytes_least, (long long)tallies->bytes_most);
    free(tallies);
    tallies = next;
  }
  report_on = false;
}
