/* What MPI itself does with random calls of collectives. */
#include "calls.h"

#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double call_clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The copy of a buffer that MPI works on. */
static void *expected_place(const struct call_buffer *buffer, const void *given) {
  const bool ignored = given == NULL || given == MPI_IN_PLACE;
  return ignored ? (void *)given : buffer->expected + ((const unsigned char *)given - buffer->memory);
}

/* Sends packed bytes: Intel's MPI_Bcast may err behind 16 KiB, and messages of MPICH 4.0.2 if ranks differ in
   their types. */
static void expected_bcast(char *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int rank, procs, item_bytes, room, position = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  MPI_Type_size(type, &item_bytes);
  MPI_Pack_size(count, type, comm, &room);
  char *packed = test_allocate((size_t)room);
  if (rank == root)
    MPI_Pack(buffer, count, type, packed, room, &position, comm);
  for (int i = 0; i < procs && rank == root; i++)
    if (i != root)
      MPI_Send(packed, count * item_bytes, MPI_BYTE, i, 0, comm);
  if (rank != root)
    MPI_Recv(packed, count * item_bytes, MPI_BYTE, root, 0, comm, MPI_STATUS_IGNORE);
  if (rank != root)
    MPI_Unpack(packed, room, &position, buffer, count, type, comm);
  free(packed);
}

/* Gathers by broadcasts, as the MPI_Allgather of Intel may err as its MPI_Bcast does. */
static void expected_allgather(const struct swp_collective *p, const void *send, char *recv, MPI_Comm comm) {
  const MPI_Aint extent = call_extent(p->recv_type);
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  for (int i = 0; i < procs; i++) {
    bool listed = p->operation == SWP_ALLGATHERV;
    int count = listed ? p->recv_counts[i] : p->recv_count;
    char *block = recv + (listed ? p->displs[i] : i * count) * extent;
    if (i == rank && send != MPI_IN_PLACE)
      MPI_Sendrecv(send, p->send_count, p->send_type, rank, 0, block, count, p->recv_type, rank, 0, comm,
                   MPI_STATUS_IGNORE);
    expected_bcast(block, count, p->recv_type, i, comm);
  }
}

/* Exchanges by messages between pairs, for the same reason. */
static void expected_alltoall(const struct swp_collective *p, const char *send, char *recv, MPI_Comm comm) {
  const MPI_Aint recv_extent = call_extent(p->recv_type);
  const MPI_Aint send_extent = send != MPI_IN_PLACE ? call_extent(p->send_type) : 0;
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  const bool listed = p->operation == SWP_ALLTOALLV;
  for (int step = 0; step < procs; step++) {
    int peer = (step - rank + procs) % procs, count = listed ? p->recv_counts[peer] : p->recv_count;
    char *to = recv + (listed ? p->displs[peer] : peer * count) * recv_extent;
    if (send == MPI_IN_PLACE) {
      MPI_Sendrecv_replace(to, count, p->recv_type, peer, 0, peer, 0, comm, MPI_STATUS_IGNORE);
      continue;
    }
    int sent = listed ? p->send_counts[peer] : p->send_count;
    MPI_Sendrecv(send + (listed ? p->send_displs[peer] : peer * sent) * send_extent, sent, p->send_type, peer,
                 0, to, count, p->recv_type, peer, 0, comm, MPI_STATUS_IGNORE);
  }
}

static void copy_items(MPI_Comm comm, const void *from, void *to, size_t count, MPI_Datatype type) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  MPI_Sendrecv(from, (int)count, type, rank, 0, to, (int)count, type, rank, 0, comm, MPI_STATUS_IGNORE);
}

/* Reduces by an allreduce: of `blocks` blocks the rank gets one, or none (-1). False where the library itself
   has written between the elements of items, as Intel's does. */
static bool expected_reduction(const struct swp_collective *p, const void *send, char *recv, MPI_Comm comm,
                               int blocks, int block) {
  const MPI_Aint extent = call_extent(p->recv_type);
  size_t items = (size_t)p->recv_count * (size_t)blocks, bytes = 2 * CALL_MARGIN + items * (size_t)extent;
  char *all = test_allocate(2 * bytes), *elements = all + bytes;
  memset(all, 0, 2 * bytes);
  MPI_Allreduce(send == MPI_IN_PLACE ? recv : send, all + CALL_MARGIN, (int)items, p->recv_type, p->op, comm);
  copy_items(comm, all + CALL_MARGIN, elements + CALL_MARGIN, items, p->recv_type);
  bool gaps_stay = memcmp(all, elements, bytes) == 0;
  if (block >= 0)
    copy_items(comm, all + CALL_MARGIN + block * p->recv_count * extent, recv, (size_t)p->recv_count,
               p->recv_type);
  free(all);
  return gaps_stay;
}

/* False as of a reduction. */
static bool call_mpi(const struct swp_collective *p, const void *send, void *recv, MPI_Comm comm) {
  int rank, procs;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  switch (p->operation) {
  case SWP_BCAST:
    expected_bcast(recv, p->recv_count, p->recv_type, p->root, comm);
    break;
  case SWP_GATHER:
    MPI_Gather(send, p->send_count, p->send_type, recv, p->recv_count, p->recv_type, p->root, comm);
    break;
  case SWP_SCATTER:
    MPI_Scatter(send, p->send_count, p->send_type, recv, p->recv_count, p->recv_type, p->root, comm);
    break;
  case SWP_REDUCE:
    return expected_reduction(p, send, recv, comm, 1, rank == p->root ? 0 : -1);
  case SWP_ALLREDUCE:
    return expected_reduction(p, send, recv, comm, 1, 0);
  case SWP_ALLGATHER:
  case SWP_ALLGATHERV:
    expected_allgather(p, send, recv, comm);
    break;
  case SWP_ALLTOALL:
  case SWP_ALLTOALLV:
    expected_alltoall(p, send, recv, comm);
    break;
  case SWP_REDUCE_SCATTER_BLOCK:
    return expected_reduction(p, send, recv, comm, procs, rank);
  case SWP_BARRIER:
    break;
  default:
    EXPECT(false, "operation %d is none of MPI's", p->operation);
  }
  return true;
}

static void expect_bytes(const struct test_call *call, const char *name, const struct call_buffer *buffer,
                         size_t from, size_t to) {
  for (size_t at = from; at < to; at++)
    if (buffer->memory[at] != buffer->expected[at]) {
      EXPECT(false, "%s: byte %d of %s is %d, MPI has %d", call->text, (int)at - CALL_MARGIN, name,
             buffer->memory[at], buffer->expected[at]);
      return;
    }
}

/* Around the elements that are expected, whatever was received is right. */
static void accept_gaps(const struct swp_collective *p, const struct call_buffer *recv, MPI_Comm comm) {
  unsigned char *both = test_allocate(recv->bytes);
  memcpy(both, recv->memory, recv->bytes);
  copy_items(comm, recv->expected + CALL_MARGIN, both + CALL_MARGIN, (size_t)p->recv_count, p->recv_type);
  memcpy(recv->expected, both, recv->bytes);
  free(both);
}

static void expect_meeting(const struct test_call *call, MPI_Comm comm) {
  double last_s;
  MPI_Allreduce(&call->entered_s, &last_s, 1, MPI_DOUBLE, MPI_MAX, comm);
  EXPECT(call->left_s >= last_s, "%s: left %g s before the last rank entered", call->text,
         last_s - call->left_s);
}

void call_check(const struct test_call *call, MPI_Comm comm) {
  const struct swp_collective *problem = &call->problem;
  if (problem->operation == SWP_BARRIER)
    expect_meeting(call, comm);
  const struct call_buffer *recv = &call->recv_buffer;
  if (!call_mpi(problem, expected_place(&call->send_buffer, call->send), expected_place(recv, call->recv),
                comm))
    accept_gaps(problem, recv, comm);
  expect_bytes(call, "send", &call->send_buffer, 0, call->send_buffer.bytes);
  if (problem->operation == SWP_REDUCE_SCATTER_BLOCK && call->send == MPI_IN_PLACE) {
    /* Behind the rank's block were the operands: their present contents are unspecified. */
    const MPI_Aint block_bytes = problem->recv_count * call_extent(problem->recv_type);
    expect_bytes(call, "recv", recv, 0, CALL_MARGIN + (size_t)block_bytes);
    expect_bytes(call, "recv", recv, recv->bytes - CALL_MARGIN, recv->bytes);
  } else {
    expect_bytes(call, "recv", recv, 0, recv->bytes);
  }
}
