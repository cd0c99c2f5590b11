/*
 * swpbench probe: parametrised round trips alone, in floods, delayed, synchronous and by several pairs at
 * once; floods of all ranks; late receives; copying and reducing in memory; a nonblocking barrier and a fence
 * of all ranks. One probe record each (docs/reference/benchfile.md).
 */
#include "parameters.h"

#include "clock.h"
#include "error.h"
#include "hang.h"
#include "launch.h"
#include "pairs.h"
#include "precision.h"

#include <stdlib.h>
#include <string.h>

enum { FLOOD = 16, WARM_UP = 2, WINDOW_BYTES = 64, PUT = 0, SUM = 1 };

static const int64_t SIZE_MOST = INT64_C(1) << 30;
static const int64_t IN_MEMORY_BYTES = INT64_C(1) << 22; /* the least that a sample of the memory moves */

struct probing {
  const struct team *team;
  struct launch launch;
  double *seconds; /* of a probe's samples */
  int samples;
  struct node_pairs near; /* on rank 0's node */
};

struct probed {
  const char *quantity, *scope;
  int pairs, messages;
  double delay_s;
  int64_t size_bytes;
};

/* A sign of life, with what is measured next. Ranks that take no part wait for those that do. */
static void begin(const struct probed *probed, bool takes_part) {
  hang_next(takes_part ? "probe of" : NULL, probed->quantity, probed->size_bytes);
}

/* Writes the record, unless some rank failed. Collective. */
static int keep(struct probing *probing, const struct probed *probed, int status) {
  if (team_agree(probing->team, status))
    return -1;
  if (probing->team->rank == 0) {
    struct json json;
    json_begin(&json, "probe");
    json_string(&json, "quantity", probed->quantity);
    json_string(&json, "scope", probed->scope);
    json_int(&json, "pairs", probed->pairs);
    json_int(&json, "messages", probed->messages);
    json_double(&json, "delay_s", probed->delay_s);
    json_int(&json, "size_bytes", probed->size_bytes);
    json_doubles(&json, "samples_s", probing->seconds, sizeof *probing->seconds, probing->samples);
    status = launch_write(&probing->launch, &json, probing->samples);
  }
  return team_agree(probing->team, status);
}

static int round_trips(struct probing *probing, const struct pairs *pairs, const struct trip *trip) {
  const struct probed probed = {.quantity = trip->mutual        ? "mutual"
                                            : trip->synchronous ? "prtt_synchronous"
                                                                : "prtt",
                                .scope = pairs->scope,
                                .pairs = pairs->count,
                                .messages = trip->messages,
                                .delay_s = (double)trip->delay_ns * 1e-9,
                                .size_bytes = trip->size_bytes};
  begin(&probed, pairs->partner >= 0);
  return keep(probing, &probed,
              pairs_round_trips(pairs, &probing->launch.sync, trip, probing->samples, probing->seconds));
}

/* One and a half round trips, the same on every rank: a message sent has arrived by then. */
static int64_t long_enough_ns(const struct probing *probing) {
  return (int64_t)(1.5e9 * median_interval(probing->seconds, probing->samples).median) + 1;
}

static int late_receives(struct probing *probing, const struct pairs *pairs, int64_t size_bytes,
                         int64_t delay_ns) {
  const struct probed probed = {
      .quantity = "receive", .scope = pairs->scope, .pairs = 1, .messages = 1, .size_bytes = size_bytes};
  bool ahead;
  begin(&probed, pairs->partner >= 0);
  int status = pairs_receives(pairs, &probing->launch.sync, size_bytes, delay_ns, probing->samples,
                              probing->seconds, &ahead);
  if (!ahead) /* the message waits for its receiver: such a call does not measure overhead */
    return team_agree(probing->team, status);
  return keep(probing, &probed, status);
}

/* All probes of one pair. */
static int probe_pair(struct probing *probing, const struct pairs *pairs, int64_t size_bytes) {
  struct trip trip = {.messages = 1, .size_bytes = size_bytes};
  if (round_trips(probing, pairs, &trip))
    return -1;
  const int64_t delay_ns = long_enough_ns(probing);
  if (late_receives(probing, pairs, size_bytes, delay_ns))
    return -1;
  trip.synchronous = true;
  if (round_trips(probing, pairs, &trip))
    return -1;
  trip = (struct trip){.messages = FLOOD, .size_bytes = size_bytes};
  if (round_trips(probing, pairs, &trip))
    return -1;
  trip.delay_ns = delay_ns;
  return round_trips(probing, pairs, &trip);
}

/* The time of further messages while all ranks of a node send and receive: the load of an exchange. */
static int probe_load(struct probing *probing, const struct pairs *pairs, int64_t size_bytes) {
  const struct trip one = {.messages = 1, .size_bytes = size_bytes, .mutual = true};
  const struct trip flood = {.messages = FLOOD, .size_bytes = size_bytes, .mutual = true};
  if (pairs->count == 0)
    return 0;
  return round_trips(probing, pairs, &one) ? -1 : round_trips(probing, pairs, &flood);
}

/* 2, 3, 4, 6, 8, 12, … pairs of the ranks of two nodes, and all of them. */
static int probe_several(struct probing *probing, int64_t size_bytes) {
  const struct trip trip = {.messages = 1, .size_bytes = size_bytes};
  struct pairs all = pairs_between_nodes(probing->team, probing->team->ppn);
  int most = all.initiates;
  team_allreduce(probing->team, &most, 1, MPI_INT, MPI_SUM);
  all.count = most;
  for (int count = 2, even = 1; count <= most; even = !even) {
    const struct pairs pairs = pairs_between_nodes(probing->team, count);
    if (round_trips(probing, &pairs, &trip))
      return -1;
    if (count == most)
      break;
    const int next = even ? count + count / 2 : count / 3 * 4;
    count = next < most ? next : most;
  }
  return probe_load(probing, &all, size_bytes);
}

/* ---- In memory ---- */

/* Two large regions; each repetition uses other bytes of them. */
struct regions {
  char *from, *to;
  int64_t size_bytes, span, times;
};

static void copy(const struct regions *in) {
  for (int64_t t = 0; t < in->times; t++)
    memcpy(in->to + t * in->span, in->from + t * in->span, (size_t)in->size_bytes);
}

static void reduce(const struct regions *in) {
  for (int64_t t = 0; t < in->times; t++)
    MPI_Reduce_local(in->from + t * in->span, in->to + t * in->span, (int)(in->size_bytes / 8), MPI_DOUBLE,
                     MPI_SUM);
}

static const struct in_memory {
  const char *quantity;
  int64_t unit_bytes; /* sizes are multiples of it */
  void (*repeat)(const struct regions *in);
} in_memory[] = {{"copy", 1, copy}, {"reduce", 8, reduce}};

/* Repeats it often enough for the clock, on rank 0, which signals the others after each sample that it goes
   on. */
static void time_in_memory(struct probing *probing, const struct in_memory *what, int64_t size_bytes) {
  const bool times = probing->team->rank == 0;
  struct regions in = {.size_bytes = size_bytes, .span = (size_bytes + 63) / 64 * 64};
  if (times) {
    in.times = (IN_MEMORY_BYTES + in.span - 1) / in.span;
    in.from = allocate_zeros((size_t)(in.span * in.times));
    in.to = allocate_zeros((size_t)(in.span * in.times));
  }
  for (int s = -1; s < probing->samples; s++) {
    const int64_t begin_ns = clock_ns();
    what->repeat(&in);
    if (times && s >= 0)
      probing->seconds[s] = (double)(clock_ns() - begin_ns) * 1e-9 / (double)in.times;
    team_bcast(probing->team, &s, 1, MPI_INT);
    hang_beat();
  }
  free(in.from);
  free(in.to);
}

static int probe_memory(struct probing *probing, int64_t size_bytes) {
  for (size_t i = 0; i < sizeof in_memory / sizeof in_memory[0]; i++) {
    const struct in_memory *what = &in_memory[i];
    if (size_bytes % what->unit_bytes != 0)
      continue;
    const struct probed probed = {
        .quantity = what->quantity, .scope = "", .pairs = 1, .messages = 1, .size_bytes = size_bytes};
    begin(&probed, true);
    time_in_memory(probing, what, size_bytes);
    if (keep(probing, &probed, 0))
      return -1;
  }
  return 0;
}

static int probe_size(struct probing *probing, int64_t size_bytes) {
  const struct node_pairs *near = &probing->near;
  if (probe_memory(probing, size_bytes))
    return -1;
  if (near->on_socket.count && probe_pair(probing, &near->on_socket, size_bytes))
    return -1;
  if (near->on_node.count && probe_pair(probing, &near->on_node, size_bytes))
    return -1;
  if (probe_load(probing, &near->all, size_bytes))
    return -1;
  if (probing->team->nodes == 1)
    return 0;
  const struct pairs off_node = pairs_between_nodes(probing->team, 1);
  return probe_pair(probing, &off_node, size_bytes) ? -1 : probe_several(probing, size_bytes);
}

/* ---- All ranks at once ---- */

/* Seconds from a common start, on every rank the slowest's. */
static void time_together(struct sync *sync, void (*once)(const struct team *team, MPI_Win window),
                          MPI_Win window, int samples, double *seconds) {
  sync_barrier(sync->team);
  sync_prepare(sync);
  for (int s = -WARM_UP; s < samples; s++) {
    hang_beat();
    sync->scheme->start(sync);
    const int64_t begin_ns = clock_ns();
    once(sync->team, window);
    if (s >= 0)
      seconds[s] = (double)(clock_ns() - begin_ns) * 1e-9;
  }
  team_allreduce(sync->team, seconds, samples, MPI_DOUBLE, MPI_MAX);
}

static void barrier_once(const struct team *team, MPI_Win window) {
  MPI_Request request;
  (void)window;
  MPI_Ibarrier(team->comm, &request);
  team_wait(team, 1, &request);
}

static bool time_barriers(struct sync *sync, int samples, double *seconds) {
  time_together(sync, barrier_once, MPI_WIN_NULL, samples, seconds);
  return true;
}

static void fence_once(const struct team *team, MPI_Win window) {
  (void)team;
  MPI_Win_fence(0, window);
}

/* The ways to create a window. false: not available to these ranks. */
static bool allocated(const struct team *team, int **cells, MPI_Win *window) {
  return MPI_Win_allocate(WINDOW_BYTES, sizeof(int), MPI_INFO_NULL, team->comm, cells, window) == MPI_SUCCESS;
}

static bool allocated_shared(const struct team *team, int **cells, MPI_Win *window) {
  return team->nodes == 1 && MPI_Win_allocate_shared(WINDOW_BYTES, sizeof(int), MPI_INFO_NULL, team->comm,
                                                     cells, window) == MPI_SUCCESS;
}

static bool created(const struct team *team, int **cells, MPI_Win *window) {
  static int own[WINDOW_BYTES / sizeof(int)];
  *cells = own;
  return MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, team->comm, window) == MPI_SUCCESS;
}

typedef bool (*window_kind)(const struct team *team, int **cells, MPI_Win *window);

static const window_kind kinds[] = {allocated, allocated_shared, created};

/* Makes a window of a kind; false where some rank has none. Collective. */
static bool make_window(const struct team *team, window_kind kind, int **cells, MPI_Win *window) {
  MPI_Comm_set_errhandler(team->comm, MPI_ERRORS_RETURN);
  int made = kind(team, cells, window);
  MPI_Comm_set_errhandler(team->comm, MPI_ERRORS_ARE_FATAL);
  int all = made;
  team_allreduce(team, &all, 1, MPI_INT, MPI_MIN);
  return all; /* a window that only some ranks have cannot be freed */
}

/* Every rank puts its number at the next one, and adds one at every rank. */
static bool holds(const struct team *team, volatile int *cells, MPI_Win window) {
  const int one = 1, next = (team->rank + 1) % team->procs;
  const int before = (team->rank + team->procs - 1) % team->procs;
  cells[PUT] = -1;
  cells[SUM] = 0;
  MPI_Win_fence(0, window);
  MPI_Put(&team->rank, 1, MPI_INT, next, PUT, 1, MPI_INT, window);
  for (int rank = 0; rank < team->procs; rank++)
    MPI_Accumulate(&one, 1, MPI_INT, rank, SUM, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  int right = cells[PUT] == before && cells[SUM] == team->procs;
  MPI_Win_fence(0, window);
  team_allreduce(team, &right, 1, MPI_INT, MPI_MIN);
  return right;
}

/* Times MPI_Win_fence on an idle window, of the first kind that keeps the data that ranks put and add; false:
   there is no such kind. */
static bool time_fences(struct sync *sync, int samples, double *seconds) {
  const struct team *team = sync->team;
  bool measured = false;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && !measured; k++) {
    int *cells;
    MPI_Win window = MPI_WIN_NULL;
    if (!make_window(team, kinds[k], &cells, &window))
      continue;
    measured = holds(team, cells, window);
    if (measured)
      time_together(sync, fence_once, window, samples, seconds);
    MPI_Win_free(&window);
  }
  return measured;
}

/* Probes of all ranks at once; `measure` returns false where it cannot be measured: a window is measured only
   if it keeps the data put there. */
static const struct together {
  const char *quantity;
  bool (*measure)(struct sync *sync, int samples, double *seconds);
} together[] = {{"ibarrier", time_barriers}, {"fence", time_fences}};

static int probe_together(struct probing *probing) {
  for (size_t i = 0; i < sizeof together / sizeof together[0]; i++) {
    const struct probed probed = {.quantity = together[i].quantity, .scope = "", .pairs = 1, .messages = 1};
    begin(&probed, true);
    if (together[i].measure(&probing->launch.sync, probing->samples, probing->seconds) &&
        keep(probing, &probed, 0))
      return -1;
  }
  return 0;
}

static int prepare(struct probing *probing) {
  const struct team *team = probing->team;
  const struct options *options = probing->launch.options;
  int status = 0;
  if (options->sizes_bytes[options->nsizes - 1] > SIZE_MOST)
    status = failure_set("--sizes: probes use at most 1G");
  if (status == 0 && team->procs < 2)
    status = failure_set("probes need at least two ranks; start more with mpiexec");
  if (launch_open(&probing->launch, status))
    return -1;
  pairs_on_node(team, &probing->near);
  strcpy(probing->launch.pattern, "pairs");
  return launch_begin(&probing->launch);
}

int probe(const struct team *team, const struct options *options) {
  struct probing probing = {
      .team = team, .launch = launch_create(team, options, "probe"), .samples = options->max_samples};
  probing.seconds = allocate_zeros((size_t)probing.samples * sizeof *probing.seconds);
  hang_watch(team->rank, PREPARATION_LIMITS * options->limit_s);
  int status = prepare(&probing);
  hang_watch(team->rank, options->limit_s);
  for (int i = 0; status == 0 && i < options->nsizes; i++)
    status = probe_size(&probing, options->sizes_bytes[i]);
  if (status == 0)
    status = probe_together(&probing);
  if (status == 0)
    status = launch_end(&probing.launch);
  hang_watch(team->rank, 0);
  launch_free(&probing.launch);
  free(probing.seconds);
  return status;
}
