/* The places of the application's communicators. */
#include "place.h"

#include "device.h"
#include "guard.h"
#include "layout.h"
#include "leaving.h"
#include "persistent.h"
#include "report.h"
#include "startup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

atomic_bool place_on;
_Atomic(struct place *) place_buckets[BUCKETS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, and of changes of buckets */
static struct selectors *all_selectors;
static int keyval = MPI_KEYVAL_INVALID;
static bool ending;

/* In a session without MPI_Init the MPI_Reduce_local of Open MPI 5 crashes. */
static bool can_do(enum swp_operation operation, bool strangers) {
#ifdef OPEN_MPI
  if (strangers)
    return !place_reduces(operation);
#endif
  (void)operation, (void)strangers;
  return true;
}

static void read_rules(enum swp_operation operation, const struct swp_layout *layout, struct rules *rules) {
  const int64_t *changes;
  if (swp_selector_create(startup_table(), operation, layout, &rules->selector) != SWP_SUCCESS)
    startup_abort(swp_error_message());
  if (rules->selector == NULL)
    return;
  int count = swp_selector_changes(rules->selector, &changes);
  for (int i = 0; i < CHANGES; i++)
    rules->changes[i] = i < count ? changes[i] : INT64_MAX;
}

static struct selectors *make_selectors(const struct swp_layout *layout, bool strangers) {
  struct selectors *made = calloc(1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->layout = *layout;
  made->strangers = strangers;
  for (int i = 0; i < COLLECTIVES; i++)
    if (can_do((enum swp_operation)(FIRST_OPERATION + i), strangers))
      read_rules((enum swp_operation)(FIRST_OPERATION + i), layout, &made->list[i]);
  made->next = all_selectors;
  return all_selectors = made;
}

static const struct selectors *find_selectors(const struct swp_layout *layout, bool strangers) {
  for (const struct selectors *known = all_selectors; known != NULL; known = known->next)
    if (known->layout.procs == layout->procs && known->layout.nodes == layout->nodes &&
        known->layout.ppn == layout->ppn && known->layout.alone == layout->alone &&
        known->strangers == strangers)
      return known;
  return make_selectors(layout, strangers);
}

/* Collective, as freeing the application's communicator is. */
static void release(struct place *place) {
  for (int i = 0; i < COLLECTIVES; i++) {
    swp_plan_free(&place->plans[i]);
    swp_plan_free(&place->vendor_plans[i]);
  }
  planned_forget(place);
  alltoallv_forget(place);
  persistent_collect(place, true);
  guard_free(place);
  if (place->own != MPI_COMM_NULL)
    PMPI_Comm_free(&place->own);
  place->selectors = NULL;
}

/* The delete callback of every known communicator's attribute: however that is freed, its place goes too. */
static int forget(MPI_Comm comm, int key, void *attribute, void *extra) {
  struct place *place = attribute;
  (void)comm, (void)key, (void)extra;
  if (!ending) /* else MPI frees what is left */
    release(place);
  atomic_store_explicit(&place->comm, MPI_COMM_NULL, memory_order_release);
  return MPI_SUCCESS;
}

/* A free place in the communicator's bucket. With the lock held. */
static struct place *take_place(MPI_Comm comm) {
  unsigned bucket = place_bucket(comm);
  struct place *first = atomic_load_explicit(&place_buckets[bucket], memory_order_relaxed), *place = first;
  while (place != NULL && atomic_load_explicit(&place->comm, memory_order_acquire) != MPI_COMM_NULL)
    place = place->next;
  if (place == NULL) {
    place = calloc(1, sizeof *place);
    if (place == NULL)
      return NULL;
    atomic_init(&place->comm, MPI_COMM_NULL);
    place->next = first;
    atomic_store_explicit(&place_buckets[bucket], place, memory_order_release);
  }
  place->own = MPI_COMM_NULL;
  place->named_type = MPI_DATATYPE_NULL;
  place->refused = place->device = false;
  place->selectors = NULL;
  place->trials = NULL;
  place->uneven = NULL;
  place->planned = NULL;
  memset(place->promised, 0, sizeof place->promised);
  memset(place->plans, 0, sizeof place->plans);
  memset(place->vendor_plans, 0, sizeof place->vendor_plans);
  memset(place->errors, 0, sizeof place->errors);
  return place;
}

static struct place *add_place(MPI_Comm comm, const struct swp_layout *layout, bool strangers) {
  if (keyval == MPI_KEYVAL_INVALID &&
      PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
    return NULL;
  struct place *place = take_place(comm);
  if (place == NULL || PMPI_Comm_set_attr(comm, keyval, place) != MPI_SUCCESS)
    return NULL;
  PMPI_Comm_rank(comm, &place->rank);
  place->procs = layout->procs;
  if (layout->procs > 0)
    place->selectors = find_selectors(layout, strangers);
  atomic_store_explicit(&place->comm, comm, memory_order_release);
  return place;
}

struct place *place_make(MPI_Comm comm) {
  struct swp_layout layout = {0};
  bool strangers = false;
  int inter = 1;
  if (leaving_has(comm))
    return NULL;
  if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
    return NULL;
  if (!inter && !layout_find(comm, &layout, &strangers))
    startup_abort("cannot find the nodes of a communicator's ranks: no memory, or an MPI call failed");
  pthread_mutex_lock(&lock);
  struct place *place = add_place(comm, &layout, strangers);
  pthread_mutex_unlock(&lock);
  if (place ==
      NULL) /* other ranks may have theirs, and choose a method that this one would not take part in */
    startup_abort("cannot remember a communicator: no memory, or an MPI call failed");
  return place;
}

const char *place_lacks(MPI_Comm comm) {
  if (leaving_has(comm))
    return "the communicator is being freed";
  return atomic_load(&place_on) && place_of(comm) == NULL
             ? "the communicator has ranks of another job, or is between two groups"
             : "the table has no rule for it on these ranks";
}

struct place *place_for(enum swp_operation operation, MPI_Comm comm, const char *function) {
  struct place *place = place_of(comm);
  if (place != NULL && place_has(place, operation))
    return place;
  if (report_on)
    report_left(function, place_lacks(comm));
  return NULL;
}

void place_forget(MPI_Comm comm) {
  if (comm != MPI_COMM_NULL && place_find(comm) != NULL)
    PMPI_Comm_delete_attr(comm, keyval);
}

void place_begin(void) {
  ending = false;
  atomic_store(&place_on, true);
}

void place_end(void) {
  atomic_store(&place_on, false);
  ending = true;
  if (keyval != MPI_KEYVAL_INVALID)
    PMPI_Comm_free_keyval(&keyval);
  for (int i = 0; i < BUCKETS; i++) /* of communicators that were not freed: others may get their handles */
    for (struct place *place = atomic_load(&place_buckets[i]); place != NULL; place = place->next) {
      place->selectors = NULL;
      atomic_store(&place->comm, MPI_COMM_NULL);
    }
  while (all_selectors != NULL) {
    struct selectors *next = all_selectors->next;
    for (int i = 0; i < COLLECTIVES; i++)
      swp_selector_free(&all_selectors->list[i].selector);
    free(all_selectors);
    all_selectors = next;
  }
}

/* Makes a communicator by a split: a duplicate would run the copy callbacks of the application's attributes.
   A failure here is not the application's, and does not reach its error handler. */
static bool split(MPI_Comm comm, int rank, MPI_Comm *own) {
  MPI_Errhandler theirs;
  *own = MPI_COMM_NULL;
  if (PMPI_Comm_get_errhandler(comm, &theirs) != MPI_SUCCESS)
    return false;
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  bool made = PMPI_Comm_split(comm, 0, rank, own) == MPI_SUCCESS;
  PMPI_Comm_set_errhandler(comm, theirs);
  PMPI_Errhandler_free(&theirs);
  if (made)
    PMPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
  return made;
}

bool place_prepare(struct place *place) {
  if (place->own == MPI_COMM_NULL && !place->refused) {
    place->refused = !split(atomic_load(&place->comm), place->rank, &place->own);
    place->device = !place->refused && device_somewhere(place->own);
  }
  return place_refuses(place) == NULL;
}
