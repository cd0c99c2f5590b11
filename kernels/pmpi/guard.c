/* The guard. */
#include "guard.h"

#include "order.h"
#include "startup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each 50 calls, one is timed by either; equal methods lose 9 of 10 pairs in 1 % of the cases. */
enum { PERIOD = 50, METHOD_TURN = 12, VENDOR_TURN = 37, PAIRS = 10, LOST_PAIRS = 9 };

static const double LOST_RATIO = 1.05; /* a method that is slower by less is kept */

struct trial {
  struct trial *next;
  enum swp_operation operation;
  int magnitude; /* bits of the number of bytes */
  const char *method;
  int64_t calls;
  int pairs;
  double start_s, by_method_s[PAIRS], by_vendor_s[PAIRS];
  bool settled, dropped;
};

bool guard_on;

static int magnitude_of(int64_t bytes) {
  return bytes > 0 ? 64 - __builtin_clzll((unsigned long long)bytes) : 0;
}

static struct trial *find_trial(struct place *place, enum swp_operation operation, const char *method,
                                int magnitude) {
  for (struct trial *trial = place->trials; trial != NULL; trial = trial->next)
    if (trial->operation == operation && trial->magnitude == magnitude && trial->method == method)
      return trial;
  struct trial *made = calloc(1, sizeof *made);
  if (made == NULL) /* other ranks have theirs */
    startup_abort("no memory for the guard");
  made->next = place->trials;
  made->operation = operation;
  made->magnitude = magnitude;
  made->method = method;
  return place->trials = made;
}

enum guard_turn guard_next(struct place *place, enum swp_operation operation, const char *method,
                           int64_t bytes, struct trial **trial) {
  *trial = find_trial(place, operation, method, magnitude_of(bytes));
  if ((*trial)->dropped)
    return GUARD_DROPPED;
  if ((*trial)->settled)
    return GUARD_GO_ON;
  int64_t turn = (*trial)->calls++ % PERIOD;
  return turn == METHOD_TURN ? GUARD_TIME_METHOD : turn == VENDOR_TURN ? GUARD_TIME_VENDOR : GUARD_GO_ON;
}

void guard_start(struct place *place, struct trial *trial) {
  PMPI_Barrier(place->own); /* earlier waiting is not the method's */
  trial->start_s = PMPI_Wtime();
}

/* Decides on the times of the slowest rank each, which all ranks have. */
static void decide(struct place *place, struct trial *trial) {
  double mine[2 * PAIRS], most[2 * PAIRS], sorted[PAIRS];
  const double *by_method = most, *by_vendor = most + PAIRS;
  int lost = 0;
  memcpy(mine, trial->by_method_s, sizeof trial->by_method_s);
  memcpy(mine + PAIRS, trial->by_vendor_s, sizeof trial->by_vendor_s);
  if (PMPI_Allreduce(mine, most, 2 * PAIRS, MPI_DOUBLE, MPI_MAX, place->own) != MPI_SUCCESS)
    startup_abort("the guard's reduction failed");
  for (int i = 0; i < PAIRS; i++)
    lost += by_method[i] > by_vendor[i];
  double ratio = swp_median(by_method, sorted, PAIRS) / swp_median(by_vendor, sorted, PAIRS);
  trial->dropped = lost >= LOST_PAIRS && ratio > LOST_RATIO;
  trial->settled = true;
  if (trial->dropped && place->rank == 0)
    fprintf(stderr,
            "switchpoint: guard: on %d ranks %s by %s takes %.2f times as long as by the MPI library below "
            "%lld bytes: no longer used\n",
            place->procs, swp_operation_name((int)trial->operation), trial->method, ratio,
            1LL << trial->magnitude);
}

void guard_stop(struct place *place, struct trial *trial, enum guard_turn turn) {
  double time_s = PMPI_Wtime() - trial->start_s;
  if (turn == GUARD_TIME_METHOD) {
    trial->by_method_s[trial->pairs] = time_s;
    return;
  }
  trial->by_vendor_s[trial->pairs++] = time_s;
  if (trial->pairs == PAIRS)
    decide(place, trial);
}

void guard_free(struct place *place) {
  while (place->trials != NULL) {
    struct trial *next = place->trials->next;
    free(place->trials);
    place->trials = next;
  }
}
