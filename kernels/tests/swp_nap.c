/*
 * Node-aware exchange: Example 2.1 of Bienz, Gropp and Olson (2019) set by set, from the messages that are
 * really sent; numbers of messages and values by the rules, for any traffic; and the dealing of nodes alone.
 */
#include "exchange/nap_deal.h"
#include "nodes.h"
#include "oracle.h"
#include "order.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The messages of an execution ---- */

enum { ROWS = 6, MOST_MESSAGES = 16, TAG_GATHER = 0, TAG_NODES = 1, TAG_DISTRIBUTE = 2 };

/* Values are the numbers of their rows. */
struct message {
  int source, destination, tag;
  int nvalues;
  int64_t values[ROWS];
};

static bool recording;
static struct message mine[MOST_MESSAGES];
static int nmine;

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request) {
  if (recording && nmine < MOST_MESSAGES) {
    struct message *message = &mine[nmine++];
    int packed = 0;
    MPI_Comm_rank(comm, &message->source);
    message->destination = destination;
    message->tag = tag;
    MPI_Pack(buffer, count, type, message->values, sizeof message->values, &packed, comm);
    message->nvalues = packed / (int)sizeof *message->values;
  }
  return PMPI_Isend(buffer, count, type, destination, tag, comm, request);
}

/* All messages of all ranks, on every rank. */
struct record {
  int count;
  struct message messages[ROWS * MOST_MESSAGES];
};

static void gather_record(struct record *record) {
  int counts[ROWS], bytes[ROWS], offsets[ROWS];
  MPI_Allgather(&nmine, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
  record->count = 0;
  for (int rank = 0; rank < ROWS; rank++) {
    offsets[rank] = record->count * (int)sizeof *mine;
    bytes[rank] = counts[rank] * (int)sizeof *mine;
    record->count += counts[rank];
  }
  MPI_Allgatherv(mine, nmine * (int)sizeof *mine, MPI_BYTE, record->messages, bytes, offsets, MPI_BYTE,
                 MPI_COMM_WORLD);
}

/* ---- Example 2.1, as corrected: six ranks, three nodes, a row each ---- */

static const char *const columns[ROWS] = {"0135", "14", "23", "0123", "024", "05"};

/* Where the row's rank is: node row / 2, local rank row mod 2. */
static int rank_of(int row) {
  return oracle_hints.placement == SWP_PLACEMENT_CYCLIC ? row % 2 * 3 + row / 2 : row;
}

static int row_of(int rank) {
  return oracle_hints.placement == SWP_PLACEMENT_CYCLIC ? rank % 3 * 2 + rank / 3 : rank;
}

static bool needs(int row, int column) {
  return row != column && strchr(columns[row], '0' + column) != NULL;
}

/* Executes the example and records what is sent, with ranks named by their rows. */
static void run_example(const char *method, struct record *record, struct swp_statistics *statistics) {
  static const int64_t zeros[ROWS] = {0};
  int rank, ranks[2][ROWS], count[2] = {0, 0};
  int64_t offsets[ROWS + 1], value, received[ROWS];
  swp_plan *plan = NULL;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int row = row_of(rank);
  for (int other = 0; other < ROWS; other++) {
    offsets[other] = other;
    if (needs(other, row))
      ranks[0][count[0]++] = rank_of(other);
    if (needs(row, other))
      ranks[1][count[1]++] = rank_of(other);
  }
  offsets[ROWS] = ROWS;
  struct swp_exchange problem = {.item_bytes = sizeof value,
                                 .nitems = 1,
                                 .nsends = count[0],
                                 .send_ranks = ranks[0],
                                 .send_offsets = offsets,
                                 .send_items = zeros,
                                 .nrecvs = count[1],
                                 .recv_ranks = ranks[1],
                                 .recv_offsets = offsets};
  test_case("example 2.1 by %s, ranks %s", method,
            oracle_hints.placement == SWP_PLACEMENT_CYCLIC ? "cyclic" : "in blocks");
  int error = swp_exchange_plan(MPI_COMM_WORLD, &problem, method, &oracle_hints, &plan);
  EXPECT_ERROR(test_agreed(MPI_COMM_WORLD, error), SWP_SUCCESS);
  value = row;
  nmine = 0;
  recording = true;
  EXPECT_ERROR(swp_exchange_execute(plan, &value, received), SWP_SUCCESS);
  recording = false;
  for (int i = 0; i < count[1]; i++)
    EXPECT_EQUAL(received[i], row_of(ranks[1][i]));
  EXPECT_ERROR(swp_plan_statistics(plan, NULL, statistics), SWP_SUCCESS);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  gather_record(record);
  for (int i = 0; i < record->count; i++) {
    record->messages[i].source = row_of(record->messages[i].source);
    record->messages[i].destination = row_of(record->messages[i].destination);
  }
}

/* Sets of small numbers are words of digits in increasing order. */
struct set {
  char digits[11];
};

static void set_add(struct set *set, int digit) {
  char *place = set->digits;
  while (*place != '\0' && *place < '0' + digit)
    place++;
  if (*place == '0' + digit)
    return;
  memmove(place + 1, place, strlen(place) + 1);
  *place = (char)('0' + digit);
}

static void expect_set(const char *name, int of, const struct set *set, const char *expected) {
  EXPECT(strcmp(set->digits, expected) == 0, "%s(%d) is {%s}, expected {%s}", name, of, set->digits,
         expected);
}

static bool crosses(const struct message *message) {
  return message->source / 2 != message->destination / 2;
}

static void expect_traffic(const struct record *record, const struct swp_statistics *statistics, int messages,
                           int values) {
  int count = 0, sum = 0;
  for (int i = 0; i < record->count; i++)
    if (crosses(&record->messages[i])) {
      count++;
      sum += record->messages[i].nvalues;
    }
  EXPECT_EQUAL(count, messages);
  EXPECT_EQUAL(sum, values);
  EXPECT_EQUAL(statistics->off_node_messages, messages);
  EXPECT_EQUAL(statistics->off_node_bytes, 8 * values);
}

/* Procs(r): the ranks that r sends to. */
static void standard_exchange(void) {
  static const char *const procs[ROWS] = {"345", "03", "34", "02", "1", "0"};
  struct record record;
  struct swp_statistics statistics;
  run_example("direct", &record, &statistics);
  expect_traffic(&record, &statistics, 8, 8);
  for (int row = 0; row < ROWS; row++) {
    struct set set = {""};
    for (int i = 0; i < record.count; i++)
      if (record.messages[i].source == row)
        set_add(&set, record.messages[i].destination);
    expect_set("Procs", row, &set, procs[row]);
  }
}

/* Nodes(n), and Node_Data(n → m). */
static void check_nodes(const struct record *record) {
  static const char *const nodes[] = {"12", "02", "0"};
  static const char *const data[3][3] = {{"", "01", "0"}, {"3", "", "2"}, {"45", "", ""}};
  for (int n = 0; n < 3; n++) {
    struct set set = {""}, values[3] = {{""}, {""}, {""}};
    for (int i = 0; i < record->count; i++) {
      const struct message *message = &record->messages[i];
      if (message->source / 2 != n || !crosses(message))
        continue;
      set_add(&set, message->destination / 2);
      for (int k = 0; k < message->nvalues; k++)
        set_add(&values[message->destination / 2], (int)message->values[k]);
    }
    expect_set("Nodes", n, &set, nodes[n]);
    for (int m = 0; m < 3; m++)
      expect_set("Node_Data", 10 * n + m, &values[m], data[n][m]);
  }
}

/* Send_Nodes, Recv_Nodes and Global_Procs of each rank. */
static void check_ranks(const struct record *record) {
  static const char *const send_nodes[ROWS] = {"1", "2", "0", "2", "0", ""};
  static const char *const recv_nodes[ROWS] = {"1", "2", "", "0", "1", "0"};
  static const char *const global_procs[ROWS] = {"3", "5", "0", "4", "1", ""};
  for (int row = 0; row < ROWS; row++) {
    struct set send = {""}, recv = {""}, procs = {""};
    for (int i = 0; i < record->count; i++) {
      const struct message *message = &record->messages[i];
      if (crosses(message) && message->source == row) {
        set_add(&send, message->destination / 2);
        set_add(&procs, message->destination);
      }
      if (crosses(message) && message->destination == row)
        set_add(&recv, message->source / 2);
    }
    expect_set("Send_Nodes", row, &send, send_nodes[row]);
    expect_set("Recv_Nodes", row, &recv, recv_nodes[row]);
    expect_set("Global_Procs", row, &procs, global_procs[row]);
  }
}

/* Messages of one step on the node, "source>destination:values" each, by source. */
static void check_step(const struct record *record, int tag, const char *expected) {
  char text[256] = "";
  for (int source = 0; source < ROWS; source++)
    for (int i = 0; i < record->count; i++) {
      const struct message *message = &record->messages[i];
      size_t length = strlen(text);
      if (message->source != source || message->tag != tag || crosses(message))
        continue;
      length += (size_t)snprintf(text + length, sizeof text - length, "%d>%d:", source, message->destination);
      for (int k = 0; k < message->nvalues; k++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d", (int)message->values[k]);
      snprintf(text + length, sizeof text - length, " ");
    }
  EXPECT(strcmp(text, expected) == 0, "step %d sends %son the node, expected %s", tag, text, expected);
}

static void exchange_by_node(void) {
  struct record record;
  struct swp_statistics statistics;
  run_example("nap:sharing=no", &record, &statistics);
  expect_traffic(&record, &statistics, 5, 7);
  check_nodes(&record);
  check_ranks(&record);
  check_step(&record, TAG_GATHER, "0>1:0 1>0:1 2>3:2 3>2:3 5>4:5 ");
  check_step(&record, TAG_NODES, "1>0:1 2>3:2 3>2:3 "); /* what stays on the node */
  check_step(&record, TAG_DISTRIBUTE, "1>0:5 5>4:0 ");
}

/* Node 2 sends to one node only: its two ranks share that. */
static void exchange_by_shared_node(void) {
  struct record record;
  struct swp_statistics statistics;
  run_example("nap", &record, &statistics);
  expect_traffic(&record, &statistics, 6, 7);
  check_nodes(&record);
  for (int i = 0; i < record.count; i++)
    if (crosses(&record.messages[i]) && record.messages[i].source / 2 == 2) {
      EXPECT_EQUAL(record.messages[i].nvalues, 1);
      EXPECT_EQUAL(record.messages[i].values[0], record.messages[i].source); /* {4} by 4 and {5} by 5 */
    }
}

/* ---- Messages and values by the rules, for any traffic ---- */

/* Different items that a rank sends to the ranks of one node. */
static int64_t different_items(const struct row *row, const int *nodes, int node) {
  int64_t count = 0, different = 0;
  int64_t *items = test_allocate((size_t)row->offsets[row->nsends] * sizeof *items);
  for (int i = 0; i < row->nsends; i++)
    for (int64_t k = row->offsets[i]; nodes[row->ranks[i]] == node && k < row->offsets[i + 1]; k++)
      items[count++] = row->items[k];
  if (count > 0)
    qsort(items, (size_t)count, sizeof *items, swp_by_int64);
  for (int64_t k = 0; k < count; k++)
    different += k == 0 || items[k] != items[k - 1];
  free(items);
  return different;
}

struct expected {
  int64_t messages, values;
};

/* What must leave a node: a message for each other node, or with sharing one of each rank if that is more and
   there are values enough. */
static struct expected expected_of_node(const struct traffic *traffic, const int *nodes, int node,
                                        bool sharing) {
  struct expected expected = {0, 0};
  int size = 0;
  for (int rank = 0; rank < traffic->procs; rank++)
    size += nodes[rank] == node;
  for (int other = 0; other < traffic->procs; other++) {
    int64_t values = 0;
    for (int rank = 0; other != node && rank < traffic->procs; rank++)
      if (nodes[rank] == node)
        values += different_items(&traffic->rows[rank], nodes, other);
    expected.messages += values > 0;
    expected.values += values;
  }
  if (sharing && expected.messages > 0 && expected.messages < size)
    expected.messages = expected.values < size ? expected.values : size;
  return expected;
}

static void check_totals(const char *method, const struct family *family, int64_t item_bytes) {
  struct exchange_run run;
  test_case("%s, %s, %d ranks a node", method, family->name, oracle_hints.ppn);
  if (!run_open(&run, MPI_COMM_WORLD, method, family, 9, item_bytes, 0))
    return;
  int *nodes = nodes_of(run.comm);
  bool sharing = strcmp(method, "nap") == 0;
  struct swp_statistics plan, problem;
  struct expected expected = {0, 0};
  EXPECT_ERROR(swp_plan_statistics(run.plan, &problem, &plan), SWP_SUCCESS);
  for (int node = 0; node < run.traffic->procs; node++) {
    struct expected more = expected_of_node(run.traffic, nodes, node, sharing);
    expected.messages += more.messages;
    expected.values += more.values;
  }
  EXPECT_EQUAL(plan.off_node_messages, expected.messages);
  EXPECT_EQUAL(plan.off_node_bytes, expected.values * run.item_bytes);
  EXPECT_EQUAL(plan.stages, 3);
  if (problem.ppn == 1 && strcmp(family->name, "halo") != 0) { /* whose messages have items twice */
    EXPECT_EQUAL(plan.off_node_messages, problem.off_node_messages);
    EXPECT_EQUAL(plan.hop_bytes, problem.hop_bytes);
  }
  free(nodes);
  run_close(&run);
}

static void check_layouts(void) {
  for (oracle_hints.ppn = 1; oracle_hints.ppn <= 4; oracle_hints.ppn++)
    for (oracle_hints.placement = 0; oracle_hints.placement <= SWP_PLACEMENT_CYCLIC; oracle_hints.placement++)
      for (int i = 0; i < nfamilies; i++) {
        check_totals("nap:sharing=no", &families[i], 24);
        check_totals("nap", &families[i], 24);
        check_totals("nap", &families[i], FUSED);
      }
}

/* ---- Dealing ---- */

static void expect_lot(const struct lot *lot, int node, int first, int shares) {
  EXPECT_EQUAL(lot->node, node);
  EXPECT_EQUAL(lot->first, first);
  EXPECT_EQUAL(lot->shares, shares);
}

static void nodes_are_dealt_by_volume(void) {
  struct lot lots[] = {{.node = 5, .bytes = 8},
                       {.node = 2, .bytes = 24},
                       {.node = 3, .bytes = 8},
                       {.node = 9, .bytes = 16},
                       {.node = 7, .bytes = 80}};
  test_case("dealing five nodes to three ranks");
  swp_nap_deal_sends(lots, 5, 3, 8, true);
  expect_lot(&lots[0], 7, 0, 1);
  expect_lot(&lots[1], 2, 1, 1);
  expect_lot(&lots[2], 9, 2, 1);
  expect_lot(&lots[3], 3, 0, 1); /* equal volumes: the lower node first */
  expect_lot(&lots[4], 5, 1, 1);
  swp_nap_deal_receives(lots, 5, 3);
  expect_lot(&lots[0], 7, 2, 1);
  expect_lot(&lots[1], 2, 1, 1);
  expect_lot(&lots[2], 9, 0, 1);
  expect_lot(&lots[3], 3, 2, 1);
  expect_lot(&lots[4], 5, 1, 1);
}

static void ranks_left_over_share(void) {
  struct lot lots[] = {{.node = 1, .bytes = 16}, {.node = 4, .bytes = 80}, {.node = 6, .bytes = 8}};
  test_case("sharing three nodes among eight ranks");
  swp_nap_deal_sends(lots, 3, 8, 8, true); /* 10, 2 and 1 values */
  expect_lot(&lots[0], 4, 0, 6);           /* 10/5 = 2 ties with node 1, and is first */
  expect_lot(&lots[1], 1, 6, 1);
  expect_lot(&lots[2], 6, 7, 1);
  test_case("sharing few values");
  struct lot few[] = {{.node = 1, .bytes = 16}, {.node = 4, .bytes = 8}};
  swp_nap_deal_sends(few, 2, 8, 8, true); /* three values: no more than three shares */
  expect_lot(&few[0], 1, 0, 2);
  expect_lot(&few[1], 4, 2, 1);
}

static void shares_are_even_and_of_whole_items(void) {
  test_case("shares of ten items of 24 bytes");
  for (int shares = 1; shares <= 10; shares++)
    for (int share = 0; share < shares; share++) {
      int64_t begin = swp_nap_share_begin(240, 24, shares, share);
      int64_t items = (swp_nap_share_begin(240, 24, shares, share + 1) - begin) / 24;
      EXPECT_EQUAL(begin % 24, 0);
      EXPECT(items == 10 / shares || items == (10 + shares - 1) / shares, "share %d of %d has %d items",
             share, shares, (int)items);
    }
  EXPECT_EQUAL(swp_nap_share_begin(240, 24, 7, 0), 0);
  EXPECT_EQUAL(swp_nap_share_begin(240, 24, 7, 7), 240);
  EXPECT_EQUAL(swp_nap_share_begin(INT64_MAX / 8 * 8, 8, 1000, 1000), INT64_MAX / 8 * 8);
}

int main(int argc, char **argv) {
  int procs;
  test_begin(&argc, &argv, "swp_nap");
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  nodes_are_dealt_by_volume();
  ranks_left_over_share();
  shares_are_even_and_of_whole_items();
  oracle_hints.ppn = 2;
  for (int placement = 0; procs == ROWS && placement <= SWP_PLACEMENT_CYCLIC; placement++) {
    oracle_hints.placement = placement;
    standard_exchange();
    exchange_by_node();
    exchange_by_shared_node();
  }
  check_layouts();
  return test_end();
}
