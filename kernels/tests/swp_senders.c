/*
 * Logs who sends to whom: executes one call of each method of an operation, on virtual nodes of PPN ranks,
 * and prints what each rank does in order. tests/kernels/senders.py draws it. A second call is logged, so
 * that nothing of the planning is. Linked with --wrap for each collective that methods are made of.
 *
 *   swp_senders OPERATION PPN [METHOD...]
 */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 256, MOST_REQUESTS = 64, MOST_RANKS = 64, BLOCK = 8 /* items */ };

/* What a rank does: "send" and "receive" with a peer, or a collective with all `members` (a bit for each
   rank) and from or to the root `peer`, -1 if it has none. */
struct event {
  char what[24];
  int peer, tag;
  uint64_t members;
};

static int rank, procs;
static bool recording;
static int nevents;
static struct event events[MOST_EVENTS];

/* Receives that are not complete. */
static int nposted;
static struct {
  MPI_Request request;
  int source, tag;
} posted[MOST_REQUESTS];

static int in_world(int peer, MPI_Comm comm) {
  MPI_Group group, world;
  int there;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, 1, &peer, world, &there);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return there;
}

static void note(const char *what, int peer, int tag, uint64_t members) {
  if (!recording)
    return;
  EXPECT(nevents < MOST_EVENTS, "too many events");
  if (nevents == MOST_EVENTS)
    return;
  struct event *event = &events[nevents++];
  *event = (struct event){.peer = peer, .tag = tag, .members = members};
  snprintf(event->what, sizeof event->what, "%s", what);
}

/* ---- Messages ---- */

static void note_send(int destination, int tag, MPI_Comm comm) {
  note("send", in_world(destination, comm), tag, 0);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request) {
  note_send(destination, tag, comm);
  return PMPI_Isend(buffer, count, type, destination, tag, comm, request);
}

int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
               MPI_Request *request) {
  note_send(destination, tag, comm);
  return PMPI_Issend(buffer, count, type, destination, tag, comm, request);
}

int MPI_Put(const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,
            MPI_Datatype target_type, MPI_Win window) {
  note("put", target, 0, 0); /* windows are of the plan's ranks */
  return PMPI_Put(buffer, count, type, target, place, target_count, target_type, window);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request) {
  int error = PMPI_Irecv(buffer, count, type, source, tag, comm, request);
  if (!recording)
    return error;
  EXPECT(nposted < MOST_REQUESTS && source != MPI_ANY_SOURCE, "a receive that is not logged");
  if (nposted < MOST_REQUESTS && source != MPI_ANY_SOURCE) {
    posted[nposted].request = *request;
    posted[nposted].source = in_world(source, comm);
    posted[nposted++].tag = tag;
  }
  return error;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status) {
  note("receive", in_world(source, comm), tag, 0);
  return PMPI_Recv(buffer, count, type, source, tag, comm, status);
}

/* Notes the receives among requests that are complete. */
static void note_complete(int count, const MPI_Request *requests) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < nposted; k++)
      if (posted[k].request == requests[i]) {
        note("receive", posted[k].source, posted[k].tag, 0);
        posted[k] = posted[--nposted];
        break;
      }
}

static void copy_requests(int count, const MPI_Request *requests, MPI_Request copy[MOST_REQUESTS]) {
  EXPECT(count <= MOST_REQUESTS, "%d requests", count);
  memcpy(copy, requests, (size_t)(count <= MOST_REQUESTS ? count : MOST_REQUESTS) * sizeof *copy);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  const MPI_Request before = *request;
  int error = PMPI_Wait(request, status);
  note_complete(1, &before);
  return error;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  MPI_Request before[MOST_REQUESTS];
  copy_requests(count, requests, before);
  int error = PMPI_Waitall(count, requests, statuses);
  note_complete(count, before);
  return error;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
  const MPI_Request before = *request;
  int error = PMPI_Test(request, done, status);
  note_complete(*done ? 1 : 0, &before);
  return error;
}

int MPI_Testall(int count, MPI_Request requests[], int *done, MPI_Status statuses[]) {
  MPI_Request before[MOST_REQUESTS];
  copy_requests(count, requests, before);
  int error = PMPI_Testall(count, requests, done, statuses);
  note_complete(*done ? count : 0, before);
  return error;
}

/* ---- Collectives on some of the ranks ---- */

static void note_collective(const char *what, MPI_Comm comm, int root) {
  int size;
  uint64_t members = 0;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < size; i++)
    members |= UINT64_C(1) << in_world(i, comm);
  note(what, root < 0 ? root : in_world(root, comm), 0, members);
}

#define WRAP(name, parameters, arguments, comm, root)                                                        \
  int __real_PMPI_##name parameters;                                                                         \
  int __wrap_PMPI_##name parameters;                                                                         \
  int __wrap_PMPI_##name parameters {                                                                        \
    note_collective(#name, comm, root);                                                                      \
    return __real_PMPI_##name arguments;                                                                     \
  }

WRAP(Barrier, (MPI_Comm c), (c), c, -1)
WRAP(Bcast, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c), c, r)
WRAP(Gather, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r, MPI_Comm c),
     (s, n, t, d, m, u, r, c), c, r)
WRAP(Gatherv,
     (const void *s, int n, MPI_Datatype t, void *d, const int *m, const int *p, MPI_Datatype u, int r,
      MPI_Comm c),
     (s, n, t, d, m, p, u, r, c), c, r)
WRAP(Scatter, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r, MPI_Comm c),
     (s, n, t, d, m, u, r, c), c, r)
WRAP(Reduce, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, int r, MPI_Comm c),
     (s, d, n, t, o, r, c), c, r)
WRAP(Allreduce, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c), c,
     -1)
WRAP(Allgather, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
     (s, n, t, d, m, u, c), c, -1)
WRAP(Allgatherv,
     (const void *s, int n, MPI_Datatype t, void *d, const int *m, const int *p, MPI_Datatype u, MPI_Comm c),
     (s, n, t, d, m, p, u, c), c, -1)
WRAP(Alltoall, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
     (s, n, t, d, m, u, c), c, -1)
WRAP(Reduce_scatter_block, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
     (s, d, n, t, o, c), c, -1)
WRAP(Scatterv,
     (const void *s, const int *n, const int *p, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r,
      MPI_Comm c),
     (s, n, p, t, d, m, u, r, c), c, r)
WRAP(Reduce_scatter, (const void *s, void *d, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
     (s, d, n, t, o, c), c, -1)
WRAP(Alltoallv,
     (const void *s, const int *n, const int *p, MPI_Datatype t, void *d, const int *m, const int *q,
      MPI_Datatype u, MPI_Comm c),
     (s, n, p, t, d, m, q, u, c), c, -1)

/* ---- Calls ---- */

/* An exchange or discovery sends a block to the ranks that are so many places further; other blocks have an
   item for each rank, so that all pieces of a vector have something. */
static const int distances[] = {1, 2, 3};

enum { DEGREE = sizeof distances / sizeof distances[0] };

static int to[DEGREE], from[DEGREE], *counts, *displs;
static int64_t offsets[DEGREE + 1], *send, *recv;

static void make_arguments(void) {
  const size_t ranks = (size_t)procs;
  send = test_allocate(ranks * BLOCK * sizeof *send);
  recv = test_allocate(ranks * BLOCK * sizeof *recv);
  memset(send, 0, ranks * BLOCK * sizeof *send);
  counts = test_allocate(ranks * sizeof *counts);
  displs = test_allocate(ranks * sizeof *displs);
  for (int i = 0; i < procs; i++)
    counts[i] = BLOCK, displs[i] = i * BLOCK;
  for (int i = 0; i < DEGREE; i++) {
    to[i] = (rank + distances[i]) % procs;
    from[i] = (rank - distances[i] + procs) % procs;
    offsets[i + 1] = offsets[i] + BLOCK;
  }
}

static int plan_call(enum swp_operation operation, const char *method, const struct swp_hints *hints,
                     swp_plan **plan) {
  if (operation == SWP_DISCOVERY)
    return swp_discovery_plan(MPI_COMM_WORLD, method, hints, plan);
  if (operation == SWP_EXCHANGE) {
    struct swp_exchange problem = {.item_bytes = sizeof *send,
                                   .nitems = offsets[DEGREE],
                                   .nsends = DEGREE,
                                   .send_ranks = to,
                                   .send_offsets = offsets,
                                   .nrecvs = DEGREE,
                                   .recv_ranks = from,
                                   .recv_offsets = offsets};
    return swp_exchange_plan(MPI_COMM_WORLD, &problem, method, hints, plan);
  }
  struct swp_collective problem = {operation, BLOCK,   MPI_INT64_T, BLOCK,  MPI_INT64_T, counts,
                                   displs,    MPI_SUM, 0,           counts, displs};
  return swp_collective_plan(MPI_COMM_WORLD, &problem, method, hints, plan);
}

static int discover(swp_plan *plan) {
  int64_t bytes[DEGREE];
  const void *data[DEGREE];
  swp_inbox *inbox = NULL;
  for (int i = 0; i < DEGREE; i++)
    bytes[i] = BLOCK * (int64_t)sizeof *send, data[i] = send + offsets[i];
  int error = swp_discovery_execute(plan, DEGREE, to, bytes, data, &inbox);
  swp_inbox_free(&inbox);
  return error;
}

static void print_events(const char *method) {
  struct event *all = test_allocate((size_t)procs * sizeof events);
  int *each = test_allocate((size_t)procs * sizeof *each);
  MPI_Gather(&nevents, 1, MPI_INT, each, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Gather(events, sizeof events, MPI_BYTE, all, sizeof events, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < procs; r++)
    for (int i = 0; i < each[r]; i++) {
      const struct event *event = &all[r * MOST_EVENTS + i];
      printf("%s %d %s %d %d %llu\n", method, r, event->what, event->peer, event->tag,
             (unsigned long long)event->members);
    }
  free(all);
  free(each);
}

static void log_method(enum swp_operation operation, const char *method, int ppn) {
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  swp_plan *plan = NULL;
  hints.ppn = ppn;
  test_case("%s %s", swp_operation_name(operation), method);
  int error = test_agreed(MPI_COMM_WORLD, plan_call(operation, method, &hints, &plan));
  if (error == SWP_ERR_NOT_APPLICABLE)
    return;
  EXPECT_ERROR(error, SWP_SUCCESS);
  for (int turn = 0; turn < 2 && plan != NULL; turn++) {
    MPI_Barrier(MPI_COMM_WORLD);
    nevents = nposted = 0;
    recording = turn == 1;
    error = operation == SWP_DISCOVERY  ? discover(plan)
            : operation == SWP_EXCHANGE ? swp_exchange_execute(plan, send, recv)
                                        : swp_collective_execute(plan, send, recv);
    recording = false;
    EXPECT_ERROR(error, SWP_SUCCESS);
    EXPECT_EQUAL(nposted, 0);
  }
  EXPECT_ERROR(swp_plan_free(&plan), SWP_SUCCESS);
  print_events(method);
}

int main(int argc, char **argv) {
  int operation = 0;
  test_begin(&argc, &argv, "swp_senders");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  while (argc > 1 && operation <= SWP_BARRIER && strcmp(swp_operation_name(operation), argv[1]) != 0)
    operation++;
  if (argc < 3 || operation > SWP_BARRIER || procs <= distances[DEGREE - 1] || procs > MOST_RANKS) {
    fprintf(stderr, "usage: swp_senders OPERATION PPN [METHOD...], on 4 to %d ranks\n", MOST_RANKS);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  make_arguments();
  char *specs = all_specs((enum swp_operation)operation, procs);
  if (argc == 3)
    for (char *rest = specs, *spec; (spec = strtok_r(rest, " ", &rest)) != NULL;)
      if (strncmp(spec, "vendor", 6) != 0) /* whose messages the MPI library hides */
        log_method((enum swp_operation)operation, spec, atoi(argv[2]));
  for (int i = 3; i < argc; i++)
    log_method((enum swp_operation)operation, argv[i], atoi(argv[2]));
  free(specs), free(send), free(recv), free(counts), free(displs);
  return test_end();
}
