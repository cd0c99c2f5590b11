/*
 * swpbench probe: parametrised round trips alone, in floods, delayed, synchronous and by several pairs at
 * once; floods of all ranks; late receives; copying and reducing in memory; a nonblocking barrier and a fence
 * of all ranks. One probe record each (docs/reference/benchfile.md).
 */
#include "parameters.h"

#include "clock.h"
#include "emit.h"
#include "error.h"
#include "json.h"
#include "pairs.h"
#include "precision.h"
#include "together.h"

#include <stdlib.h>
#include <string.h>

enum { FLOOD = 16 };

static const int64_t SIZE_MOST = INT64_C(1) << 30;
static const int64_t IN_MEMORY_BYTES = INT64_C(1) << 22; /* what a sample of the memory moves at least */

struct probing {
  const struct team *team;
  const struct options *options;
  struct sync sync;
  struct facts facts;
  struct launch launch;
  struct output output; /* on rank 0 */
  double *seconds;      /* of a probe's samples */
  int samples;
  struct node_pairs near; /* on rank 0's node */
};

struct probed {
  const char *quantity, *scope;
  int pairs, messages;
  double delay_s;
  int64_t size_bytes;
};

/* Writes what was measured, unless some rank failed. Collective. */
static int keep(struct probing *probing, const struct probed *probed, int status) {
  if (status == 0 && probing->team->rank == 0) {
    struct json json;
    json_begin(&json, "probe");
    json_string(&json, "quantity", probed->quantity);
    json_string(&json, "scope", probed->scope);
    json_int(&json, "pairs", probed->pairs);
    json_int(&json, "messages", probed->messages);
    json_double(&json, "delay_s", probed->delay_s);
    json_int(&json, "size_bytes", probed->size_bytes);
    json_doubles(&json, "samples_s", probing->seconds, sizeof *probing->seconds, probing->samples);
    probing->output.cases++;
    probing->output.samples += probing->samples;
    status = json_write(&json, probing->output.file, probing->output.path);
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
  return keep(probing, &probed,
              pairs_round_trips(pairs, &probing->sync, trip, probing->samples, probing->seconds));
}

/* Half as long again as a round trip, the same on every rank: what was sent has arrived by then. */
static int64_t long_enough_ns(const struct probing *probing) {
  return (int64_t)(1.5e9 * median_interval(probing->seconds, probing->samples).median) + 1;
}

static int late_receives(struct probing *probing, const struct pairs *pairs, int64_t size_bytes,
                         int64_t delay_ns) {
  bool ahead;
  int status =
      pairs_receives(pairs, &probing->sync, size_bytes, delay_ns, probing->samples, probing->seconds, &ahead);
  if (!ahead) /* the message waits for its receiver: such a call is no overhead */
    return team_agree(probing->team, status);
  const struct probed probed = {
      .quantity = "receive", .scope = pairs->scope, .pairs = 1, .messages = 1, .size_bytes = size_bytes};
  return keep(probing, &probed, status);
}

/* All that is of one pair. */
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

/* What further messages take while all ranks of a node send and receive: the load of an exchange. */
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
    const int next = even ? count + count / 2 : count / 3 * 4;
    count = count < most && next > most ? most : next;
  }
  return probe_load(probing, &all, size_bytes);
}

/* Copies or adds up so often that the clock can tell; each time in other buffers of a large region. */
static void in_memory(struct probing *probing, bool reduces, int64_t size_bytes) {
  const int64_t span = (size_bytes + 63) / 64 * 64;
  const int64_t times = (IN_MEMORY_BYTES + span - 1) / span;
  char *from = allocate_zeros((size_t)(span * times)), *to = allocate_zeros((size_t)(span * times));
  for (int s = -1; s < probing->samples; s++) {
    const int64_t begin_ns = clock_ns();
    for (int64_t t = 0; t < times; t++)
      if (reduces)
        MPI_Reduce_local(from + t * span, to + t * span, (int)(size_bytes / 8), MPI_DOUBLE, MPI_SUM);
      else
        memcpy(to + t * span, from + t * span, (size_t)size_bytes);
    if (s >= 0)
      probing->seconds[s] = (double)(clock_ns() - begin_ns) * 1e-9 / (double)times;
  }
  free(from);
  free(to);
}

static int probe_memory(struct probing *probing, int64_t size_bytes) {
  for (int reduces = 0; reduces <= (size_bytes % 8 == 0); reduces++) {
    if (probing->team->rank == 0)
      in_memory(probing, reduces, size_bytes);
    const struct probed probed = {.quantity = reduces ? "reduce" : "copy",
                                  .scope = "",
                                  .pairs = 1,
                                  .messages = 1,
                                  .size_bytes = size_bytes};
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

/* Of all ranks. A window is measured only where it is found to hold what is put there. */
static int probe_together(struct probing *probing) {
  struct probed probed = {.quantity = "ibarrier", .scope = "", .pairs = 1, .messages = 1};
  together_barriers(&probing->sync, probing->samples, probing->seconds);
  if (keep(probing, &probed, 0))
    return -1;
  probed.quantity = "fence";
  return together_fences(&probing->sync, probing->samples, probing->seconds) ? keep(probing, &probed, 0) : 0;
}

static int prepare(struct probing *probing) {
  const struct team *team = probing->team;
  const struct options *options = probing->options;
  int status = 0;
  if (options->sizes_bytes[options->nsizes - 1] > SIZE_MOST)
    status = failure_set("--sizes: probes are of at most 1G");
  if (status == 0 && team->procs < 2)
    status = failure_set("probes need two ranks at least; start more with mpiexec");
  if (status == 0 && team->rank == 0)
    status = output_open(&probing->output, options->out);
  if (team_agree(team, status))
    return -1;
  facts_collect(team, &probing->facts);
  pairs_on_node(team, &probing->near);
  probing->sync = sync_create(team, options->sync);
  probing->launch = (struct launch){.team = team,
                                    .options = options,
                                    .facts = &probing->facts,
                                    .sync = &probing->sync,
                                    .tick_ns = clock_tick_ns(),
                                    .operation = "probe",
                                    .pattern = "pairs"};
  return team_agree(team, team->rank == 0 ? emit_header(&probing->output, &probing->launch) : 0);
}

int probe(const struct team *team, const struct options *options) {
  const int64_t begin_ns = clock_ns();
  struct probing probing = {.team = team, .options = options, .samples = options->max_samples};
  probing.seconds = allocate_zeros((size_t)probing.samples * sizeof *probing.seconds);
  int status = prepare(&probing);
  for (int i = 0; status == 0 && i < options->nsizes; i++)
    status = probe_size(&probing, options->sizes_bytes[i]);
  if (status == 0)
    status = probe_together(&probing);
  if (status == 0)
    status = emit_end(&probing.output, team, (double)(clock_ns() - begin_ns) * 1e-9, NULL, 0);
  output_close(&probing.output);
  free(probing.facts.hostnames);
  free(probing.seconds);
  return status;
}
