/* Started exchanges that forward. */
#include "outstanding.h"

#include <pthread.h>
#include <stdio.h>

atomic_int swp_outstanding_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct exchange_plan *first; /* linked by background.next */

static void unlink_plan(struct exchange_plan **place) {
  *place = (*place)->background.next;
  atomic_fetch_sub_explicit(&swp_outstanding_count, 1, memory_order_relaxed);
}

void swp_outstanding_add(struct exchange_plan *exchange) {
  pthread_mutex_lock(&lock);
  exchange->background.complete = false;
  exchange->background.error = SWP_SUCCESS;
  exchange->background.next = first;
  first = exchange;
  atomic_fetch_add_explicit(&swp_outstanding_count, 1, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
}

void swp_outstanding_take(struct exchange_plan *exchange) {
  pthread_mutex_lock(&lock);
  struct exchange_plan **place = &first;
  while (*place != NULL && *place != exchange)
    place = &(*place)->background.next;
  if (*place != NULL)
    unlink_plan(place);
  pthread_mutex_unlock(&lock);
}

/* A thread that finds another one doing this leaves it to that one. */
void swp_outstanding_progress(void) {
  if (pthread_mutex_trylock(&lock) != 0)
    return;
  for (struct exchange_plan **place = &first; *place != NULL;) {
    struct background *background = &(*place)->background;
    background->error = (*place)->plan.advance(&(*place)->plan, false, &background->complete);
    if (background->error != SWP_SUCCESS) {
      snprintf(background->text, sizeof background->text, "%s", swp_error_message());
      background->mpi_error = swp_error_mpi();
    }
    if (background->complete || background->error != SWP_SUCCESS)
      unlink_plan(place);
    else
      place = &background->next;
  }
  pthread_mutex_unlock(&lock);
}
