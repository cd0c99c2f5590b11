/* Persistent collectives. */
#define _GNU_SOURCE
#include "persistent.h"

#include "report.h"
#include "self.h"
#include "startup.h"
#include "types.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MASK_BITS = 64 };

struct persistent {
  struct persistent *next; /* the one made before */
  struct place *place;     /* NULL: the communicator was freed */
  MPI_Request request;
  int tag;
  int procs;                 /* as many as lists of the call have */
  struct repeated_call call; /* its `make` is NULL: an exchange, by the members below */
  struct planned *planned;
  const void *send;
  void *recv;
  bool active, freed;
  int error; /* of the last execution, until a call that completes the request returns it */
};

atomic_int persistent_active, persistent_failed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct persistent *all;
static MPI_Comm self;        /* by which exchanges signal completion */
static bool used[SELF_TAGS]; /* the tags of all that live */
static int last_tag, living;
static int handling; /* error handlers that run, within each other, of one thread at a time */
static pthread_t handler;

/* Two that live at the same time never share one, or the one would complete when the other does. */
static int take_tag(void) {
  if (living == SELF_TAGS) /* several threads found the last one free */
    startup_abort("too many persistent requests at the same time: over 32767");
  do
    last_tag = (last_tag + 1) % SELF_TAGS;
  while (used[last_tag]);
  used[last_tag] = true;
  living++;
  return last_tag;
}

static void release_tag(int tag) {
  used[tag] = false;
  living--;
}

/* Copies what is given. */
static int make(const struct persistent *given, MPI_Request *request) {
  struct persistent *new = malloc(sizeof *new);
  if (new == NULL)
    startup_abort("no memory for a persistent request");
  pthread_mutex_lock(&lock);
  *new = *given;
  new->tag = take_tag();
  int error = self_find(&self);
  if (error == MPI_SUCCESS)
    error = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, new->tag, self, &new->request);
  if (error != MPI_SUCCESS)
    startup_abort("cannot make a persistent request to the process itself: no memory, or an MPI call failed");
  new->next = all;
  all = new;
  pthread_mutex_unlock(&lock);
  *request = new->request;
  return error;
}

int persistent_make(struct place *place, struct planned *planned, const void *send, void *recv,
                    MPI_Request *request) {
  const struct persistent given = {.place = place, .planned = planned, .send = send, .recv = recv};
  return make(&given, request);
}

/* MPI_DATATYPE_NULL has nothing to keep. */
static bool is_kept(MPI_Datatype type) {
  bool named;
  return type != MPI_DATATYPE_NULL && types_named(type, &named) && !named;
}

static bool keep(MPI_Datatype *type) {
  return !is_kept(*type) || PMPI_Type_dup(*type, type) == MPI_SUCCESS;
}

/* MPICH allows any type for a block of nothing. */
static bool keep_types(struct part *part, int procs) {
  if (part->types == NULL)
    return keep(&part->type);
  MPI_Datatype *types = malloc((size_t)procs * sizeof *types);
  bool kept = types != NULL;
  for (int i = 0; i < procs && kept; i++) {
    types[i] = part_count(part, i) != 0 ? part->types[i] : MPI_BYTE;
    kept = keep(&types[i]);
  }
  part->types = types;
  return kept;
}

static void free_types(struct part *part, int procs) {
  for (int i = 0; i < (part->types != NULL ? procs : 1); i++) {
    MPI_Datatype type = part->types != NULL ? part->types[i] : part->type;
    if (is_kept(type))
      PMPI_Type_free(&type);
  }
  free((void *)part->types);
}

int persistent_repeat(struct place *place, const struct repeated_call *call, MPI_Request *request) {
  struct persistent given = {.place = place, .call = *call, .procs = place->procs};
  if (!keep_types(&given.call.send, given.procs) ||
      !keep_types(&given.call.recv, given.procs)) /* the other ranks have their requests */
    startup_abort("no memory for the types of a persistent request");
  return make(&given, request);
}

/* Returns whether a function is a Fortran interface of the MPI library. */
static bool is_fortran(const void *caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
    return false;
  const char *slash = strrchr(info.dli_fname, '/');
  const char *name = slash != NULL ? slash + 1 : info.dli_fname;
  return strncmp(name, "libmpi", strlen("libmpi")) == 0 && strstr(name, "fort") != NULL;
}

const char *persistent_refuses(const void *caller) {
  if (is_fortran(caller))
    return "made in Fortran, which starts and waits without being seen";
  pthread_mutex_lock(&lock);
  const bool full = living == SELF_TAGS;
  pthread_mutex_unlock(&lock);
  return full ? "as many other requests live as there are tags for" : NULL;
}

/* Where the pointer to the request's is. With the lock held. */
static struct persistent **find(MPI_Request request) {
  struct persistent **at = &all;
  while (*at != NULL && ((*at)->freed || (*at)->request != request))
    at = &(*at)->next;
  return at;
}

/* Whose error handler is called. */
static MPI_Comm comm_of(const struct persistent *its) {
  return its->place != NULL ? atomic_load(&its->place->comm) : MPI_COMM_WORLD;
}

/* Both without the lock, as they may wait for other ranks. */
static int start_exchange(struct persistent *its) {
  int error = planned_start(its->planned, its->send, its->recv);
  if (error == MPI_SUCCESS)
    error = PMPI_Start(&its->request);
  if (report_on)
    report_count(SWP_EXCHANGE, planned_method(its->planned), planned_bytes(its->planned));
  if (error != MPI_SUCCESS) {
    PMPI_Comm_call_errhandler(comm_of(its), error);
    return error;
  }
  pthread_mutex_lock(&lock);
  its->active = true;
  atomic_fetch_add(&persistent_active, 1);
  pthread_mutex_unlock(&lock);
  return MPI_SUCCESS;
}

static int repeat(struct persistent *its) {
  if (its->place == NULL)
    startup_abort("a persistent collective is started after its communicator was freed: free its request "
                  "first, or omit swp_started_together");
  int error = its->call.make(&its->call);
  if (error == MPI_SUCCESS)
    error = PMPI_Start(&its->request);
  if (error == MPI_SUCCESS)
    error = PMPI_Send(NULL, 0, MPI_BYTE, 0, its->tag, self);
  return error;
}

bool persistent_start(MPI_Request request, int *result) {
  pthread_mutex_lock(&lock);
  struct persistent *known = *find(request);
  pthread_mutex_unlock(&lock);
  if (known != NULL)
    *result = known->call.make != NULL ? repeat(known) : start_exchange(known);
  return known != NULL;
}

/* With the lock held. */
static int take_error(struct persistent *its) {
  const int error = its->error;
  its->error = MPI_SUCCESS;
  if (error != MPI_SUCCESS)
    atomic_fetch_sub(&persistent_failed, 1);
  return error;
}

/* Returns whether a call has completed a persistent request: MPICH's MPI_Waitall stops at one that failed. To
   ask completes it in MPICH 5, and a wait still returns. */
static bool is_inactive(MPI_Request request) {
  MPI_Status status;
  int done;
  return PMPI_Request_get_status(request, &done, &status) == MPI_SUCCESS && done &&
         status.MPI_SOURCE == MPI_ANY_SOURCE; /* else of the message */
}

/* With the lock held. */
static bool is_handled_elsewhere(void) {
  return handling > 0 && !pthread_equal(handler, pthread_self());
}

int persistent_result(MPI_Request request) {
  pthread_mutex_lock(&lock);
  while (is_handled_elsewhere()) { /* then the program may free the communicator */
    pthread_mutex_unlock(&lock);
    sched_yield();
    pthread_mutex_lock(&lock);
  }
  struct persistent *known = *find(request);
  const bool failed = known != NULL && known->error != MPI_SUCCESS;
  const int error = failed && is_inactive(request) ? take_error(known) : MPI_SUCCESS;
  pthread_mutex_unlock(&lock);
  return error;
}

static void free_repeated(struct persistent *its) {
  free_types(&its->call.send, its->procs);
  free_types(&its->call.recv, its->procs);
  free(its);
}

/* An exchange is freed when all ranks have freed its request. */
void persistent_forget(MPI_Request request) {
  pthread_mutex_lock(&lock);
  struct persistent **at = find(request), *known = *at;
  const bool repeats = known != NULL && known->call.make != NULL;
  if (repeats) {
    *at = known->next;
    release_tag(known->tag);
  } else if (known != NULL) {
    known->freed = true;
    take_error(known);
  }
  pthread_mutex_unlock(&lock);
  if (repeats)
    free_repeated(known);
}

/* With the lock held. */
static void complete(struct persistent *its, int error) {
  if (error != MPI_SUCCESS && !its->freed) { /* else no call will complete it */
    its->error = error;
    atomic_fetch_add(&persistent_failed, 1);
  }
  its->active = false;
  atomic_fetch_sub(&persistent_active, 1);
  PMPI_Send(NULL, 0, MPI_BYTE, 0, its->tag, self);
}

/* Progresses all, up to one that fails: returns its error, which the caller handles, with its communicator. A
   thread that finds another one doing either leaves it to that one. */
static int progress(MPI_Comm *comm) {
  int error = MPI_SUCCESS;
  if (pthread_mutex_trylock(&lock) != 0)
    return MPI_SUCCESS;
  struct persistent *next = is_handled_elsewhere() ? NULL : all;
  for (; next != NULL && error == MPI_SUCCESS; next = next->next) {
    bool done = false;
    if (!next->active)
      continue;
    error = planned_test(next->planned, &done);
    if (error != MPI_SUCCESS)
      *comm = comm_of(next);
    if (error != MPI_SUCCESS || done)
      complete(next, error);
  }
  if (error != MPI_SUCCESS) {
    handling++;
    handler = pthread_self();
  }
  pthread_mutex_unlock(&lock);
  return error;
}

/* The handler may end the job, and other ranks may wait for this one before it completes the request. It may
   also call MPI. */
void persistent_progress(void) {
  MPI_Comm comm;
  int error;
  while ((error = progress(&comm)) != MPI_SUCCESS) {
    PMPI_Comm_call_errhandler(comm, error);
    pthread_mutex_lock(&lock);
    handling--;
    pthread_mutex_unlock(&lock);
  }
}

static bool is_exchange_on(const struct persistent *its, const struct place *place) {
  return its->place == place && its->call.make == NULL;
}

/* Sets bits for the exchanges on the place, after the first `skip`, that this rank has freed. Returns how
   many. */
static int read_mask(const struct place *place, int skip, uint64_t *mask) {
  int count = 0;
  *mask = 0;
  pthread_mutex_lock(&lock);
  for (const struct persistent *next = all; next != NULL && count < MASK_BITS; next = next->next)
    if (is_exchange_on(next, place) && skip-- <= 0)
      *mask |= (uint64_t)(next->freed && !next->active) << count++;
  pthread_mutex_unlock(&lock);
  return count;
}

/* Removes those whose bits are set, in their order. */
static struct persistent *take(const struct place *place, int skip, uint64_t mask) {
  struct persistent *taken = NULL, **end = &taken;
  pthread_mutex_lock(&lock);
  for (struct persistent **at = &all; *at != NULL && mask != 0;) {
    struct persistent *next = *at;
    bool goes = false;
    if (is_exchange_on(next, place) && skip-- <= 0) {
      goes = (mask & 1) != 0;
      mask >>= 1;
    }
    if (goes) {
      *at = next->next;
      release_tag(next->tag);
      next->next = NULL;
      *end = next;
      end = &next->next;
    } else {
      at = &next->next;
    }
  }
  pthread_mutex_unlock(&lock);
  return taken;
}

static void free_all(struct persistent *list) {
  while (list != NULL) {
    struct persistent *next = list->next;
    planned_free(list->planned);
    free(list);
    list = next;
  }
}

/* The lock is not held while ranks wait for each other: threads do that on several communicators at once. */
void persistent_collect(struct place *place, bool leave) {
  uint64_t mask, everywhere;
  for (int count, skip = 0; (count = read_mask(place, skip, &mask)) > 0;) {
    PMPI_Allreduce(&mask, &everywhere, 1, MPI_UINT64_T, MPI_BAND, place->own);
    free_all(take(place, skip, everywhere));
    skip += count - __builtin_popcountll(everywhere);
  }
  pthread_mutex_lock(&lock);
  for (struct persistent *next = all; leave && next != NULL; next = next->next)
    if (next->place == place)
      next->place = NULL;
  pthread_mutex_unlock(&lock);
}
