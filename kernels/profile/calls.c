/* The functions of MPI whose calls are recorded. Each calls the MPI library's with unchanged arguments. */
#include "functions.h"
#include "leaving.h"
#include "record.h"

#include <stddef.h>

/* Parameters and arguments are in parentheses. `shown` is the name in the profile. */
#define CALL(function, shown, kind, parameters, arguments, comm, items, type)                                \
  EXPORTED int MPI_##function(LIST parameters) {                                                             \
    if (!record_on)                                                                                          \
      return PMPI_##function(LIST arguments);                                                                \
    struct call call = record_begin(shown, comm, record_knows(comm) ? (int64_t)(items) : -1, type);          \
    int error = PMPI_##function(LIST arguments);                                                             \
    if (error == MPI_SUCCESS)                                                                                \
      record_end(&call, shown, kind, comm, call.tally == NULL ? (int64_t)(items) : 0, type);                 \
    return error;                                                                                            \
  }

#ifdef SWP_HAVE_PERSISTENT
#define INIT(init, suffix, parameters, arguments, items, type)                                               \
  CALL(init##suffix, #init, OTHER, (LIST parameters, MPI_Comm comm, MPI_Info info, MPI_Request * request),   \
       (LIST arguments, comm, info, request), comm, items, type)
#else
#define INIT(init, suffix, parameters, arguments, items, type)
#endif

/* A collective in its three forms. Parameters and arguments are without the communicator. */
#define COLLECTIVE_CALLS(group, name, nonblocking, suffix, parameters, arguments, items, type)               \
  CALL(name##suffix, #name, COLLECTIVE, (LIST parameters, MPI_Comm comm), (LIST arguments, comm), comm,      \
       items, type)                                                                                          \
  CALL(nonblocking##suffix, #nonblocking, OTHER, (LIST parameters, MPI_Comm comm, MPI_Request * request),    \
       (LIST arguments, comm, request), comm, items, type)                                                   \
  INIT(name##_init, suffix, parameters, arguments, items, type)

/* For the side that has blocks at the root. */
#define AT_ROOT(there, elsewhere) (is_root(comm, root) ? (there) : (elsewhere))

/* The functions with counts of int, or with large ones. */
#define ALL(suffix, count_t, displ_t, mean)                                                                  \
  FUNCTIONS(COLLECTIVE_CALLS, suffix, count_t, displ_t, mean)                                                \
  MESSAGE(Send, suffix, count_t)                                                                             \
  MESSAGE(Ssend, suffix, count_t)                                                                            \
  MESSAGE(Rsend, suffix, count_t)                                                                            \
  MESSAGE(Bsend, suffix, count_t)                                                                            \
  BEGUN(Isend, suffix, const void *, count_t)                                                                \
  BEGUN(Issend, suffix, const void *, count_t)                                                               \
  BEGUN(Irsend, suffix, const void *, count_t)                                                               \
  BEGUN(Ibsend, suffix, const void *, count_t)                                                               \
  BEGUN(Send_init, suffix, const void *, count_t)                                                            \
  BEGUN(Ssend_init, suffix, const void *, count_t)                                                           \
  BEGUN(Rsend_init, suffix, const void *, count_t)                                                           \
  BEGUN(Bsend_init, suffix, const void *, count_t)                                                           \
  BEGUN(Recv_init, suffix, void *, count_t)                                                                  \
  BEGUN(Irecv, suffix, void *, count_t)                                                                      \
  CALL(Recv##suffix, "Recv", OTHER,                                                                          \
       (void *buffer, count_t count, MPI_Datatype type, int from, int tag, MPI_Comm comm,                    \
        MPI_Status *status),                                                                                 \
       (buffer, count, type, from, tag, comm, status), comm, count, type)                                    \
  CALL(Sendrecv##suffix, "Sendrecv", OTHER,                                                                  \
       (const void *send, count_t send_count, MPI_Datatype send_type, int to, int send_tag, void *recv,      \
        count_t recv_count, MPI_Datatype recv_type, int from, int recv_tag, MPI_Comm comm,                   \
        MPI_Status *status),                                                                                 \
       (send, send_count, send_type, to, send_tag, recv, recv_count, recv_type, from, recv_tag, comm,        \
        status),                                                                                             \
       comm, send_count, send_type)                                                                          \
  CALL(Sendrecv_replace##suffix, "Sendrecv_replace", OTHER,                                                  \
       (void *buffer, count_t count, MPI_Datatype type, int to, int send_tag, int from, int recv_tag,        \
        MPI_Comm comm, MPI_Status *status),                                                                  \
       (buffer, count, type, to, send_tag, from, recv_tag, comm, status), comm, count, type)                 \
  CALL(Mrecv##suffix, "Mrecv", OTHER,                                                                        \
       (void *buffer, count_t count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),           \
       (buffer, count, type, message, status), MPI_COMM_NULL, count, type)                                   \
  CALL(Imrecv##suffix, "Imrecv", OTHER,                                                                      \
       (void *buffer, count_t count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),         \
       (buffer, count, type, message, request), MPI_COMM_NULL, count, type)                                  \
  ISENDRECV(suffix, count_t)

#ifdef SWP_HAVE_ISENDRECV
#define ISENDRECV(suffix, count_t)                                                                           \
  CALL(Isendrecv##suffix, "Isendrecv", OTHER,                                                                \
       (const void *send, count_t send_count, MPI_Datatype send_type, int to, int send_tag, void *recv,      \
        count_t recv_count, MPI_Datatype recv_type, int from, int recv_tag, MPI_Comm comm,                   \
        MPI_Request *request),                                                                               \
       (send, send_count, send_type, to, send_tag, recv, recv_count, recv_type, from, recv_tag, comm,        \
        request),                                                                                            \
       comm, send_count, send_type)                                                                          \
  CALL(Isendrecv_replace##suffix, "Isendrecv_replace", OTHER,                                                \
       (void *buffer, count_t count, MPI_Datatype type, int to, int send_tag, int from, int recv_tag,        \
        MPI_Comm comm, MPI_Request *request),                                                                \
       (buffer, count, type, to, send_tag, from, recv_tag, comm, request), comm, count, type)
#else
#define ISENDRECV(suffix, count_t)
#endif

#define MESSAGE(name, suffix, count_t)                                                                       \
  CALL(name##suffix, #name, OTHER,                                                                           \
       (const void *buffer, count_t count, MPI_Datatype type, int to, int tag, MPI_Comm comm),               \
       (buffer, count, type, to, tag, comm), comm, count, type)
#define BEGUN(name, suffix, buffer_t, count_t)                                                               \
  CALL(name##suffix, #name, OTHER,                                                                           \
       (buffer_t buffer, count_t count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                 \
        MPI_Request *request),                                                                               \
       (buffer, count, type, peer, tag, comm, request), comm, count, type)

ALL(, int, int, mean_of)
#ifdef SWP_HAVE_LARGE_COUNTS
ALL(_c, MPI_Count, MPI_Aint, mean_of_c)
#endif

/* Calls that have no size. */
#define UNSIZED(name, kind, parameters, arguments, comm)                                                     \
  CALL(name, #name, kind, parameters, arguments, comm, 0, MPI_DATATYPE_NULL)

UNSIZED(Barrier, COLLECTIVE, (MPI_Comm comm), (comm), comm)
UNSIZED(Ibarrier, OTHER, (MPI_Comm comm, MPI_Request *request), (comm, request), comm)
#ifdef SWP_HAVE_PERSISTENT
UNSIZED(Barrier_init, OTHER, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request),
        comm)
#endif
UNSIZED(Probe, OTHER, (int from, int tag, MPI_Comm comm, MPI_Status *status), (from, tag, comm, status), comm)
UNSIZED(Mprobe, OTHER, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
        (from, tag, comm, message, status), comm)
UNSIZED(Start, OTHER, (MPI_Request * request), (request), MPI_COMM_NULL)
UNSIZED(Startall, OTHER, (int count, MPI_Request requests[]), (count, requests), MPI_COMM_NULL)
UNSIZED(Wait, OTHER, (MPI_Request * request, MPI_Status *status), (request, status), MPI_COMM_NULL)
UNSIZED(Waitany, OTHER, (int count, MPI_Request requests[], int *index, MPI_Status *status),
        (count, requests, index, status), MPI_COMM_NULL)
UNSIZED(Waitall, OTHER, (int count, MPI_Request requests[], MPI_Status statuses[]),
        (count, requests, statuses), MPI_COMM_NULL)
UNSIZED(Waitsome, OTHER, (int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]),
        (count, requests, done, indices, statuses), MPI_COMM_NULL)
UNSIZED(Test, OTHER, (MPI_Request * request, int *done, MPI_Status *status), (request, done, status),
        MPI_COMM_NULL)
UNSIZED(Testany, OTHER, (int count, MPI_Request requests[], int *index, int *done, MPI_Status *status),
        (count, requests, index, done, status), MPI_COMM_NULL)
UNSIZED(Testall, OTHER, (int count, MPI_Request requests[], int *done, MPI_Status statuses[]),
        (count, requests, done, statuses), MPI_COMM_NULL)
UNSIZED(Testsome, OTHER, (int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]),
        (count, requests, done, indices, statuses), MPI_COMM_NULL)
UNSIZED(Request_get_status, OTHER, (MPI_Request request, int *done, MPI_Status *status),
        (request, done, status), MPI_COMM_NULL)
#ifdef SWP_HAVE_STATUS_OF_SEVERAL
UNSIZED(Request_get_status_any, OTHER,
        (int count, REQUESTS requests[], int *index, int *done, MPI_Status *status),
        (count, requests, index, done, status), MPI_COMM_NULL)
UNSIZED(Request_get_status_all, OTHER, (int count, REQUESTS requests[], int *done, MPI_Status statuses[]),
        (count, requests, done, statuses), MPI_COMM_NULL)
UNSIZED(Request_get_status_some, OTHER,
        (int count, REQUESTS requests[], int *done, int indices[], MPI_Status statuses[]),
        (count, requests, done, indices, statuses), MPI_COMM_NULL)
#endif
UNSIZED(Iprobe, OTHER, (int from, int tag, MPI_Comm comm, int *found, MPI_Status *status),
        (from, tag, comm, found, status), comm)
UNSIZED(Improbe, OTHER,
        (int from, int tag, MPI_Comm comm, int *found, MPI_Message *message, MPI_Status *status),
        (from, tag, comm, found, message, status), comm)
UNSIZED(Win_fence, OTHER, (int assertion, MPI_Win window), (assertion, window), MPI_COMM_NULL)

/* Not recorded: callbacks of attributes may make calls that are. */
EXPORTED int MPI_Comm_free(MPI_Comm *comm) {
  return leaving_free(comm, PMPI_Comm_free);
}

EXPORTED int MPI_Comm_disconnect(MPI_Comm *comm) {
  return leaving_free(comm, PMPI_Comm_disconnect);
}
