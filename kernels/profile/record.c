/* The tallies of this process. A call costs two readings of the clock and a search in a hash table. */
#define _POSIX_C_SOURCE 200809L
#include "record.h"

#include "layout.h"
#include "types.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TALLIES = 1024, GROUPS = 512, SLOTS = 4 * TALLIES, HANDLES = 64, TYPES = 128, DIGITS = 4 };

atomic_bool record_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct tally tallies[TALLIES];
static int tally_count;
static int64_t lost;
static struct group *groups;
static struct group others = {.number = -1}; /* the communicators of other ranks than the first GROUPS */
static int keyval = MPI_KEYVAL_INVALID;

/* The communicators seen last, by their handles; MPI_COMM_NULL: none. */
static struct {
  bool used;
  MPI_Comm comm;
  struct group *group;
} handles[HANDLES];

/* Predefined types, which cannot be freed, by their handles. */
static struct {
  bool used;
  MPI_Datatype type;
  MPI_Count size;
  char name[MPI_MAX_OBJECT_NAME];
} types[TYPES];

/* By the hash of all that a tally is looked up by. */
static struct slot {
  struct tally *tally;
  const char *name;
  const struct group *group;
  int type, rounded;
} slots[SLOTS];

double record_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t scramble(uint64_t value) {
  value = (value ^ value >> 31) * 0x7fb5d329728ea185u;
  return (value ^ value >> 27) * 0x81dadef4bc2dd44du;
}

static unsigned slot_of_handle(uintptr_t handle, unsigned count) {
  return (unsigned)(scramble(handle) >> 40) % count;
}

/* The delete callback of every known communicator: its handle may be given to another. */
static int forget(MPI_Comm comm, int key, void *attribute, void *extra) {
  (void)key, (void)attribute, (void)extra;
  pthread_mutex_lock(&lock);
  unsigned at = slot_of_handle((uintptr_t)comm, HANDLES);
  if (handles[at].used && handles[at].comm == comm)
    handles[at].used = false;
  pthread_mutex_unlock(&lock);
  return MPI_SUCCESS;
}

static uint64_t hash_members(MPI_Comm comm, int procs) {
  uint64_t hash = (uint64_t)procs;
  MPI_Group mine, world;
  int *ranks = malloc(2 * (size_t)procs * sizeof *ranks);
  if (ranks == NULL || PMPI_Comm_group(comm, &mine) != MPI_SUCCESS) {
    free(ranks);
    return 0;
  }
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < procs; i++)
    ranks[i] = i;
  PMPI_Group_translate_ranks(mine, procs, ranks, world, ranks + procs);
  for (int i = 0; i < procs; i++)
    hash = scramble(hash ^ (uint64_t)(uint32_t)ranks[procs + i]);
  PMPI_Group_free(&world);
  PMPI_Group_free(&mine);
  free(ranks);
  return hash;
}

/* Without communication. Intercommunicators, and those with ranks outside MPI_COMM_WORLD, have no nodes. */
static struct group *find_group(MPI_Comm comm) {
  struct swp_layout layout = {0};
  bool strangers = false;
  int inter = 0, procs = 0, count = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, &procs);
  if (inter || !layout_find(comm, &layout, &strangers) || strangers)
    layout.nodes = layout.ppn = 0;
  uint64_t members = layout.nodes > 0 ? hash_members(comm, procs) : 0;
  for (struct group *known = groups; known != NULL; known = known->next, count++)
    if (known->members == members && known->procs == procs)
      return known;
  if (count == GROUPS)
    return &others;
  struct group *made = calloc(1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->next = groups;
  made->members = members;
  made->number = count;
  made->procs = procs;
  made->nodes = layout.nodes;
  made->ppn = layout.ppn;
  return groups = made;
}

/* The group in the communicator's attribute, which is set first. The lock is not held: MPI may call back. */
static struct group *attached_group(MPI_Comm comm) {
  void *known = NULL;
  int found = 0;
  pthread_mutex_lock(&lock);
  if (keyval == MPI_KEYVAL_INVALID)
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
  pthread_mutex_unlock(&lock);
  if (PMPI_Comm_get_attr(comm, keyval, &known, &found) == MPI_SUCCESS && found)
    return known;
  pthread_mutex_lock(&lock);
  struct group *group = find_group(comm);
  pthread_mutex_unlock(&lock);
  if (group != NULL)
    PMPI_Comm_set_attr(comm, keyval, group); /* which calls `forget` if another thread has set it */
  return group;
}

/* The communicator's group; NULL without memory. The lock is held, but not while MPI is asked. */
static struct group *group_of(MPI_Comm comm) {
  const unsigned at = slot_of_handle((uintptr_t)comm, HANDLES);
  if (handles[at].used && handles[at].comm == comm)
    return handles[at].group;
  pthread_mutex_unlock(&lock);
  struct group *group = attached_group(comm);
  pthread_mutex_lock(&lock);
  if (group != NULL) {
    handles[at].used = true;
    handles[at].comm = comm;
    handles[at].group = group;
  }
  return group;
}

/* The index of a predefined type, 0 for others, and the bytes of an item. With the lock held. */
static int type_of(MPI_Datatype type, MPI_Count *size) {
  int length, at = 1, probes = 1;
  bool named;
  at += (int)slot_of_handle((uintptr_t)type, TYPES - 1);
  for (; types[at].used && probes < TYPES; probes++) {
    if (types[at].type == type) {
      *size = types[at].size;
      return at;
    }
    at = at % (TYPES - 1) + 1;
  }
  *size = 0;
  strcpy(types[0].name, "derived");
  if (PMPI_Type_size_x(type, size) != MPI_SUCCESS || !types_named(type, &named) || !named || types[at].used)
    return 0;
  types[at].used = true;
  types[at].type = type;
  types[at].size = *size;
  PMPI_Type_get_name(type, types[at].name, &length);
  return at;
}

/* The bytes' first binary digits: sizes that share them are tallied together. */
static int round_bytes(int64_t bytes) {
  int cut = 0;
  while (bytes >> cut >= 1 << DIGITS)
    cut++;
  return cut << DIGITS | (int)(bytes >> cut);
}

/* NULL: there are too many. */
static struct tally *find_tally(const char *name, struct group *group, int type, int rounded) {
  uint64_t hash =
      scramble((uintptr_t)name ^ scramble((uintptr_t)group ^ ((uint64_t)type << 16 | (uint64_t)rounded)));
  for (uint64_t at = hash % SLOTS;; at = (at + 1) % SLOTS) {
    struct slot *slot = &slots[at];
    if (slot->tally == NULL) {
      if (tally_count == TALLIES)
        return NULL;
      *slot = (struct slot){&tallies[tally_count++], name, group, type, rounded};
      slot->tally->name = name;
      slot->tally->group = group;
      strcpy(slot->tally->type, type >= 0 ? types[type].name : "");
      return slot->tally;
    }
    if (slot->name == name && slot->group == group && slot->type == type && slot->rounded == rounded)
      return slot->tally;
  }
}

/* Keeps about every 2^level-th collective of a communicator, the same ones on all ranks. */
static void sample(struct group *group, const struct tally *tally, double started, double seconds) {
  if (group->collectives == 0)
    group->thread = pthread_self();
  group->has_threads |= !pthread_equal(group->thread, pthread_self());
  if (group->has_threads) {
    group->samples = 0;
    return;
  }
  int64_t call = group->collectives++;
  const uint64_t scrambled = scramble((uint64_t)call + 1) >> 20;
  if ((scrambled & ((1u << group->level) - 1)) != 0)
    return;
  while (group->samples == SAMPLES && group->level < 30) {
    const uint64_t mask = (1u << ++group->level) - 1;
    int kept = 0;
    for (int i = 0; i < SAMPLES; i++)
      if ((scramble((uint64_t)group->sample[i].call + 1) >> 20 & mask) == 0)
        group->sample[kept++] = group->sample[i];
    group->samples = kept;
    if ((scrambled & mask) != 0)
      return;
  }
  if (group->samples < SAMPLES)
    group->sample[group->samples++] = (struct sample){call, started, seconds, tally};
}

void record_call(const char *name, enum kind kind, MPI_Comm comm, int64_t items, MPI_Datatype type,
                 double started, double seconds) {
  MPI_Count size = 0;
  pthread_mutex_lock(&lock);
  struct group *group = comm != MPI_COMM_NULL ? group_of(comm) : NULL;
  if (!record_on) { /* another thread ends the program */
    pthread_mutex_unlock(&lock);
    return;
  }
  const bool has_type = type != MPI_DATATYPE_NULL && (group == NULL || group->nodes > 0);
  int index = has_type ? type_of(type, &size) : -1;
  int64_t bytes = items > 0 ? items * size : 0;
  struct tally *tally = find_tally(name, group, index, round_bytes(bytes));
  if (tally == NULL) {
    lost++;
  } else {
    tally->calls++;
    tally->bytes += (double)bytes;
    tally->seconds += seconds;
  }
  if (kind == COLLECTIVE && group != NULL && group->nodes > 0)
    sample(group, tally, started, seconds);
  pthread_mutex_unlock(&lock);
}

bool record_stop(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++; /* a handler of signals that ends the program may have interrupted the lock's holder */
  const bool locked = pthread_mutex_timedlock(&lock, &until) == 0;
  const bool was_on = atomic_exchange(&record_on, false);
  if (locked)
    pthread_mutex_unlock(&lock);
  return was_on;
}

const struct tally *record_tally(int index) {
  return index < tally_count ? &tallies[index] : NULL;
}

const struct group *record_groups(void) {
  return groups;
}

int64_t record_lost(void) {
  return lost;
}
