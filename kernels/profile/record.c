/* The tallies of this process. Each thread has its own, so that none waits for another. Calls that are short
   and many cost a comparison with one before: the clock is read for some of them. */
#define _POSIX_C_SOURCE 200809L
#include "record.h"

#include "layout.h"
#include "leaving.h"
#include "types.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  TALLIES = 1024,
  FUNCTIONS = 256,
  GROUPS = 512,
  SLOTS = 4 * TALLIES,
  HANDLES = 64,
  MEMOS = 64,
  TYPES = 128,
  DIGITS = 4
};

/* After a block of calls that took less than this on average, one in eight of the next block is timed. */
enum { BLOCK = 1024, TIMED_LEVEL = 3 };
static const double SHORT_S = 10e-6;

atomic_bool record_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what threads share, but for lookups of types */
static struct group *groups;
static struct group others = {.number = -1}; /* the communicators of other ranks than the first GROUPS */
static struct group mixed = {.number = -1};  /* of calls beyond the first TALLIES different ones */
static int keyval = MPI_KEYVAL_INVALID;
static atomic_uint generation = 1; /* of handles of communicators: changes when one is freed */

/* Predefined types, which cannot be freed, by their handles. */
static struct {
  atomic_bool used; /* the rest stays as it is */
  MPI_Datatype type;
  MPI_Count size;
  char name[MPI_MAX_OBJECT_NAME];
} types[TYPES] = {{.name = "derived"}};

/* What a thread has recorded, and what it knows. */
struct thread {
  struct thread *next;
  bool used; /* by a thread that has not ended */
  struct tally tallies[TALLIES + FUNCTIONS];
  atomic_int tally_count;
  struct slot { /* by the hash of all that a tally is looked up by */
    struct tally *tally;
    const char *name;
    const struct group *group;
    int type, rounded;
  } slots[SLOTS];
  struct { /* the communicators seen last, by their handles */
    unsigned generation;
    MPI_Comm comm;
    struct group *group;
  } handles[HANDLES];
  struct memo { /* the calls seen last, by their arguments */
    unsigned generation;
    const char *name;
    MPI_Comm comm;
    MPI_Datatype type;
    int64_t items, bytes;
    struct tally *tally;
    struct group *sampled;
  } memos[MEMOS];
};

static struct thread *threads; /* the newest first */
static __attribute__((tls_model("initial-exec"))) _Thread_local struct thread *own;
static pthread_once_t key_made = PTHREAD_ONCE_INIT;
static pthread_key_t key;

double record_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t scramble(uint64_t value) {
  value = (value ^ value >> 31) * 0x7fb5d329728ea185u;
  return (value ^ value >> 27) * 0x81dadef4bc2dd44du;
}

/* Handles are small numbers, or addresses. */
static unsigned slot_of_handle(uintptr_t handle, unsigned count) {
  return (unsigned)(handle ^ handle >> 4 ^ handle >> 10) % count;
}

/* Returns whether a number is one of those that stand for about 2^level: any period has its share of them. */
static inline bool is_chosen(int64_t number, int level) {
  return level == 0 || (uint64_t)number * 0x9e3779b97f4a7c15u >> (64 - level) == 0;
}

/* A thread has ended: the next one goes on with what it has. */
static void release(void *ended) {
  pthread_mutex_lock(&lock);
  ((struct thread *)ended)->used = false;
  pthread_mutex_unlock(&lock);
}

static void make_key(void) {
  pthread_key_create(&key, release);
}

/* NULL without memory. */
static struct thread *own_thread(void) {
  if (own != NULL)
    return own;
  pthread_once(&key_made, make_key);
  pthread_mutex_lock(&lock);
  struct thread *mine = threads;
  while (mine != NULL && mine->used)
    mine = mine->next;
  if (mine == NULL && (mine = calloc(1, sizeof *mine)) != NULL) {
    mine->next = threads;
    threads = mine;
  }
  if (mine != NULL)
    mine->used = true;
  pthread_mutex_unlock(&lock);
  if (mine != NULL)
    pthread_setspecific(key, mine);
  return own = mine;
}

/* The delete callback of every known communicator: its handle may be given to another. */
static int forget(MPI_Comm comm, int deleted, void *attribute, void *extra) {
  (void)comm, (void)deleted, (void)attribute, (void)extra;
  generation++;
  return MPI_SUCCESS;
}

static uint64_t hash_members(MPI_Comm comm, int procs) {
  uint64_t hash = (uint64_t)procs;
  MPI_Group mine, world;
  int *ranks = calloc(2 * (size_t)procs, sizeof *ranks);
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

/* Finds or makes the group of a communicator, without communication. Intercommunicators, and those with ranks
   outside MPI_COMM_WORLD, have no nodes. */
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
  const bool kept = !leaving_has(comm); /* else its attributes are being deleted */
  if (kept && PMPI_Comm_get_attr(comm, keyval, &known, &found) == MPI_SUCCESS && found)
    return known;
  pthread_mutex_lock(&lock);
  struct group *group = find_group(comm);
  pthread_mutex_unlock(&lock);
  if (group != NULL && kept)
    PMPI_Comm_set_attr(comm, keyval, group); /* which calls `forget` if another thread has set it */
  return group;
}

/* The communicator's group; NULL without memory. That of one that is being freed is not kept. */
static struct group *group_of(struct thread *mine, MPI_Comm comm) {
  const unsigned at = slot_of_handle((uintptr_t)comm, HANDLES), current = generation;
  if (mine->handles[at].generation == current && mine->handles[at].comm == comm)
    return mine->handles[at].group;
  struct group *group = attached_group(comm);
  if (group != NULL && !leaving_has(comm)) {
    mine->handles[at].generation = current;
    mine->handles[at].comm = comm;
    mine->handles[at].group = group;
  }
  return group;
}

bool record_knows(MPI_Comm comm) {
  const unsigned at = slot_of_handle((uintptr_t)comm, HANDLES);
  if (comm == MPI_COMM_NULL)
    return true;
  return own != NULL && own->handles[at].generation == generation && own->handles[at].comm == comm;
}

static int find_type(MPI_Datatype type, int *unused) {
  int at = 1 + (int)slot_of_handle((uintptr_t)type, TYPES - 1);
  for (int probes = 1; types[at].used && probes < TYPES; probes++) {
    if (types[at].type == type)
      return at;
    at = at % (TYPES - 1) + 1;
  }
  *unused = types[at].used ? 0 : at;
  return 0;
}

/* The index of a predefined type, 0 for others, and the bytes of an item. */
static int type_of(MPI_Datatype type, MPI_Count *size) {
  int length, unused = 0;
  bool named;
  int at = find_type(type, &unused);
  if (at > 0) {
    *size = types[at].size;
    return at;
  }
  *size = 0;
  if (PMPI_Type_size_x(type, size) != MPI_SUCCESS || !types_named(type, &named) || !named)
    return 0;
  pthread_mutex_lock(&lock);
  at = find_type(type, &unused); /* another thread may have added it */
  if (at == 0 && unused > 0) {
    at = unused;
    types[at].type = type;
    types[at].size = *size;
    PMPI_Type_get_name(type, types[at].name, &length);
    types[at].used = true;
  }
  pthread_mutex_unlock(&lock);
  return at;
}

/* The bytes' first binary digits: sizes that share them are tallied together. */
static int round_bytes(int64_t bytes) {
  int cut = 0;
  while (bytes >> cut >= 1 << DIGITS)
    cut++;
  return cut << DIGITS | (int)(bytes >> cut);
}

/* NULL: there are as many as `most`. */
static struct tally *find_tally(struct thread *mine, const char *name, const struct group *group, int type,
                                int rounded, int most) {
  uint64_t hash =
      scramble((uintptr_t)name ^ scramble((uintptr_t)group ^ ((uint64_t)type << 16 | (uint64_t)rounded)));
  for (uint64_t at = hash % SLOTS;; at = (at + 1) % SLOTS) {
    struct slot *slot = &mine->slots[at];
    if (slot->tally == NULL) {
      if (mine->tally_count >= most)
        return NULL;
      struct tally *made = &mine->tallies[mine->tally_count];
      *made = (struct tally){.name = name, .group = group, .type = type >= 0 ? types[type].name : ""};
      made->type_index = type;
      made->rounded = rounded;
      *slot = (struct slot){made, name, group, type, rounded};
      mine->tally_count++; /* when all is set, as another thread may end the program */
      return made;
    }
    if (slot->name == name && slot->group == group && slot->type == type && slot->rounded == rounded)
      return slot->tally;
  }
}

/* Where there are too many, that of the function alone, so that its time is known. */
static struct tally *tally_of(struct thread *mine, const char *name, const struct group *group, int type,
                              int rounded) {
  struct tally *found = find_tally(mine, name, group, type, rounded, TALLIES);
  return found != NULL ? found : find_tally(mine, name, &mixed, -1, 0, TALLIES + FUNCTIONS);
}

/* Returns whether a collective of a communicator is one that all ranks keep. */
static bool is_sampled(const struct group *group, int64_t call, int level) {
  return !group->has_threads && is_chosen(call, level);
}

/* Returns whether all collectives of a communicator are this thread's. */
static bool is_owner(struct thread *mine, struct group *group) {
  struct thread *owner = NULL;
  if (!atomic_compare_exchange_strong(&group->owner, &owner, mine) && owner != mine)
    group->has_threads = true;
  return !group->has_threads;
}

/* Keeps about every 2^level-th collective of a communicator, the same ones on all ranks. */
static void sample(struct thread *mine, struct group *group, const struct call *call, double seconds) {
  if (group->owner != mine && !is_owner(mine, group))
    return;
  const int64_t number = group->collectives++;
  if (!call->timed || !is_sampled(group, number, group->level))
    return;
  while (group->samples == SAMPLES && group->level < 30) {
    group->level++;
    int kept = 0;
    for (int i = 0; i < SAMPLES; i++)
      if (is_sampled(group, group->sample[i].call, group->level))
        group->sample[kept++] = group->sample[i];
    group->samples = kept;
    if (!is_sampled(group, number, group->level))
      return;
  }
  if (group->samples < SAMPLES)
    group->sample[group->samples++] = (struct sample){number, call->started, seconds, call->tally};
}

static struct memo *memo_of(struct thread *mine, const char *name, MPI_Comm comm, int64_t items,
                            MPI_Datatype type) {
  const uint64_t mixed =
      (uintptr_t)name ^ (uintptr_t)comm << 3 ^ (uintptr_t)type >> 2 ^ (uint64_t)items * 0x9e3779b97f4a7c15u;
  return &mine->memos[(mixed ^ mixed >> 32 ^ mixed >> 12) % MEMOS];
}

struct call record_begin(const char *name, MPI_Comm comm, int64_t items, MPI_Datatype type) {
  struct call call = {.timed = true};
  struct thread *mine = own;
  if (mine != NULL) {
    const struct memo *memo = memo_of(mine, name, comm, items, type);
    if (memo->name == name && memo->comm == comm && memo->items == items && memo->type == type &&
        memo->generation == generation) {
      call.tally = memo->tally;
      call.group = memo->sampled;
      call.bytes = memo->bytes;
      call.timed = !call.tally->is_short || is_chosen(call.tally->calls, TIMED_LEVEL) ||
                   (call.group != NULL && is_sampled(call.group, call.group->collectives, call.group->level));
    }
  }
  if (call.timed)
    call.started = record_now();
  return call;
}

/* The bytes of a block, or of the mean one. */
static int64_t bytes_of(int64_t items, MPI_Count size, const struct group *group) {
  if (items < OF_ALL)
    return items > 0 ? items * size : 0;
  return group != NULL && group->procs > 0 ? (items - OF_ALL) * size / group->procs : 0;
}

/* Sets the tally of a call, and the communicator whose samples it may join. */
static void look_up(struct thread *mine, struct call *call, const char *name, enum kind kind, MPI_Comm comm,
                    int64_t items, MPI_Datatype type) {
  MPI_Count size = 0;
  const unsigned current = generation;
  struct group *group = comm != MPI_COMM_NULL ? group_of(mine, comm) : NULL;
  const bool has_type = type != MPI_DATATYPE_NULL && (group == NULL || group->nodes > 0);
  const int index = has_type ? type_of(type, &size) : -1;
  call->bytes = bytes_of(items, size, group);
  call->tally = tally_of(mine, name, group, index, round_bytes(call->bytes));
  call->group = kind == COLLECTIVE && group != NULL && group->nodes > 0 ? group : NULL;
  /* Handles of other types, and of what is being freed, may be given to new ones. */
  if (index != 0 && items >= 0 && call->tally != NULL && (group != NULL || comm == MPI_COMM_NULL) &&
      !leaving_has(comm))
    *memo_of(mine, name, comm, items, type) =
        (struct memo){current, name, comm, type, items, call->bytes, call->tally, call->group};
}

static double block_s(const struct tally *tally) {
  const double before_s =
      tally->calls > tally->block_calls ? tally->seconds / (double)(tally->calls - tally->block_calls) : 0;
  const double mean_s = tally->block_timed > 0 ? tally->timed_s / tally->block_timed : before_s;
  return mean_s * tally->block_calls;
}

double record_seconds(const struct tally *tally) {
  return tally->seconds + block_s(tally);
}

static void count(struct tally *tally, int64_t bytes, bool timed, double seconds) {
  tally->calls++;
  tally->bytes += (double)bytes;
  tally->block_calls++;
  if (timed) {
    tally->block_timed++;
    tally->timed_s += seconds;
  }
  if (tally->block_calls == BLOCK) {
    const double took_s = block_s(tally);
    tally->block_calls = tally->block_timed = 0;
    tally->seconds += took_s;
    tally->timed_s = 0;
    tally->is_short = took_s < BLOCK * SHORT_S;
  }
}

void record_end(struct call *call, const char *name, enum kind kind, MPI_Comm comm, int64_t items,
                MPI_Datatype type) {
  const double seconds = call->timed ? record_now() - call->started : 0;
  struct thread *mine = own_thread();
  if (mine == NULL || !record_on) /* another thread ends the program */
    return;
  if (call->tally == NULL)
    look_up(mine, call, name, kind, comm, items, type);
  if (call->tally != NULL)
    count(call->tally, call->bytes, call->timed, seconds);
  if (call->group != NULL)
    sample(mine, call->group, call, seconds);
}

/* Adds the tallies of all threads to those of the first. With the lock held. */
static void merge(void) {
  struct thread *first = threads;
  while (first != NULL && first->next != NULL)
    first = first->next;
  for (struct thread *each = threads; each != first; each = each->next) {
    for (int i = 0; i < each->tally_count; i++) {
      struct tally *from = &each->tallies[i];
      struct tally *to = tally_of(first, from->name, from->group, from->type_index, from->rounded);
      from->merged = to;
      if (to == NULL)
        continue;
      to->seconds = record_seconds(to) + record_seconds(from);
      to->block_calls = 0;
      to->calls += from->calls;
      to->bytes += from->bytes;
    }
  }
  threads = first;
}

bool record_stop(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++; /* a handler of signals that ends the program may have interrupted the lock's holder */
  const bool locked = pthread_mutex_timedlock(&lock, &until) == 0;
  const bool was_on = atomic_exchange(&record_on, false);
  if (was_on)
    merge();
  if (locked)
    pthread_mutex_unlock(&lock);
  return was_on;
}

const struct tally *record_tally(int index) {
  return threads != NULL && index < threads->tally_count ? &threads->tallies[index] : NULL;
}

int record_index(const struct tally *tally) {
  if (tally != NULL && tally->merged != NULL)
    tally = tally->merged;
  if (tally == NULL || threads == NULL || tally < threads->tallies ||
      tally >= threads->tallies + TALLIES + FUNCTIONS)
    return -1;
  return (int)(tally - threads->tallies);
}

const struct group *record_groups(void) {
  return groups;
}

int64_t record_lost(void) {
  int64_t calls = 0;
  const struct tally *tally;
  for (int i = 0; (tally = record_tally(i)) != NULL; i++)
    calls += tally->group == &mixed ? tally->calls : 0;
  return calls;
}
