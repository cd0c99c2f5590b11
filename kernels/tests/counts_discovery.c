/*
 * What each rank sends, puts and asks of all in a discovery, counted, against the rules of
 * docs/explanation/methods.md, by following every message of the traffic through the stages of the method.
 */
#include "activity.h"
#include "counts.h"
#include "nodes.h"
#include "oracle.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

/* What a rank has for another in a stage is sent if it has more bytes than this: NOTHING has fewer than a
   message without any. Less is in a slip or in the node's memory. */
enum { ALWAYS = -2, NOTHING = -1, SLIP_BYTES = 48, MEMORY_BYTES = 8192 };

/* By node: on it, between nodes, on it. */
enum { CROSS = 1, NODE_STAGES = 3 };

/* A message that others forward has a header, and is padded. */
enum { HEADER_BYTES = 16, PADDED_TO_BYTES = 8 };

enum { ITEM_BYTES = 24, LARGE_ITEM_BYTES = 4096 };

struct rules {
  const char *method;
  int64_t above_bytes, on_node_above_bytes; /* the first by node: between nodes */
  int collectives;
  bool by_node;
  bool one_sided; /* a call tells the receiver of each message, or has it */
  bool dissemination;
  const struct sizes *sizes; /* of a grid, or NULL */
};

static const struct rules all_rules[] = {
    {"pex", .above_bytes = NOTHING, .collectives = 1},
    {"pcx", .above_bytes = NOTHING, .collectives = 1},
    {"rsx", .above_bytes = NOTHING, .collectives = 2, .one_sided = true},
    {"put", .above_bytes = SLIP_BYTES, .collectives = 1, .one_sided = true},
    {"nbx:barrier=ibarrier", .above_bytes = NOTHING, .collectives = 1},
    {"nbx:barrier=dissemination", .above_bytes = NOTHING, .dissemination = true},
    {"dense", .above_bytes = ALWAYS},
    {"shared", .above_bytes = MEMORY_BYTES},
    {"nap:barrier=ibarrier", .above_bytes = NOTHING, .on_node_above_bytes = ALWAYS, .collectives = 1,
     .by_node = true},
    {"nap:barrier=dissemination", .above_bytes = NOTHING, .on_node_above_bytes = ALWAYS, .by_node = true,
     .dissemination = true},
    {"nap:find=dense", .above_bytes = ALWAYS, .on_node_above_bytes = ALWAYS, .by_node = true},
    {"nap:find=put", .above_bytes = SLIP_BYTES, .on_node_above_bytes = ALWAYS, .collectives = 1,
     .by_node = true, .one_sided = true},
    {"nap:barrier=ibarrier,node=shared", .above_bytes = NOTHING, .on_node_above_bytes = MEMORY_BYTES,
     .collectives = 1, .by_node = true},
    {"nap:find=dense,node=shared", .above_bytes = ALWAYS, .on_node_above_bytes = MEMORY_BYTES,
     .by_node = true},
    {"nap:find=put,node=shared", .above_bytes = SLIP_BYTES, .on_node_above_bytes = MEMORY_BYTES,
     .collectives = 1, .by_node = true, .one_sided = true},
};
enum { RULES = sizeof all_rules / sizeof all_rules[0] };

/* ---- Nodes ---- */

static int procs, me, *nodes; /* the lowest rank on the node of each rank */

static int node_size(int rank) {
  int size = 0;
  for (int i = 0; i < procs; i++)
    size += nodes[i] == nodes[rank];
  return size;
}

/* The number of the rank's node, by their lowest ranks. */
static int node_number(int rank) {
  int number = 0;
  for (int i = 0; i < nodes[rank]; i++)
    number += nodes[i] == i;
  return number;
}

static bool has_several_nodes(void) {
  return node_size(me) < procs;
}

/* The rank of this one's node that exchanges messages with the node of the other. */
static int counterpart(int rank, int other) {
  int place = node_number(other) % node_size(rank), found = nodes[rank];
  while (nodes[found] != nodes[rank] || place-- > 0)
    found++;
  return found;
}

/* ---- Rules ---- */

static int stages_of(const struct rules *rules) {
  const int by_node = has_several_nodes() ? NODE_STAGES : 1;
  return rules->sizes != NULL ? rules->sizes->ndims : rules->by_node ? by_node : 1;
}

/* Where a message is after so many stages. */
static int rank_after(const struct rules *rules, int stages, int source, int destination) {
  if (rules->sizes != NULL)
    return forwarded(rules->sizes, source, destination, stages);
  if (stages == 0 || stages == stages_of(rules) || nodes[source] == nodes[destination])
    return stages == 0 ? source : destination;
  return stages == CROSS ? counterpart(source, destination) : counterpart(destination, source);
}

static bool is_on_node(const struct rules *rules, int stage) {
  return rules->by_node && stage != CROSS;
}

/* Returns whether this rank may send to that one. */
static bool is_partner(const struct rules *rules, int stage, int rank) {
  if (is_on_node(rules, stage))
    return nodes[me] == nodes[rank];
  return rank_after(rules, stage, me, rank) == me && rank_after(rules, stage + 1, me, rank) == rank;
}

/* The bytes that this rank has for each other in a stage. */
static void find_held(const struct rules *rules, int stage, const struct traffic *traffic, int64_t item_bytes,
                      int64_t *held) {
  for (int rank = 0; rank < procs; rank++)
    held[rank] = NOTHING;
  for (int source = 0; source < procs; source++)
    for (int i = 0; i < traffic->rows[source].nsends; i++) {
      const int destination = traffic->rows[source].ranks[i];
      const int next = rank_after(rules, stage + 1, source, destination);
      int64_t bytes = row_items(&traffic->rows[source], i) * item_bytes;
      if (rank_after(rules, stage, source, destination) != me)
        continue;
      if (rules->by_node || rules->sizes != NULL)
        bytes = HEADER_BYTES + (bytes + PADDED_TO_BYTES - 1) / PADDED_TO_BYTES * PADDED_TO_BYTES;
      held[next] = bytes + (held[next] == NOTHING ? 0 : held[next]);
    }
}

static void add_message(struct activity *expected, int rank, int64_t bytes) {
  const bool off_node = nodes[rank] != nodes[me];
  expected->messages++;
  expected->bytes += bytes;
  expected->off_node_messages += off_node;
  expected->off_node_bytes += off_node ? bytes : 0;
}

static void add_stage(const struct rules *rules, int stage, const int64_t *held, struct activity *expected) {
  const bool on_node = is_on_node(rules, stage);
  const int64_t above_bytes = on_node ? rules->on_node_above_bytes : rules->above_bytes;
  for (int rank = 0; rank < procs; rank++) {
    if (rank == me || !is_partner(rules, stage, rank))
      continue;
    if (held[rank] > above_bytes)
      add_message(expected, rank, held[rank] == NOTHING ? 0 : held[rank]);
    expected->one_sided += rules->one_sided && !on_node && held[rank] != NOTHING;
  }
}

static struct activity expect(const struct rules *rules, const struct traffic *traffic, int64_t item_bytes) {
  const bool finds = !rules->by_node || has_several_nodes();
  struct activity expected = {.collectives = finds ? rules->collectives : 0};
  int64_t *held = test_allocate((size_t)procs * sizeof *held);
  for (int stage = 0; stage < stages_of(rules); stage++) {
    find_held(rules, stage, traffic, item_bytes, held);
    add_stage(rules, stage, held, &expected);
  }
  for (int distance = 1; finds && rules->dissemination && distance < procs; distance *= 2)
    add_message(&expected, (me + distance) % procs, 0);
  free(held);
  return expected;
}

/* ---- Checks ---- */

static void check_family(swp_plan *plan, const struct rules *rules, const struct family *family,
                         int64_t item_bytes, uint64_t call) {
  struct traffic *traffic = traffic_new(family, procs, 9);
  const struct activity expected = expect(rules, traffic, item_bytes);
  swp_inbox *inbox = NULL;
  test_case("discovery %s, %s, items of %d bytes", rules->method, family->name, (int)item_bytes);
  activity_start(nodes, NULL);
  discovery_execute(MPI_COMM_WORLD, plan, traffic, item_bytes, call, &inbox);
  const struct activity activity = activity_stop();
  EXPECT_EQUAL(activity.messages, expected.messages);
  EXPECT_EQUAL(activity.bytes, expected.bytes);
  EXPECT_EQUAL(activity.off_node_messages, expected.off_node_messages);
  EXPECT_EQUAL(activity.off_node_bytes, expected.off_node_bytes);
  EXPECT_EQUAL(activity.one_sided, expected.one_sided);
  EXPECT_EQUAL(activity.collectives, expected.collectives);
  swp_inbox_free(&inbox);
  traffic_free(traffic);
}

/* By one plan, as it does not depend on what is sent. Every other family on many ranks. */
static void check_rules(const struct rules *rules) {
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  nodes = nodes_of(MPI_COMM_WORLD);
  test_case("discovery %s", rules->method);
  swp_plan *plan = discovery_open(MPI_COMM_WORLD, rules->method);
  for (int i = 0; plan != NULL && i < nfamilies; i += procs > 4 ? 2 : 1)
    check_family(plan, rules, &families[i], ITEM_BYTES, (uint64_t)i);
  if (plan != NULL)
    check_family(plan, rules, &families[0], LARGE_ITEM_BYTES, (uint64_t)nfamilies);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  free(nodes);
}

/* Where a spec names no barrier, the rules may. */
static bool are_rules_of(const char *spec, const char *method) {
  const size_t length = strlen(spec);
  return strncmp(method, spec, length) == 0 &&
         (method[length] == '\0' || strcmp(method + length, ":barrier=ibarrier") == 0);
}

static bool has_rules(const char *spec) {
  static const char on_grid[] = "stfw:"; /* by check_discovery_on_grid */
  for (int i = 0; i < RULES; i++)
    if (are_rules_of(spec, all_rules[i].method))
      return true;
  return strncmp(spec, on_grid, strlen(on_grid)) == 0;
}

void check_discoveries(void) {
  char *specs = all_specs(SWP_DISCOVERY, 8);
  for (char *spec = strtok(specs, " "); spec != NULL; spec = strtok(NULL, " "))
    EXPECT(has_rules(spec), "nobody says what %s sends", spec);
  free(specs);
  for (int i = 0; i < RULES; i++)
    check_rules(&all_rules[i]);
}

void check_discovery_on_grid(const char *method, const struct sizes *sizes) {
  check_rules(&(struct rules){method, .above_bytes = ALWAYS, .sizes = sizes});
}
