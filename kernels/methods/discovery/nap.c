/*
 * nap: node-aware discovery, after the node-aware exchange of Bienz, Gropp and Olson (2019). Ranks of a node
 * combine messages to the same other node in one letter, nodes find their senders by nonblocking consensus,
 * and received letters are distributed on the node. Messages on the node are sent in the first of these
 * steps.
 *
 * As no rank knows the volumes, destination nodes are dealt in turn: on node M, local rank N mod (ranks on M)
 * sends to node N, where local rank M mod (ranks on N) receives.
 */
#include "formulas.h"
#include "consensus.h"
#include "relay.h"
#include "topology.h"

#include <stdio.h>

enum { GATHER, DISTRIBUTE }; /* the stages on the node */

struct state {
  struct relay relay;
  struct consensus consensus;
  struct inbox *arrived; /* letters from other nodes */
  int node, local, size; /* this rank's node, its place there, and the ranks there */
  int ndealt;            /* nodes dealt to this rank: local, local + size, …; its own may be among them */
  int *neighbors;        /* the other ranks of the node, increasing */
  int *ranks;            /* of the letters to other nodes, with */
  int64_t *bytes;
  const void **data;
};

static void nap_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_relay_free(&state->relay);
  swp_probing_free(&state->consensus.probing);
  swp_inbox_destroy(state->arrived);
  swp_release(state->neighbors);
  swp_release(state->ranks);
  swp_release(state->bytes);
  swp_release(state->data);
}

static int allocate(struct swp_plan *plan, struct state *state) {
  int error = SWP_SUCCESS;
  int partners = state->size - 1 > state->ndealt ? state->size - 1 : state->ndealt;
  TRY(swp_relay_plan(plan, &state->relay, partners));
  TRY(swp_probing_reserve(plan, &state->consensus.probing, state->ndealt));
  state->arrived = swp_inbox_create();
  state->neighbors = swp_plan_allocate(plan, state->size, sizeof *state->neighbors);
  state->ranks = swp_plan_allocate(plan, state->ndealt, sizeof *state->ranks);
  state->bytes = swp_plan_allocate(plan, state->ndealt, sizeof *state->bytes);
  state->data = swp_plan_allocate(plan, state->ndealt, sizeof *state->data);
  if (state->arrived == NULL || state->neighbors == NULL || state->ranks == NULL || state->bytes == NULL ||
      state->data == NULL)
    error = swp_plan_no_memory(plan);
done:
  return error;
}

static int nap_plan(struct swp_plan *plan) {
  const struct topology *topology = plan->topology;
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state == NULL)
    return swp_plan_no_memory(plan);
  swp_consensus_plan(plan, &state->consensus);
  state->node = swp_topology_node(topology, plan->rank);
  state->local = swp_topology_local(topology, plan->rank);
  state->size = swp_topology_node_size(topology, state->node);
  state->ndealt = state->local < topology->nodes ? (topology->nodes - 1 - state->local) / state->size + 1 : 0;
  int error = allocate(plan, state);
  for (int local = 0, i = 0; error == SWP_SUCCESS && local < state->size; local++)
    if (local != state->local)
      state->neighbors[i++] = swp_topology_rank(topology, state->node, local);
  snprintf(plan->layout, sizeof plan->layout, "%d nodes of up to %d ranks", topology->nodes, topology->ppn);
  return error;
}

/* The index among the neighbours of the rank with a local number. */
static int neighbor_at(const struct state *state, int local) {
  return local == state->local ? STAYS : local < state->local ? local : local - 1;
}

/* Sends messages on the node to their receivers, and others to the rank that has their destination node. */
static int gather(struct swp_plan *plan, struct state *state) {
  for (int64_t i = 0; i < state->relay.nheld; i++) {
    struct parcel *parcel = &state->relay.held[i];
    int node = swp_topology_node(plan->topology, parcel->destination);
    int local =
        node == state->node ? swp_topology_local(plan->topology, parcel->destination) : node % state->size;
    parcel->next = neighbor_at(state, local);
  }
  return swp_relay_stage(plan, &state->relay, GATHER, state->size - 1, state->neighbors);
}

/* Packs for the nodes dealt to this rank; returns what there is to send. */
static struct outbox pack_for_nodes(struct swp_plan *plan, struct state *state) {
  const struct topology *topology = plan->topology;
  struct outbox outbox = {0, state->ranks, state->bytes, state->data};
  for (int64_t i = 0; i < state->relay.nheld; i++) {
    struct parcel *parcel = &state->relay.held[i];
    int node = swp_topology_node(topology, parcel->destination);
    parcel->next = node == state->node ? STAYS : node / state->size;
  }
  swp_relay_pack(plan, &state->relay, state->ndealt);
  for (int i = 0; i < state->ndealt; i++) {
    const struct letter *letter = &state->relay.letters[i];
    int node = state->local + i * state->size;
    if (node == state->node || letter->bytes == 0)
      continue;
    int leader = state->node % swp_topology_node_size(topology, node);
    state->ranks[outbox.nsends] = swp_topology_rank(topology, node, leader);
    state->bytes[outbox.nsends] = letter->bytes;
    state->data[outbox.nsends++] = letter->data;
  }
  return outbox;
}

static int cross(struct swp_plan *plan, struct state *state) {
  struct outbox outbox = pack_for_nodes(plan, state);
  swp_inbox_empty(state->arrived);
  int error = swp_consensus(plan, &state->consensus, &outbox, state->arrived);
  if (error == SWP_ERR_MEMORY)
    state->relay.failure = error; /* to be reported on the node, too */
  else if (error != SWP_SUCCESS)
    return error;
  swp_inbox_finish(state->arrived);
  const swp_inbox *letters = swp_inbox_seen(state->arrived);
  for (int i = 0; i < letters->nsources; i++)
    swp_relay_open(plan, &state->relay, letters->sources[i], letters->data[i], letters->bytes[i]);
  return SWP_SUCCESS;
}

static int distribute(struct swp_plan *plan, struct state *state) {
  for (int64_t i = 0; i < state->relay.nheld; i++) {
    struct parcel *parcel = &state->relay.held[i];
    parcel->next = neighbor_at(state, swp_topology_local(plan->topology, parcel->destination));
  }
  return swp_relay_stage(plan, &state->relay, DISTRIBUTE, state->size - 1, state->neighbors);
}

static int nap_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS;
  swp_relay_begin(plan, &state->relay, outbox);
  TRY(gather(plan, state));
  if (plan->topology->nodes > 1) {
    TRY(cross(plan, state));
    TRY(distribute(plan, state));
  }
  TRY(swp_relay_deliver(plan, &state->relay, inbox));
done:
  return error;
}

static int nap_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  const int ppn = census.ppn, share = (census.nodes - 2 + ppn) / ppn;
  const int letters = census.degree < share ? (census.degree > 0 ? (int)census.degree : 0) : share;
  const double on_node_s = swp_forward_s(&census, ppn - 1, true), consensus_s = swp_consensus_s(&census);
  if (census.nodes == 1)
    *seconds = on_node_s;
  else if (consensus_s >= 0)
    *seconds = 2 * on_node_s + swp_forward_s(&census, letters, false) + consensus_s;
  return SWP_SUCCESS;
}

const struct method swp_discovery_nap = {
    .name = "nap",
    .summary = "one message for each pair of nodes, whose senders a nonblocking consensus finds",
    .source = "node-aware communication, Bienz, Gropp, Olson 2019; NBX, Hoefler et al., PPoPP'10",
    .usage = CONSENSUS_USAGE,
    .parameters = {CONSENSUS_PARAMETER},
    .applicable = swp_consensus_applicable,
    .plan = nap_plan,
    .free = nap_free,
    .execute = nap_execute,
    .estimate = nap_estimate,
};
