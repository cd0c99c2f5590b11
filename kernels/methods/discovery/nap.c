/*
 * nap: node-aware discovery, after the node-aware exchange of Bienz, Gropp and Olson (2019). Ranks of a node
 * combine messages to the same other node in one letter, nodes find their senders, and received letters are
 * distributed on the node. Messages on the node are sent in the first of these steps. Nodes find their
 * senders by nonblocking consensus, by sending every node a letter, or by one-sided communication (as in
 * Geyko, Collom, Schafer, Bridges, Bienz, arXiv 2308.13869); letters on the node are sent by MPI or written
 * in its memory.
 *
 * As no rank knows the volumes, destination nodes are dealt in turn: on node M, local rank N mod (ranks on M)
 * sends to node N, where local rank M mod (ranks on N) receives.
 */
#include "bulletins.h"
#include "consensus.h"
#include "formulas.h"
#include "parts.h"
#include "puts.h"
#include "relay.h"

#include <stdio.h>

enum { BARRIER, FIND, NODE };
enum { FIND_CONSENSUS, FIND_DENSE, FIND_PUT };
static const char *const find_choices[] = {
    [FIND_CONSENSUS] = "consensus", [FIND_DENSE] = "dense", [FIND_PUT] = "put", NULL};

/* The second is between nodes. */
enum { GATHER, CROSS, DISTRIBUTE, STAGES };

/* The ranks that this one exchanges letters with on the node, or between nodes. */
struct partners {
  int count;
  int *ranks;
};

struct state {
  struct relay relay;
  struct consensus consensus;
  struct puts puts;
  struct bulletins bulletins;
  struct inbox *arrived[STAGES]; /* letters of stages that the relay does not send itself */
  int node, local, size;         /* this rank's node, its place there, and the ranks there */
  struct partners neighbors;     /* the other ranks of the node, increasing */
  struct partners dealt; /* of nodes local, local + size, … but its own, the rank that receives there */
  int *ranks;            /* of the letters of a stage, with */
  int64_t *bytes;
  const void **data;
};

static long find_of(const struct spec *spec) {
  return spec->arguments[FIND].value;
}

static const char *nap_applicable(const struct spec *spec, const struct features *features) {
  const char *why = swp_is_by_memory(spec) ? swp_sharing_applicable_on_nodes(features) : NULL;
  if (why != NULL)
    return why;
  if (features->nodes == 1 && spec->arguments[FIND].given)
    return "all ranks are on one node";
  if (find_of(spec) == FIND_CONSENSUS)
    return swp_consensus_applicable(spec, features);
  if (spec->arguments[BARRIER].given)
    return "barrier= is of find=consensus";
  return find_of(spec) == FIND_PUT ? swp_window_applicable(spec, features) : NULL;
}

static bool nap_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  static const char *const specs[] = {"nap", "nap:find=dense", "nap:find=put", "nap:find=dense,node=shared"};
  (void)operation;
  if (index >= (procs > 2 ? 4 : 1))
    return false;
  snprintf(text, length, "%s", specs[index]);
  return true;
}

static void nap_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_relay_free(&state->relay);
  swp_probing_free(&state->consensus.probing);
  swp_puts_free(&state->puts);
  swp_bulletins_give(&state->bulletins);
  for (int stage = 0; stage < STAGES; stage++)
    swp_inbox_destroy(state->arrived[stage]);
  swp_release(state->neighbors.ranks);
  swp_release(state->dealt.ranks);
  swp_release(state->ranks);
  swp_release(state->bytes);
  swp_release(state->data);
}

/* ---- Planning ---- */

/* The rank of another node that exchanges letters with this rank's node. */
static int counterpart(const struct swp_plan *plan, const struct state *state, int node) {
  const int size = swp_topology_node_size(plan->topology, node);
  return swp_topology_rank(plan->topology, node, state->node % size);
}

static void find_partners(const struct swp_plan *plan, struct state *state) {
  struct partners *neighbors = &state->neighbors, *dealt = &state->dealt;
  for (int local = 0; local < state->size; local++)
    if (local != state->local)
      neighbors->ranks[neighbors->count++] = swp_topology_rank(plan->topology, state->node, local);
  for (int64_t node = state->local; node < plan->topology->nodes; node += state->size)
    if (node != state->node)
      dealt->ranks[dealt->count++] = counterpart(plan, state, (int)node);
}

static int plan_local(struct swp_plan *plan, struct state *state) {
  const struct topology *topology = plan->topology;
  bool allocated = true;
  int error = SWP_SUCCESS;
  state->node = swp_topology_node(topology, plan->rank);
  state->local = swp_topology_local(topology, plan->rank);
  state->size = swp_topology_node_size(topology, state->node);
  const int nodes = topology->nodes / state->size + 1, most = state->size > nodes ? state->size : nodes;
  TRY(swp_relay_plan(plan, &state->relay, most));
  TRY(swp_probing_reserve(plan, &state->consensus.probing, nodes));
  for (int stage = 0; stage < STAGES; stage++) {
    state->arrived[stage] = swp_inbox_create();
    allocated = allocated && state->arrived[stage] != NULL;
  }
  state->neighbors.ranks = swp_plan_allocate(plan, state->size, sizeof *state->neighbors.ranks);
  state->dealt.ranks = swp_plan_allocate(plan, nodes, sizeof *state->dealt.ranks);
  state->ranks = swp_plan_allocate(plan, most, sizeof *state->ranks);
  state->bytes = swp_plan_allocate(plan, most, sizeof *state->bytes);
  state->data = swp_plan_allocate(plan, most, sizeof *state->data);
  if (!allocated || state->neighbors.ranks == NULL || state->dealt.ranks == NULL || state->ranks == NULL ||
      state->bytes == NULL || state->data == NULL)
    error = swp_plan_no_memory(plan);
  else
    find_partners(plan, state);
done:
  return error;
}

static int take_memory(struct swp_plan *plan, struct state *state) {
  MPI_Comm node;
  int error = swp_part_take_node(plan, &node);
  if (error != SWP_SUCCESS)
    return error;
  error = swp_bulletins_take(plan, true, node, SWP_SUCCESS, &state->bulletins);
  swp_part_give(plan, &node);
  return error;
}

static int nap_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  int error = state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
  if (state != NULL) {
    state->puts.window = MPI_WIN_NULL;
    swp_consensus_plan(plan, &state->consensus);
    error = plan_local(plan, state);
  }
  TRY(swp_agree(plan->comm, error));
  snprintf(plan->arrangement, sizeof plan->arrangement, "%d nodes of up to %d ranks", plan->topology->nodes,
           plan->topology->ppn);
  if (find_of(&plan->spec) == FIND_PUT)
    TRY(swp_agree(plan->comm, swp_puts_plan(plan, SWP_SUCCESS, &state->puts)));
  if (swp_is_by_memory(&plan->spec))
    TRY(take_memory(plan, state));
done:
  return error;
}

/* ---- Execution ---- */

/* The index among the neighbours of the rank with a local number. */
static int neighbor_at(const struct state *state, int local) {
  return local == state->local ? STAYS : local < state->local ? local : local - 1;
}

/* The index among those dealt to this rank of another node. */
static int dealt_at(const struct state *state, int node) {
  const bool own_before = state->node < node && state->node % state->size == state->local;
  return node / state->size - own_before;
}

/* Packs the letters; returns those that are not empty. */
static struct outbox pack(struct swp_plan *plan, struct state *state, const struct partners *partners) {
  struct outbox outbox = {0, state->ranks, state->bytes, state->data};
  swp_relay_pack(plan, &state->relay, partners->count);
  for (int i = 0; i < partners->count; i++) {
    const struct letter *letter = &state->relay.letters[i];
    if (letter->bytes == 0)
      continue;
    state->ranks[outbox.nsends] = partners->ranks[i];
    state->bytes[outbox.nsends] = letter->bytes;
    state->data[outbox.nsends++] = letter->data;
  }
  return outbox;
}

static int carry(struct swp_plan *plan, struct state *state, int stage, const struct outbox *outbox) {
  struct inbox *arrived = state->arrived[stage];
  if (stage != CROSS)
    return swp_bulletins_exchange(plan, &state->bulletins, outbox, arrived);
  if (find_of(&plan->spec) == FIND_PUT)
    return swp_puts_exchange(plan, &state->puts, outbox, arrived);
  return swp_consensus(plan, &state->consensus, outbox, arrived);
}

/* Sends the letters of a stage, and holds the parcels of those that arrive. */
static int exchange(struct swp_plan *plan, struct state *state, int stage) {
  const struct partners *partners = stage == CROSS ? &state->dealt : &state->neighbors;
  if (stage == CROSS ? find_of(&plan->spec) == FIND_DENSE : !swp_is_by_memory(&plan->spec))
    return swp_relay_stage(plan, &state->relay, stage, partners->count, partners->ranks);
  const struct outbox outbox = pack(plan, state, partners);
  swp_inbox_empty(state->arrived[stage]);
  const int error = carry(plan, state, stage, &outbox);
  if (error == SWP_ERR_MEMORY)
    state->relay.failure = error; /* to be reported on the node, too */
  else if (error != SWP_SUCCESS)
    return error;
  swp_inbox_finish(state->arrived[stage]);
  const swp_inbox *letters = swp_inbox_seen(state->arrived[stage]);
  for (int i = 0; i < letters->nsources; i++)
    swp_relay_open(plan, &state->relay, letters->sources[i], letters->data[i], letters->bytes[i]);
  return SWP_SUCCESS;
}

/* Decides where what this rank holds goes in a stage: on the node to its receiver or, to be gathered, to the
   rank that has its destination's node; then to that node. */
static void address(const struct swp_plan *plan, struct state *state, int stage) {
  for (int64_t i = 0; i < state->relay.nheld; i++) {
    struct parcel *parcel = &state->relay.held[i];
    const int node = swp_topology_node(plan->topology, parcel->destination);
    if (stage == CROSS)
      parcel->next = node == state->node ? STAYS : dealt_at(state, node);
    else if (node == state->node)
      parcel->next = neighbor_at(state, swp_topology_local(plan->topology, parcel->destination));
    else
      parcel->next = neighbor_at(state, node % state->size);
  }
}

static int nap_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  const int stages = plan->topology->nodes > 1 ? STAGES : 1;
  int error = SWP_SUCCESS;
  swp_relay_begin(plan, &state->relay, outbox);
  for (int stage = 0; stage < stages; stage++) {
    address(plan, state, stage);
    TRY(exchange(plan, state, stage));
  }
  TRY(swp_relay_deliver(plan, &state->relay, inbox));
done:
  return error;
}

/* The most nodes that are dealt to a rank: its own, of those that its place gets, is not. */
static int most_dealt(const struct topology *topology) {
  int most = 0;
  for (int node = 0; node < topology->nodes; node++) {
    const int size = swp_topology_node_size(topology, node);
    const int each = topology->nodes / size, more = topology->nodes % size; /* to the first places */
    const int dealt = size == 1 ? each - 1 : each + (more > 1 || (more == 1 && node % size != 0));
    most = dealt > most ? dealt : most;
  }
  return most;
}

static int nap_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  const int ppn = census.ppn, share = most_dealt(plan->topology),
            degree = census.degree > 0 ? (int)census.degree : 0;
  const int letters = degree < share ? degree : share;
  const double on_node_s = swp_is_by_memory(estimate->spec) ? swp_forward_by_memory_s(&census)
                                                            : swp_forward_s(&census, ppn - 1, true);
  const double consensus_s = swp_consensus_s(&census);
  if (census.nodes == 1)
    *seconds = on_node_s;
  else if (find_of(estimate->spec) == FIND_DENSE)
    *seconds = 2 * on_node_s + swp_forward_s(&census, share, false);
  else if (find_of(estimate->spec) == FIND_PUT)
    *seconds = 2 * on_node_s + swp_forward_s(&census, letters, false) + swp_fence_s(&census);
  else if (consensus_s >= 0)
    *seconds = 2 * on_node_s + swp_forward_s(&census, letters, false) + consensus_s;
  return SWP_SUCCESS;
}

const struct method swp_discovery_nap = {
    .name = "nap",
    .summary = "one letter for each pair of nodes, gathered and distributed on them",
    .source =
        "node-aware communication, Bienz, Gropp, Olson 2019; locality-aware discovery, arXiv 2308.13869",
    .usage = CONSENSUS_USAGE ", find=consensus|dense|put, " NODE_USAGE " (consensus and mpi when not given)",
    .parameters = {[BARRIER] = CONSENSUS_PARAMETER,
                   [FIND] = {.name = "find", .type = PARAMETER_CHOICE, .choices = find_choices},
                   [NODE] = NODE_PARAMETER},
    .applicable = nap_applicable,
    .variant = nap_variant,
    .plan = nap_plan,
    .free = nap_free,
    .execute = nap_execute,
    .estimate = nap_estimate,
};
