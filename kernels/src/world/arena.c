/* Memory that the ranks of a node share. */
#define _GNU_SOURCE
#include "arena.h"

#include "allocate.h"
#include "error.h"
#include "machine.h"
#include "memory_left.h"
#include "switchpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  LEAST_PART_BYTES = 65536,    /* of a segment */
  KEPT_PART_BYTES = 4 * 65536, /* of one that stays for the next plan: for boards, and for bulletins */
  GRANULE_BYTES = 256          /* of a share: lines of A64FX */
};

/* Bytes of every rank's part that a plan has. */
struct taken {
  int64_t offset, bytes;
};

/* A file: a page with its token, then a part for each rank. Taken are the same bytes of all parts. */
struct segment {
  struct segment *next;
  int64_t number; /* the token: equal on all ranks */
  char *memory;
  size_t bytes;
  int64_t header_bytes, part_bytes;
  struct array taken; /* of struct taken, by offset */
};

struct arena {
  atomic_int holders;
  pthread_mutex_t lock; /* a thread may free a plan while another one plans */
  struct segment *first;
};

struct arena *swp_arena_create(void) {
  struct arena *arena = swp_allocate(1, sizeof *arena, NULL);
  if (arena != NULL) {
    atomic_init(&arena->holders, 1);
    pthread_mutex_init(&arena->lock, NULL);
  }
  return arena;
}

struct arena *swp_arena_hold(struct arena *arena) {
  atomic_fetch_add(&arena->holders, 1);
  return arena;
}

static void destroy(struct segment *segment) {
  if (segment->memory != NULL)
    munmap(segment->memory, segment->bytes);
  swp_release(segment->taken.items);
  swp_release(segment);
}

void swp_arena_release(struct arena *arena) {
  if (arena == NULL || atomic_fetch_sub(&arena->holders, 1) > 1)
    return;
  for (struct segment *segment = arena->first, *next; segment != NULL; segment = next) {
    next = segment->next;
    destroy(segment);
  }
  pthread_mutex_destroy(&arena->lock);
  swp_release(arena);
}

/* ---- Segments ---- */

/* What the first rank says of a file that it made. */
struct offer {
  int64_t process, descriptor, token;
  int64_t processes; /* the namespace in which that is its number */
  uint64_t machine;  /* whose nodes may be virtual ones, of ranks on several machines */
  int64_t error;     /* errno; 0: it is made */
};

/* The namespace of processes that this one is in; 0: unknown. */
static int64_t find_namespace(void) {
  struct stat found;
  return stat("/proc/self/ns/pid", &found) == 0 ? (int64_t)found.st_ino : 0;
}

static int refuse(const char *what, int why) {
  return swp_fail(SWP_ERR_NOT_APPLICABLE, "memory of the node cannot be had: %s: %s", what, strerror(why));
}

/* Past this limit of the process a larger file would end it by a signal. */
static bool exceeds_limit(size_t bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

/*
 * Where a control group limits memory, fallocate does not fail: the kernel ends a process. Ranks may be in
 * groups of their own, so each looks before anything is reserved: half is for all else that the ranks will
 * need. Others may reserve at the same time, so it looks again after every step: as much as the
 * whole file takes is kept free.
 */
static int check_left(const struct segment *segment, bool begun) {
  const int64_t left = swp_memory_left(), bytes = (int64_t)segment->bytes;
  if (left < 0)
    return swp_fail(SWP_ERR_NOT_APPLICABLE, "memory of the node cannot be had: what is left of it cannot be "
                                            "read, for lack of a descriptor or of memory");
  if (bytes <= (begun ? left : left / 2))
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_NOT_APPLICABLE,
                  "memory of the node cannot be had: %lld bytes are more than %sthe %lld left",
                  (long long)bytes, begun ? "" : "half of ", (long long)left);
}

/* Reserves room, without which touching memory of a file raises SIGBUS; in pieces, as a signal undoes what it
   interrupts. */
static bool reserve(int file, int64_t offset, int64_t bytes) {
  enum { PIECE_BYTES = 1 << 18 };
  const int64_t end = offset + bytes;
  while (offset < end) {
    const int64_t piece = end - offset < PIECE_BYTES ? end - offset : PIECE_BYTES;
    if (fallocate(file, 0, (off_t)offset, (off_t)piece) == 0)
      offset += piece;
    else if (errno != EINTR)
      return false;
  }
  return true;
}

/* Makes a file with room for the token. */
static int make_file(const struct segment *segment, struct offer *offer) {
  struct timespec now;
  int file = -1;
  if (exceeds_limit(segment->bytes))
    errno = EFBIG;
  else
    file = memfd_create("switchpoint", MFD_CLOEXEC);
  const bool made =
      file >= 0 && ftruncate(file, (off_t)segment->bytes) == 0 && reserve(file, 0, segment->header_bytes);
  const int error = made ? 0 : errno;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *offer = (struct offer){.process = getpid(),
                          .descriptor = file,
                          .token = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
                          .processes = find_namespace(),
                          .machine = swp_machine_hash(),
                          .error = error};
  return file;
}

static int check_offer(const struct offer *offer) {
  return offer->error == 0 ? SWP_SUCCESS : refuse("a file in memory", (int)offer->error);
}

/* Another process has this number on another machine, and where namespaces of processes differ. It may be
   this one: closing a file of its own would end the locks (fcntl) that it has on it, so nothing is opened. */
static int open_file(const struct offer *offer, int *file) {
  char path[64];
  if (swp_machine_hash() != offer->machine)
    return swp_fail(SWP_ERR_NOT_APPLICABLE,
                    "memory of the node cannot be had: its ranks are on several machines");
  if (find_namespace() != offer->processes)
    return swp_fail(SWP_ERR_NOT_APPLICABLE,
                    "memory of the node cannot be had: the ranks are in containers with "
                    "process numbers of their own");
  snprintf(path, sizeof path, "/proc/%" PRId64 "/fd/%" PRId64, offer->process, offer->descriptor);
  *file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return *file >= 0 ? SWP_SUCCESS : refuse("the first rank's cannot be opened", errno);
}

static int map_file(int file, struct segment *segment) {
  struct stat found;
  if (fstat(file, &found) != 0 || found.st_size != (off_t)segment->bytes)
    return refuse("the first rank's is not seen", ESRCH);
  segment->memory = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (segment->memory == MAP_FAILED) {
    segment->memory = NULL;
    return refuse("mmap", errno);
  }
  madvise(segment->memory, segment->bytes, MADV_DONTFORK);
  return SWP_SUCCESS;
}

static int reserve_part(int file, int rank, const struct segment *segment) {
  enum { STEP_BYTES = 1 << 20 };
  const int64_t first = segment->header_bytes + rank * segment->part_bytes;
  for (int64_t at = 0; at < segment->part_bytes; at += STEP_BYTES) {
    const int64_t rest = segment->part_bytes - at;
    const int error = at > 0 ? check_left(segment, true) : SWP_SUCCESS;
    if (error != SWP_SUCCESS)
      return error;
    if (!reserve(file, first + at, rest < STEP_BYTES ? rest : STEP_BYTES))
      return refuse("fallocate", errno);
  }
  return SWP_SUCCESS;
}

static int64_t *token_of(const struct segment *segment) {
  return (int64_t *)(void *)segment->memory;
}

/* The first rank makes a file, the others open it. */
static int attach(MPI_Comm comm, int rank, struct segment *segment) {
  int error = SWP_SUCCESS, file = -1;
  struct offer offer;
  if (rank == 0)
    file = make_file(segment, &offer);
  MPI_TRY(MPI_Bcast(&offer, (int)sizeof offer, MPI_BYTE, 0, comm));
  TRY(check_offer(&offer));
  if (rank != 0)
    error = open_file(&offer, &file);
  if (error == SWP_SUCCESS)
    error = map_file(file, segment);
  if (error == SWP_SUCCESS)
    error = check_left(segment, false);
  if (rank == 0 && error == SWP_SUCCESS)
    *token_of(segment) = offer.token;
  TRY(swp_agree(comm, error));
  if (*token_of(segment) != offer.token)
    error = refuse("the first rank's is not seen", ESRCH);
  TRY(swp_agree(comm, error != SWP_SUCCESS ? error : reserve_part(file, rank, segment)));
  segment->number = offer.token;
done:
  if (file >= 0)
    close(file);
  return error;
}

/* A segment with room for this many bytes of each rank. Collective. Errors, agreed: as swp_arena_take. */
static int make_segment(MPI_Comm comm, int64_t bytes, struct segment **made) {
  int error, rank, procs;
  int64_t page = sysconf(_SC_PAGESIZE), part = bytes > LEAST_PART_BYTES ? bytes : LEAST_PART_BYTES;
  struct segment *segment = swp_allocate(1, sizeof *segment, NULL);
  TRY(swp_agree(comm, segment != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for an arena")));
  MPI_TRY(MPI_Comm_rank(comm, &rank));
  MPI_TRY(MPI_Comm_size(comm, &procs));
  segment->header_bytes = page;
  segment->part_bytes = swp_round_up(part, page);
  segment->bytes = (size_t)(page + procs * segment->part_bytes);
  TRY(attach(comm, rank, segment));
  *made = segment;
  return SWP_SUCCESS;
done:
  if (segment != NULL)
    destroy(segment);
  return error;
}

/* ---- Shares ---- */

/* The first gap of a segment that is as large, or -1; *index: before which share. */
static int64_t find_gap(const struct segment *segment, int64_t bytes, int64_t *index) {
  const struct taken *taken = segment->taken.items;
  int64_t offset = 0;
  for (*index = 0; *index < segment->taken.count; (*index)++) {
    if (taken[*index].offset - offset >= bytes)
      return offset;
    offset = taken[*index].offset + taken[*index].bytes;
  }
  return segment->part_bytes - offset >= bytes ? offset : -1;
}

/* Marks bytes of a segment as taken. False when memory runs out. */
static bool mark(struct segment *segment, int64_t offset, int64_t bytes, int64_t index) {
  if (swp_array_add(&segment->taken, sizeof(struct taken), NULL) == NULL)
    return false;
  struct taken *taken = segment->taken.items;
  memmove(&taken[index + 1], &taken[index], (size_t)(segment->taken.count - 1 - index) * sizeof *taken);
  taken[index] = (struct taken){offset, bytes};
  return true;
}

static void set_share(struct share *share, struct segment *segment, int64_t offset, int64_t bytes) {
  *share =
      (struct share){segment->memory + segment->header_bytes + offset, segment->part_bytes, bytes, segment};
}

/* Takes from a segment that there is. Without room in any the share stays one of none. */
static int take_here(struct arena *arena, int64_t bytes, struct share *share, int64_t place[2]) {
  int error = SWP_SUCCESS;
  pthread_mutex_lock(&arena->lock);
  for (struct segment *segment = arena->first; segment != NULL && share->segment == NULL;
       segment = segment->next) {
    int64_t index, offset = find_gap(segment, bytes, &index);
    if (offset < 0)
      continue;
    if (!mark(segment, offset, bytes, index)) {
      error = swp_fail(SWP_ERR_MEMORY, "no memory for an arena");
      break;
    }
    set_share(share, segment, offset, bytes);
    place[0] = segment->number;
    place[1] = offset;
  }
  pthread_mutex_unlock(&arena->lock);
  return error;
}

/* Ends the segments from which nothing is taken, or only those too large to stay. Another rank may keep one:
   then both find other places. */
static void drop_unused(struct arena *arena, bool only_large) {
  for (struct segment **at = &arena->first; *at != NULL;) {
    struct segment *segment = *at;
    if (segment->taken.count > 0 || (only_large && segment->part_bytes <= KEPT_PART_BYTES)) {
      at = &segment->next;
      continue;
    }
    *at = segment->next;
    destroy(segment);
  }
}

/* Takes a share of a new segment, which becomes the arena's instead of those that were too small: they end
   first, and make_segment waits for all ranks before it looks for memory. */
static int take_anew(struct arena *arena, MPI_Comm comm, int64_t bytes, struct share *share) {
  struct segment *made = NULL;
  pthread_mutex_lock(&arena->lock);
  drop_unused(arena, false);
  pthread_mutex_unlock(&arena->lock);
  int error = make_segment(comm, bytes, &made);
  if (error != SWP_SUCCESS)
    return error;
  error = mark(made, 0, bytes, 0) ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for an arena");
  error = swp_agree(comm, error);
  if (error != SWP_SUCCESS) {
    destroy(made);
    return error;
  }
  pthread_mutex_lock(&arena->lock);
  made->next = arena->first;
  arena->first = made;
  pthread_mutex_unlock(&arena->lock);
  set_share(share, made, 0, bytes);
  return SWP_SUCCESS;
}

/* Finds whether all ranks have the same two numbers. Collective. */
static int compare(MPI_Comm comm, const int64_t mine[2], bool *same) {
  int error = SWP_SUCCESS;
  int64_t ends[4] = {mine[0], -mine[0], mine[1], -mine[1]}, most[4];
  MPI_TRY(MPI_Allreduce(ends, most, 4, MPI_INT64_T, MPI_MAX, comm));
  *same = most[0] == -most[1] && most[2] == -most[3];
done:
  return error;
}

/*
 * That all ranks find the same place free shows that none uses it any more. They do not where a rank has yet
 * to free a plan.
 */
int swp_arena_take(struct arena *arena, MPI_Comm comm, int64_t bytes, struct share *share) {
  int64_t most = 0, place[2] = {0, 0};
  int rank, error = SWP_SUCCESS;
  bool same = false;
  *share = (struct share){0};
  MPI_TRY(MPI_Allreduce(&bytes, &most, 1, MPI_INT64_T, MPI_MAX, comm));
  most = swp_round_up(most, GRANULE_BYTES);
  TRY(swp_agree(comm, take_here(arena, most, share, place)));
  TRY(compare(comm, place, &same));
  if (!same || share->segment == NULL) {
    swp_arena_give(arena, share);
    TRY(take_anew(arena, comm, most, share));
  }
  MPI_TRY(MPI_Comm_rank(comm, &rank));
  memset(swp_share_of(share, rank), 0, (size_t)most);
done:
  if (error != SWP_SUCCESS)
    swp_arena_give(arena, share);
  return error;
}

void swp_arena_give(struct arena *arena, struct share *share) {
  struct segment *segment = share->segment;
  if (segment == NULL)
    return;
  pthread_mutex_lock(&arena->lock);
  struct taken *taken = segment->taken.items;
  int64_t index = 0, offset = share->first - segment->memory - segment->header_bytes;
  while (taken[index].offset != offset)
    index++;
  segment->taken.count--;
  memmove(&taken[index], &taken[index + 1], (size_t)(segment->taken.count - index) * sizeof *taken);
  drop_unused(arena, true);
  pthread_mutex_unlock(&arena->lock);
  *share = (struct share){0};
}
