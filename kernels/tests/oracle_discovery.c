/* Discoveries against the oracle. */
#include "oracle.h"

#include "nodes.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LATE_US = 1000 };

/* The messages that one rank sends in one call. */
struct outgoing {
  int count;
  int *ranks;
  int64_t *bytes;
  void **data;
};

static void fill_message(void *data, int64_t bytes, int source, int destination, uint64_t call) {
  test_fill(data, bytes, mix((uint64_t)source, (uint64_t)destination, call, 78));
}

static struct outgoing outgoing_new(const struct traffic *traffic, int rank, int64_t unit_bytes,
                                    uint64_t call) {
  const struct row *row = &traffic->rows[rank];
  size_t count = (size_t)row->nsends;
  struct outgoing out = {row->nsends, row->ranks, test_allocate(count * sizeof *out.bytes),
                         test_allocate(count * sizeof *out.data)};
  for (int i = 0; i < out.count; i++) {
    out.bytes[i] = row_items(row, i) * unit_bytes;
    out.data[i] = out.bytes[i] > 0 ? test_allocate((size_t)out.bytes[i]) : NULL;
    fill_message(out.data[i], out.bytes[i], rank, out.ranks[i], call);
  }
  return out;
}

/* Frees what was sent, overwritten before: it belongs to the caller again. */
static void outgoing_free(struct outgoing *out, int rank, uint64_t call) {
  for (int i = 0; i < out->count; i++) {
    unsigned char *expected = test_allocate((size_t)out->bytes[i]);
    fill_message(expected, out->bytes[i], rank, out->ranks[i], call);
    EXPECT(out->bytes[i] == 0 || memcmp(expected, out->data[i], (size_t)out->bytes[i]) == 0,
           "call %d: the message to rank %d was changed", (int)call, out->ranks[i]);
    free(expected);
    if (out->bytes[i] > 0)
      memset(out->data[i], 0x5a, (size_t)out->bytes[i]);
    free(out->data[i]);
  }
  free(out->bytes);
  free(out->data);
}

static void check_inbox(const swp_inbox *inbox, const struct traffic *traffic, int rank, int64_t unit_bytes,
                        uint64_t call) {
  int at = 0;
  for (int source = 0; source < traffic->procs; source++) {
    int message = traffic_find(traffic, source, rank);
    if (message < 0)
      continue;
    int64_t bytes = row_items(&traffic->rows[source], message) * unit_bytes;
    if (at >= inbox->nsources || inbox->sources[at] != source || inbox->bytes[at] != bytes) {
      EXPECT(at < inbox->nsources, "call %d: nothing from rank %d", (int)call, source);
      EXPECT(at >= inbox->nsources, "call %d: %d bytes from rank %d where %d from rank %d should be",
             (int)call, (int)inbox->bytes[at], inbox->sources[at], (int)bytes, source);
      return;
    }
    unsigned char *expected = test_allocate((size_t)bytes);
    fill_message(expected, bytes, source, rank, call);
    EXPECT(memcmp(expected, inbox->data[at], (size_t)bytes) == 0, "call %d: payload from rank %d is wrong",
           (int)call, source);
    EXPECT((uintptr_t)inbox->data[at] % 16 == 0, "call %d: data from rank %d are not aligned", (int)call,
           source);
    free(expected);
    at++;
  }
  EXPECT(inbox->nsources == at, "call %d: %d messages, expected %d", (int)call, inbox->nsources, at);
}

void discovery_execute(MPI_Comm comm, swp_plan *plan, const struct traffic *traffic, int64_t unit_bytes,
                       uint64_t call, swp_inbox **inbox) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  struct outgoing out = outgoing_new(traffic, rank, unit_bytes, call);
  int error =
      swp_discovery_execute(plan, out.count, out.ranks, out.bytes, (const void *const *)out.data, inbox);
  EXPECT_ERROR(error, SWP_SUCCESS);
  outgoing_free(&out, rank, call);
  if (error == SWP_SUCCESS)
    check_inbox(*inbox, traffic, rank, unit_bytes, call);
}

swp_plan *discovery_open(MPI_Comm comm, const char *method) {
  swp_plan *plan = NULL;
  if (!nodes_suffice(comm, method)) {
    EXPECT_ERROR(swp_discovery_plan(comm, method, &oracle_hints, &plan), SWP_ERR_NOT_APPLICABLE);
    return NULL;
  }
  EXPECT_ERROR(test_agreed(comm, swp_discovery_plan(comm, method, &oracle_hints, &plan)), SWP_SUCCESS);
  return plan;
}

void check_discovery(MPI_Comm comm, const char *method, const struct family *family, int64_t unit_bytes) {
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  test_case("discovery %s, %s, units of %d bytes", method, family->name, (int)unit_bytes);
  swp_plan *plan = discovery_open(comm, method);
  if (plan == NULL)
    return;
  struct traffic *traffic = traffic_new(family, procs, 5);
  swp_inbox *kept = NULL, *reused = NULL;
  discovery_execute(comm, plan, traffic, unit_bytes, 0, &kept);
  if (rank == procs / 2)
    usleep(LATE_US);
  discovery_execute(comm, plan, traffic, unit_bytes, 1, &reused);
  discovery_execute(comm, plan, traffic, unit_bytes, 2, &reused);
  check_inbox(kept, traffic, rank, unit_bytes, 0); /* later calls leave it alone */
  swp_inbox_free(&reused);
  EXPECT(reused == NULL, "swp_inbox_free left the pointer");
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  check_inbox(kept, traffic, rank, unit_bytes, 0); /* it outlives its plan */
  swp_inbox_free(&kept);
  traffic_free(traffic);
}

void check_discovery_during_exchange(MPI_Comm comm, const char *exchange, const char *discovery) {
  struct exchange_run run;
  swp_inbox *inbox = NULL;
  test_case("discovery %s during exchange %s", discovery, exchange);
  swp_plan *plan = discovery_open(comm, discovery);
  if (plan == NULL || !run_open(&run, comm, exchange, &families[0], 11, 24, 0)) {
    swp_plan_free(&plan);
    return;
  }
  for (uint64_t call = 0; call < 3; call++) {
    struct traffic *traffic = traffic_new(&families[0], run.traffic->procs, call);
    run_fill(&run, call);
    EXPECT_ERROR(run_start(&run), SWP_SUCCESS);
    discovery_execute(comm, plan, traffic, 24, call, &inbox);
    EXPECT_ERROR(swp_wait(run.plan), SWP_SUCCESS);
    run_check(&run, call);
    traffic_free(traffic);
  }
  run_close(&run);
  swp_inbox_free(&inbox);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}

void check_discovery_repeated(MPI_Comm comm, const char *method, double seconds) {
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  test_case("discovery %s, back to back", method);
  swp_plan *plan = discovery_open(comm, method);
  if (plan == NULL)
    return;
  swp_inbox *inbox = NULL;
  int calls = AT_LEAST;
  double start = MPI_Wtime();
  for (int call = 0; call < calls; call++) {
    /* Mostly random traffic; every eighth call of another family, the empty one among them. */
    const struct family *family = &families[call % 8 == 7 ? call / 8 % nfamilies : 0];
    struct traffic *traffic = traffic_new(family, procs, (uint64_t)call);
    if (mix((uint64_t)rank, (uint64_t)call, 8, 0) % 64 == 0)
      usleep(200);
    discovery_execute(comm, plan, traffic, 1 + call % 13, (uint64_t)call, &inbox);
    traffic_free(traffic);
    if (call == AT_LEAST - 1)
      calls = repetitions(comm, MPI_Wtime() - start, seconds);
  }
  swp_inbox_free(&inbox);
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
}
