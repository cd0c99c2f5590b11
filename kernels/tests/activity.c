/* Counts what the library really does. Link with --wrap for each of the wrapped functions below. */
#include "activity.h"

#include <stddef.h>
#include <string.h>

enum { MOST_PERSISTENT = 4096 };

static bool counting;
static const int *nodes;
static int64_t *bytes_to;
static struct activity activity;

/* Persistent sends that exist: what each start of them sends. */
static struct {
  MPI_Request request;
  int source, destination;
  int64_t bytes;
} persistent[MOST_PERSISTENT];
static int persistent_count;

void activity_start(const int *node_of, int64_t *bytes_to_each) {
  memset(&activity, 0, sizeof activity);
  nodes = node_of;
  bytes_to = bytes_to_each;
  counting = true;
}

struct activity activity_stop(void) {
  counting = false;
  return activity;
}

int64_t reduced(int64_t value, MPI_Op op) {
  int64_t result;
  MPI_Allreduce(&value, &result, 1, MPI_INT64_T, op, MPI_COMM_WORLD);
  return result;
}

/* A message begins to be sent. */
static void add_message(int64_t bytes, int source, int destination) {
  if (!counting || destination == source || destination == MPI_PROC_NULL)
    return;
  bool off_node = nodes != NULL && nodes[source] != nodes[destination];
  if (bytes_to != NULL)
    bytes_to[destination] += bytes;
  activity.messages++;
  activity.bytes += bytes;
  activity.off_node_messages += off_node;
  activity.off_node_bytes += off_node ? bytes : 0;
}

static int64_t bytes_of(int count, MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  return (int64_t)count * size;
}

static void count_send(int count, MPI_Datatype type, int destination, MPI_Comm comm) {
  int rank;
  PMPI_Comm_rank(comm, &rank);
  add_message(bytes_of(count, type), rank, destination);
}

#define SEND(name)                                                                                           \
  int MPI_##name(const void *buffer, int count, MPI_Datatype type, int destination, int tag,                 \
                 MPI_Comm comm) {                                                                            \
    count_send(count, type, destination, comm);                                                              \
    return PMPI_##name(buffer, count, type, destination, tag, comm);                                         \
  }

#define ISEND(name)                                                                                          \
  int MPI_##name(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,  \
                 MPI_Request *request) {                                                                     \
    count_send(count, type, destination, comm);                                                              \
    return PMPI_##name(buffer, count, type, destination, tag, comm, request);                                \
  }

#define SEND_INIT(name)                                                                                      \
  int MPI_##name(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,  \
                 MPI_Request *request) {                                                                     \
    int error = PMPI_##name(buffer, count, type, destination, tag, comm, request);                           \
    if (error == MPI_SUCCESS && persistent_count < MOST_PERSISTENT) {                                        \
      persistent[persistent_count].request = *request;                                                       \
      PMPI_Comm_rank(comm, &persistent[persistent_count].source);                                            \
      persistent[persistent_count].destination = destination;                                                \
      persistent[persistent_count++].bytes = bytes_of(count, type);                                          \
    }                                                                                                        \
    return error;                                                                                            \
  }

SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)
ISEND(Isend)
ISEND(Issend)
ISEND(Ibsend)
ISEND(Irsend)
SEND_INIT(Send_init)
SEND_INIT(Ssend_init)

static void count_start(MPI_Request request) {
  for (int i = 0; counting && i < persistent_count; i++)
    if (persistent[i].request == request)
      add_message(persistent[i].bytes, persistent[i].source, persistent[i].destination);
}

int MPI_Start(MPI_Request *request) {
  count_start(*request);
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  for (int i = 0; i < count; i++)
    count_start(requests[i]);
  return PMPI_Startall(count, requests);
}

int MPI_Request_free(MPI_Request *request) {
  for (int i = 0; i < persistent_count; i++)
    if (persistent[i].request == *request)
      persistent[i--] = persistent[--persistent_count];
  return PMPI_Request_free(request);
}

/* ---- How discoveries find senders, beside messages ---- */

#define COUNT(name, parameters, arguments, counter)                                                          \
  int MPI_##name parameters {                                                                                \
    activity.counter += counting;                                                                            \
    return PMPI_##name arguments;                                                                            \
  }

COUNT(Put,
      (const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,
       MPI_Datatype target_type, MPI_Win window),
      (buffer, count, type, target, place, target_count, target_type, window), one_sided)
COUNT(Fetch_and_op,
      (const void *buffer, void *result, MPI_Datatype type, int target, MPI_Aint place, MPI_Op op,
       MPI_Win window),
      (buffer, result, type, target, place, op, window), one_sided)
COUNT(Win_fence, (int assertion, MPI_Win window), (assertion, window), collectives)
COUNT(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), collectives)
COUNT(Alltoall,
      (const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
       MPI_Datatype recv_type, MPI_Comm comm),
      (send, send_count, send_type, recv, recv_count, recv_type, comm), collectives)
COUNT(Reduce_scatter_block,
      (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, count, type, op, comm), collectives)

/* ---- The library's own allocations and copies: its calls to X come to __wrap_X ---- */

#define WRAP(result, name, parameters, arguments, counter, amount)                                           \
  result __real_##name parameters;                                                                           \
  result __wrap_##name parameters;                                                                           \
  result __wrap_##name parameters {                                                                          \
    activity.counter += counting ? (int64_t)(amount) : 0;                                                    \
    return __real_##name arguments;                                                                          \
  }

WRAP(void *, malloc, (size_t bytes), (bytes), allocations, 1)
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes), allocations, 1)
WRAP(void *, realloc, (void *memory, size_t bytes), (memory, bytes), allocations, 1)
WRAP(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), allocations, 1)
WRAP(int, posix_memalign, (void **memory, size_t alignment, size_t bytes), (memory, alignment, bytes),
     allocations, 1)
WRAP(void *, memcpy, (void *restrict to, const void *restrict from, size_t bytes), (to, from, bytes),
     copied_bytes, bytes)
WRAP(void *, memmove, (void *to, const void *from, size_t bytes), (to, from, bytes), copied_bytes, bytes)
