/* Exchanges against the oracle. */
#include "oracle.h"

#include "nodes.h"
#include "plan.h"
#include "sharing.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const int64_t field_bytes[FIELDS] = {3, 24, 1, 8};

enum { GUARD_BYTES = 64, GUARD = 0xa7, UNTOUCHED = 0x3c, LATE_US = 1000, MOST_REPETITIONS = 3000 };

/* Item `item` of rank `source` in call `call`. Fields of one size would differ, too. */
static void fill_item(unsigned char *item_data, int64_t item_bytes, int source, int64_t item, uint64_t call) {
  test_fill(item_data, item_bytes, mix((uint64_t)source, (uint64_t)item, call, 77 + (uint64_t)item_bytes));
}

static int count_buffers(const struct exchange_run *run) {
  return run->nfields > 0 ? run->nfields : 1;
}

static size_t send_bytes(const struct exchange_run *run, const struct field_run *field) {
  return (size_t)(run->traffic->rows[run->rank].nitems * field->item_bytes);
}

static size_t recv_bytes(const struct exchange_run *run, const struct field_run *field) {
  return (size_t)(run->recv_items * field->item_bytes);
}

static unsigned char *guarded(size_t bytes) {
  unsigned char *memory = test_allocate(bytes + 2 * GUARD_BYTES);
  memset(memory, GUARD, bytes + 2 * GUARD_BYTES);
  return memory + GUARD_BYTES;
}

static bool guards_hold(const unsigned char *buffer, size_t bytes) {
  for (int i = 0; i < GUARD_BYTES; i++)
    if (buffer[-1 - i] != GUARD || buffer[bytes + (size_t)i] != GUARD)
      return false;
  return true;
}

/* In some calls memory of the plan is sent from, which may change. */
static void choose_buffer(struct exchange_run *run, uint64_t call) {
  void *buffer;
  for (int f = 0; f < count_buffers(run); f++)
    run->fields[f].from = run->fields[f].send;
  if (run->nfields > 0 || call % 3 != 2)
    return;
  EXPECT_ERROR(swp_exchange_buffer(run->plan, &buffer), SWP_SUCCESS);
  run->fields[0].from = buffer;
}

/* Returns whether a message between ranks of a node is so small that it goes by memory. */
static bool any_is_small(const struct exchange_run *run, const int *nodes) {
  for (int source = 0; source < run->traffic->procs; source++) {
    const struct row *row = &run->traffic->rows[source];
    for (int i = 0; i < row->nsends; i++) {
      const int64_t bytes = row_items(row, i) * run->item_bytes;
      const bool is_near = nodes[row->ranks[i]] == nodes[source];
      if (row->ranks[i] != source && is_near && bytes > 0 && bytes <= SHARING_BYTES)
        return true;
    }
  }
  return false;
}

enum answer { NO, YES, MAYBE };

/* Returns whether the method is applicable to the traffic. What a node gathers and distributes may or may not
   fit into slots: that depends on how nodes are dealt. */
static enum answer can_be_planned(const struct exchange_run *run, const char *method) {
  const bool is_shared = strcmp(method, "shared") == 0;
  if (!is_shared && !needs_nodes(method))
    return YES;
  if (!nodes_suffice(run->comm, method))
    return NO;
  int *nodes = nodes_of(run->comm);
  const enum answer answer = any_is_small(run, nodes) ? YES : is_shared ? NO : MAYBE;
  free(nodes);
  return answer;
}

static void make_buffers(struct exchange_run *run) {
  for (int f = 0; f < count_buffers(run); f++) {
    struct field_run *field = &run->fields[f];
    field->send = guarded(send_bytes(run, field));
    field->recv = guarded(recv_bytes(run, field));
  }
}

static void list_buffers(const struct exchange_run *run, const void **send, void **recv) {
  for (int f = 0; f < run->nfields; f++) {
    send[f] = run->fields[f].from;
    recv[f] = run->fields[f].recv;
  }
}

static int plan_run(struct exchange_run *run, const struct swp_exchange *problem, const char *method) {
  return run->nfields > 0
             ? swp_fields_plan(run->comm, problem, FIELDS, field_bytes, method, &oracle_hints, &run->plan)
             : swp_exchange_plan(run->comm, problem, method, &oracle_hints, &run->plan);
}

bool run_open(struct exchange_run *run, MPI_Comm comm, const char *method, const struct family *family,
              uint64_t seed, int64_t item_bytes, int64_t gap) {
  int procs;
  MPI_Comm_rank(comm, &run->rank);
  MPI_Comm_size(comm, &procs);
  run->comm = comm;
  run->traffic = traffic_new(family, procs, seed);
  run->nfields = item_bytes == FUSED ? FIELDS : 0;
  run->item_bytes = 0;
  for (int f = 0; f < count_buffers(run); f++) {
    run->fields[f].item_bytes = run->nfields > 0 ? field_bytes[f] : item_bytes;
    run->item_bytes += run->fields[f].item_bytes;
  }
  run->gap = gap;
  struct swp_exchange problem = exchange_of(run->traffic, run->rank, item_bytes, gap);
  run->recv_items = problem.nrecvs > 0 ? problem.recv_offsets[problem.nrecvs] : 0;
  int error = test_agreed(comm, plan_run(run, &problem, method));
  exchange_free(&problem);
  const enum answer answer = can_be_planned(run, method);
  if (answer != MAYBE || error != SWP_ERR_NOT_APPLICABLE)
    EXPECT_ERROR(error, answer == NO ? SWP_ERR_NOT_APPLICABLE : SWP_SUCCESS);
  if (error != SWP_SUCCESS) {
    traffic_free(run->traffic);
    return false;
  }
  make_buffers(run);
  return true;
}

int run_execute(struct exchange_run *run) {
  const void *send[FIELDS];
  void *recv[FIELDS];
  if (run->nfields == 0)
    return swp_exchange_execute(run->plan, run->fields[0].from, run->fields[0].recv);
  list_buffers(run, send, recv);
  return swp_fields_execute(run->plan, send, recv);
}

int run_start(struct exchange_run *run) {
  const void *send[FIELDS];
  void *recv[FIELDS];
  if (run->nfields == 0)
    return swp_exchange_start(run->plan, run->fields[0].from, run->fields[0].recv);
  list_buffers(run, send, recv);
  return swp_fields_start(run->plan, send, recv);
}

void run_fill(struct exchange_run *run, uint64_t call) {
  choose_buffer(run, call);
  for (int f = 0; f < count_buffers(run); f++) {
    struct field_run *field = &run->fields[f];
    for (int64_t item = 0; item < run->traffic->rows[run->rank].nitems; item++)
      fill_item(field->from + item * field->item_bytes, field->item_bytes, run->rank, item, call);
    memset(field->recv, UNTOUCHED, recv_bytes(run, field));
  }
}

static bool filled_with(const unsigned char *buffer, int64_t bytes, unsigned char value) {
  for (int64_t i = 0; i < bytes; i++)
    if (buffer[i] != value)
      return false;
  return true;
}

/* Compares what came from one source, in the receive buffer at item `first`; gives how many items it is. */
static int64_t check_message(const struct exchange_run *run, const struct field_run *field, int source,
                             int64_t first, uint64_t call) {
  int message = traffic_find(run->traffic, source, run->rank);
  if (message < 0)
    return 0;
  const struct row *row = &run->traffic->rows[source];
  int64_t count = row_items(row, message);
  const size_t item_bytes = (size_t)field->item_bytes;
  unsigned char *expected = test_allocate(item_bytes);
  for (int64_t i = 0; i < count; i++) {
    int64_t item = row->items[row->offsets[message] + i];
    fill_item(expected, field->item_bytes, source, item, call);
    bool same = memcmp(field->recv + (first + i) * field->item_bytes, expected, item_bytes) == 0;
    EXPECT(same, "call %d: item %d of %d from rank %d is wrong, of %d bytes", (int)call, (int)i, (int)count,
           source, (int)item_bytes);
    if (!same)
      break;
  }
  free(expected);
  return count;
}

static void check_field(const struct exchange_run *run, const struct field_run *field, uint64_t call) {
  int procs = run->traffic->procs;
  int64_t first = run->gap;
  for (int i = 0; i < procs; i++) /* the order in which exchange_of lists the receives */
    first += check_message(run, field, (run->rank + procs - i) % procs, first, call);
  if (run->recv_items > 0)
    EXPECT(filled_with(field->recv, run->gap * field->item_bytes, UNTOUCHED),
           "call %d: wrote before the first receive", (int)call);
  EXPECT(guards_hold(field->recv, recv_bytes(run, field)), "call %d: wrote outside the receive buffer",
         (int)call);

  const size_t item_bytes = (size_t)field->item_bytes;
  unsigned char *expected = test_allocate(item_bytes);
  bool unchanged = guards_hold(field->send, send_bytes(run, field));
  for (int64_t item = 0; item < run->traffic->rows[run->rank].nitems; item++) {
    fill_item(expected, field->item_bytes, run->rank, item, call);
    unchanged = unchanged && memcmp(field->from + item * field->item_bytes, expected, item_bytes) == 0;
  }
  EXPECT(unchanged, "call %d: the send buffer was changed", (int)call);
  free(expected);
}

void run_check(const struct exchange_run *run, uint64_t call) {
  for (int f = 0; f < count_buffers(run); f++)
    check_field(run, &run->fields[f], call);
}

static void free_buffers(struct exchange_run *run) {
  for (int f = 0; f < count_buffers(run); f++) {
    free(run->fields[f].send - GUARD_BYTES);
    free(run->fields[f].recv - GUARD_BYTES);
  }
}

/* Other buffers, so that a plan which remembers the first ones is found out. */
static void run_move_buffers(struct exchange_run *run) {
  struct exchange_run before = *run;
  make_buffers(run);
  free_buffers(&before);
}

void run_close(struct exchange_run *run) {
  EXPECT_ERROR(swp_plan_free(&run->plan), SWP_SUCCESS);
  EXPECT(run->plan == NULL, "swp_plan_free left the pointer");
  free_buffers(run);
  traffic_free(run->traffic);
}

static void check_layout(const struct swp_statistics *problem, const int *nodes) {
  int count = 0, most = 0;
  for (int node = 0; node < problem->procs; node++) {
    int ranks = 0;
    for (int rank = 0; rank < problem->procs; rank++)
      ranks += nodes[rank] == node;
    count += ranks > 0;
    most = ranks > most ? ranks : most;
  }
  EXPECT_EQUAL(problem->nodes, count);
  EXPECT_EQUAL(problem->ppn, most);
}

/* The features of the problem, from the traffic alone. */
static void check_features(const struct exchange_run *run) {
  struct swp_statistics problem;
  EXPECT_ERROR(swp_plan_statistics(run->plan, &problem, NULL), SWP_SUCCESS);
  int procs = run->traffic->procs, *nodes = nodes_of(run->comm);
  int64_t messages = 0, bytes = 0, mmax = 0, vmax = 0, off_messages = 0, off_bytes = 0, off_mmax = 0,
          off_vmax = 0;
  for (int source = 0; source < run->traffic->procs; source++) {
    const struct row *row = &run->traffic->rows[source];
    int64_t m = 0, v = 0, off_m = 0, off_v = 0;
    for (int i = 0; i < row->nsends; i++)
      if (row->ranks[i] != source && row_items(row, i) > 0) {
        bool off = nodes[source] != nodes[row->ranks[i]];
        m++;
        v += row_items(row, i) * run->item_bytes;
        off_m += off;
        off_v += off ? row_items(row, i) * run->item_bytes : 0;
      }
    messages += m;
    bytes += v;
    off_messages += off_m;
    off_bytes += off_v;
    mmax = m > mmax ? m : mmax;
    vmax = v > vmax ? v : vmax;
    off_mmax = off_m > off_mmax ? off_m : off_mmax;
    off_vmax = off_v > off_vmax ? off_v : off_vmax;
  }
  EXPECT_EQUAL(problem.procs, procs);
  EXPECT_EQUAL(problem.on_node_messages, messages - off_messages);
  EXPECT_EQUAL(problem.off_node_messages, off_messages);
  EXPECT_EQUAL(problem.on_node_bytes, bytes - off_bytes);
  EXPECT_EQUAL(problem.off_node_bytes, off_bytes);
  EXPECT_EQUAL(problem.off_node_mmax, off_mmax);
  EXPECT_EQUAL(problem.off_node_vmax_bytes, off_vmax);
  check_layout(&problem, nodes);
  free(nodes);
  EXPECT_EQUAL(problem.mmax, mmax);
  EXPECT_EQUAL(problem.vmax_bytes, vmax);
  EXPECT(problem.mavg == (double)messages / procs, "mavg is %g of %d messages", problem.mavg, (int)messages);
  EXPECT(problem.vavg_bytes == (double)bytes / procs, "vavg is %g of %d bytes", problem.vavg_bytes,
         (int)bytes);
}

/* Starts, polls and waits; half of the ranks see it done in swp_test, the others in swp_wait. */
static void start_test_wait(struct exchange_run *run) {
  int done = 0;
  EXPECT_ERROR(run_start(run), SWP_SUCCESS);
  for (int i = 0; !done && (run->rank % 2 == 0 || i < 3); i++)
    EXPECT_ERROR(swp_test(run->plan, &done), SWP_SUCCESS);
  if (!done)
    EXPECT_ERROR(swp_wait(run->plan), SWP_SUCCESS);
}

void check_exchange(MPI_Comm comm, const char *method, const struct family *family, int64_t item_bytes) {
  enum { GAP = 3 };
  struct exchange_run run;
  test_case("exchange %s, %s, items of %d bytes%s", method, family->name, (int)item_bytes,
            item_bytes == FUSED ? ": fields" : "");
  if (!run_open(&run, comm, method, family, 5, item_bytes, GAP))
    return;
  check_features(&run);
  for (uint64_t call = 0; call < 3; call++) {
    run_fill(&run, call);
    if (call == 1 && run.rank == run.traffic->procs / 2)
      usleep(LATE_US);
    EXPECT_ERROR(run_execute(&run), SWP_SUCCESS);
    run_check(&run, call);
    if (call == 1)
      run_move_buffers(&run);
  }
  run_fill(&run, 3);
  start_test_wait(&run);
  run_check(&run, 3);
  run_close(&run);
}

int repetitions(MPI_Comm comm, double elapsed_s, double seconds) {
  double count = seconds / (elapsed_s / AT_LEAST + 1e-9);
  int fit = count < MOST_REPETITIONS ? (int)count : MOST_REPETITIONS;
  MPI_Bcast(&fit, 1, MPI_INT, 0, comm);
  return fit > AT_LEAST ? fit : AT_LEAST;
}

void check_exchange_repeated(MPI_Comm comm, const char *method, double seconds) {
  struct exchange_run run;
  test_case("exchange %s, back to back", method);
  if (!run_open(&run, comm, method, &families[0], 6, 24, 0))
    return;
  int calls = AT_LEAST;
  double start = MPI_Wtime();
  for (int call = 0; call < calls; call++) {
    run_fill(&run, (uint64_t)call);
    if (mix((uint64_t)run.rank, (uint64_t)call, 8, 0) % 64 == 0)
      usleep(200);
    EXPECT_ERROR(run_execute(&run), SWP_SUCCESS);
    run_check(&run, (uint64_t)call);
    if (call == AT_LEAST - 1)
      calls = repetitions(comm, MPI_Wtime() - start, seconds);
  }
  run_close(&run);
}

void check_exchange_crossing(MPI_Comm comm, const char *method, const struct family *family) {
  struct exchange_run run;
  test_case("exchange %s, %s, waits that cross barriers", method, family->name);
  if (!run_open(&run, comm, method, family, 7, 24, 0))
    return;
  for (uint64_t call = 0; call < 6 && !run.plan->forwards; call++) {
    const bool waits_first = (run.rank + (int)call) % 2 == 0;
    run_fill(&run, call);
    EXPECT_ERROR(run_start(&run), SWP_SUCCESS);
    if (waits_first)
      EXPECT_ERROR(swp_wait(run.plan), SWP_SUCCESS);
    MPI_Barrier(comm);
    if (!waits_first)
      EXPECT_ERROR(swp_wait(run.plan), SWP_SUCCESS);
    run_check(&run, call);
  }
  run_close(&run);
}

/* What a rank may do in any order once two exchanges and a message are under way. */
enum { WAIT_FIRST, WAIT_SECOND, BARRIER, RECEIVE, ACTIONS, ORDERS = 24 };

/* The order-th permutation of the actions. */
static void order_actions(int order, int actions[ACTIONS]) {
  for (int i = 0; i < ACTIONS; i++)
    actions[i] = i;
  for (int left = ACTIONS; left > 1; order /= left, left--) {
    const int other = order % left, action = actions[left - 1];
    actions[left - 1] = actions[other];
    actions[other] = action;
  }
}

static void act_in_order(struct exchange_run runs[2], int order) {
  int actions[ACTIONS], procs, sent = runs[0].rank, received = -1;
  MPI_Comm comm = runs[0].comm;
  MPI_Request request;
  MPI_Comm_size(comm, &procs);
  order_actions(order, actions);
  MPI_Isend(&sent, 1, MPI_INT, (sent + 1) % procs, 0, comm, &request);
  for (int i = 0; i < ACTIONS; i++)
    if (actions[i] == BARRIER)
      MPI_Barrier(comm);
    else if (actions[i] == RECEIVE)
      MPI_Recv(&received, 1, MPI_INT, (sent + procs - 1) % procs, 0, comm, MPI_STATUS_IGNORE);
    else
      EXPECT_ERROR(swp_wait(runs[actions[i] == WAIT_SECOND].plan), SWP_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQUAL(received, (sent + procs - 1) % procs);
}

void check_exchange_orders(MPI_Comm comm, const char *const methods[2], bool every) {
  struct exchange_run runs[2];
  int opened = 0;
  test_case("exchanges %s and %s, waits in every order", methods[0], methods[1]);
  while (opened < 2 && run_open(&runs[opened], comm, methods[opened], &families[0], (uint64_t)opened,
                                opened == 0 ? 24 : FUSED, 0))
    opened++;
  const bool may = opened == 2 && !runs[0].plan->forwards && !runs[1].plan->forwards;
  for (int call = 0; may && call < (every ? ORDERS * ORDERS : ORDERS); call++) {
    for (int i = 0; i < 2; i++) {
      const int k = (i + runs[0].rank + call / 2) % 2; /* started in another order, too */
      run_fill(&runs[k], (uint64_t)call);
      EXPECT_ERROR(run_start(&runs[k]), SWP_SUCCESS);
    }
    /* Odd ranks take another order than even ones in each of the first calls; all calls take every pair. */
    act_in_order(runs, (runs[0].rank % 2 == 0 ? call : 5 * call + 1 + call / ORDERS) % ORDERS);
    for (int i = 0; i < 2; i++)
      run_check(&runs[i], (uint64_t)call);
  }
  for (int i = 0; i < opened; i++)
    run_close(&runs[i]);
}

void check_exchange_outstanding(MPI_Comm comm, const char *const methods[3]) {
  struct exchange_run runs[3];
  int opened = 0;
  test_case("exchanges %s, %s and %s at the same time", methods[0], methods[1], methods[2]);
  while (opened < 3 && run_open(&runs[opened], comm, methods[opened], &families[opened * 4 % nfamilies],
                                (uint64_t)opened, opened == 1 ? FUSED : 8, 0))
    opened++;
  for (uint64_t call = 0; opened == 3 && call < 8; call++) {
    for (int i = 0; i < 3; i++) {
      run_fill(&runs[i], call + 10 * (uint64_t)i);
      EXPECT_ERROR(run_start(&runs[i]), SWP_SUCCESS);
    }
    /* In an order that differs between ranks: poll all, or wait for one after the other. */
    int done[3] = {0, 0, 0};
    int first = (int)(mix((uint64_t)runs[0].rank, call, 9, 0) % 3),
        step = 1 + (runs[0].rank + (int)call / 2) % 2;
    for (int k = first; call % 2 == 0 && done[0] + done[1] + done[2] < 3; k++)
      if (!done[k % 3])
        EXPECT_ERROR(swp_test(runs[k % 3].plan, &done[k % 3]), SWP_SUCCESS);
    for (int k = 0; call % 2 == 1 && k < 3; k++)
      EXPECT_ERROR(swp_wait(runs[(first + k * step) % 3].plan), SWP_SUCCESS);
    for (int i = 0; i < 3; i++)
      run_check(&runs[i], call + 10 * (uint64_t)i);
  }
  for (int i = 0; i < opened; i++)
    run_close(&runs[i]);
}
