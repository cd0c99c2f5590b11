/*
 * The calls of the application that start requests, wait, or look for messages, for persistent collectives by
 * our methods. For those of neighbourhoods, other ranks need this one to pass messages on while it waits for
 * anything. While there are none, each checks a counter and calls the MPI library's own.
 */
#include "functions.h"
#include "persistent.h"
#include "startup.h"

#include <sched.h>

/* Repeats a nonblocking call of the MPI library until `done`. */
#define POLL(call, done)                                                                                     \
  do {                                                                                                       \
    int error_ = MPI_SUCCESS;                                                                                \
    for (;;) {                                                                                               \
      error_ = persistent_progress();                                                                        \
      if (error_ == MPI_SUCCESS)                                                                             \
        error_ = (call);                                                                                     \
      if (error_ != MPI_SUCCESS || (done))                                                                   \
        return error_;                                                                                       \
      sched_yield();                                                                                         \
    }                                                                                                        \
  } while (0)

static int progress(void) {
  return persistent_any() ? persistent_progress() : MPI_SUCCESS;
}

/* ---- Requests ---- */

EXPORTED int MPI_Start(MPI_Request *request) {
  int result = progress();
  if (result != MPI_SUCCESS)
    return result;
  if (request != NULL && promises_on && persistent_start(*request, &result))
    return result;
  return PMPI_Start(request);
}

EXPORTED int MPI_Startall(int count, MPI_Request requests[]) {
  int error = MPI_SUCCESS;
  if (!promises_on)
    return PMPI_Startall(count, requests);
  for (int i = 0; i < count && error == MPI_SUCCESS; i++)
    error = MPI_Start(&requests[i]);
  return error;
}

EXPORTED int MPI_Request_free(MPI_Request *request) {
  if (request != NULL && promises_on)
    persistent_forget(*request);
  return PMPI_Request_free(request);
}

EXPORTED int MPI_Request_get_status(MPI_Request request, int *done, MPI_Status *status) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Request_get_status(request, done, status) : error;
}

#ifdef SWP_HAVE_STATUS_OF_SEVERAL
EXPORTED int MPI_Request_get_status_any(int count, REQUESTS requests[], int *index, int *done,
                                        MPI_Status *status) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Request_get_status_any(count, requests, index, done, status) : error;
}

EXPORTED int MPI_Request_get_status_all(int count, REQUESTS requests[], int *done, MPI_Status statuses[]) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Request_get_status_all(count, requests, done, statuses) : error;
}

EXPORTED int MPI_Request_get_status_some(int count, REQUESTS requests[], int *done, int indices[],
                                         MPI_Status statuses[]) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Request_get_status_some(count, requests, done, indices, statuses)
                              : error;
}
#endif

EXPORTED int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Test(request, done, status) : error;
}

EXPORTED int MPI_Testany(int count, MPI_Request requests[], int *index, int *done, MPI_Status *status) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Testany(count, requests, index, done, status) : error;
}

EXPORTED int MPI_Testall(int count, MPI_Request requests[], int *done, MPI_Status statuses[]) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Testall(count, requests, done, statuses) : error;
}

EXPORTED int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
                          MPI_Status statuses[]) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Testsome(count, requests, done, indices, statuses) : error;
}

EXPORTED int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  int done = 0;
  if (!persistent_any())
    return PMPI_Wait(request, status);
  POLL(PMPI_Test(request, &done, status), done);
}

EXPORTED int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  int done = 0;
  if (!persistent_any())
    return PMPI_Waitany(count, requests, index, status);
  POLL(PMPI_Testany(count, requests, index, &done, status), done);
}

EXPORTED int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  int done = 0;
  if (!persistent_any())
    return PMPI_Waitall(count, requests, statuses);
  POLL(PMPI_Testall(count, requests, &done, statuses), done);
}

EXPORTED int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
                          MPI_Status statuses[]) {
  if (!persistent_any())
    return PMPI_Waitsome(count, requests, done, indices, statuses);
  POLL(PMPI_Testsome(count, requests, done, indices, statuses), *done != 0);
}

/* ---- Messages ---- */

/* Waits for the operation that a nonblocking call has begun. */
static int complete(int error, MPI_Request *request, MPI_Status *status) {
  return error == MPI_SUCCESS ? MPI_Wait(request, status) : error;
}

#define SEND(name, nonblocking, count_t)                                                                     \
  EXPORTED int MPI_##name(const void *buffer, count_t count, MPI_Datatype type, int to, int tag,             \
                          MPI_Comm comm) {                                                                   \
    MPI_Request request;                                                                                     \
    if (!persistent_any())                                                                                   \
      return PMPI_##name(buffer, count, type, to, tag, comm);                                                \
    return complete(PMPI_##nonblocking(buffer, count, type, to, tag, comm, &request), &request,              \
                    MPI_STATUS_IGNORE);                                                                      \
  }

/* The functions with counts of int, or with large ones. */
#define MESSAGES(suffix, count_t)                                                                            \
  SEND(Send##suffix, Isend##suffix, count_t)                                                                 \
  SEND(Ssend##suffix, Issend##suffix, count_t)                                                               \
  SEND(Rsend##suffix, Irsend##suffix, count_t)                                                               \
  EXPORTED int MPI_Recv##suffix(void *buffer, count_t count, MPI_Datatype type, int from, int tag,           \
                                MPI_Comm comm, MPI_Status *status) {                                         \
    MPI_Request request;                                                                                     \
    if (!persistent_any())                                                                                   \
      return PMPI_Recv##suffix(buffer, count, type, from, tag, comm, status);                                \
    return complete(PMPI_Irecv##suffix(buffer, count, type, from, tag, comm, &request), &request, status);   \
  }                                                                                                          \
  EXPORTED int MPI_Sendrecv##suffix(const void *send, count_t send_count, MPI_Datatype send_type, int to,    \
                                    int send_tag, void *recv, count_t recv_count, MPI_Datatype recv_type,    \
                                    int from, int recv_tag, MPI_Comm comm, MPI_Status *status) {             \
    MPI_Request request, sent;                                                                               \
    if (!persistent_any())                                                                                   \
      return PMPI_Sendrecv##suffix(send, send_count, send_type, to, send_tag, recv, recv_count, recv_type,   \
                                   from, recv_tag, comm, status);                                            \
    int error = PMPI_Irecv##suffix(recv, recv_count, recv_type, from, recv_tag, comm, &request);             \
    if (error != MPI_SUCCESS)                                                                                \
      return error;                                                                                          \
    error = PMPI_Isend##suffix(send, send_count, send_type, to, send_tag, comm, &sent);                      \
    error = complete(error, &sent, MPI_STATUS_IGNORE);                                                       \
    if (error != MPI_SUCCESS) {                                                                              \
      PMPI_Cancel(&request);                                                                                 \
      PMPI_Request_free(&request);                                                                           \
      return error;                                                                                          \
    }                                                                                                        \
    return complete(MPI_SUCCESS, &request, status);                                                          \
  }

MESSAGES(, int)
#ifdef SWP_HAVE_LARGE_COUNTS
MESSAGES(_c, MPI_Count)
#endif

EXPORTED int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
  int found = 0;
  if (!persistent_any())
    return PMPI_Probe(from, tag, comm, status);
  POLL(PMPI_Iprobe(from, tag, comm, &found, status), found);
}

EXPORTED int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {
  int found = 0;
  if (!persistent_any())
    return PMPI_Mprobe(from, tag, comm, message, status);
  POLL(PMPI_Improbe(from, tag, comm, &found, message, status), found);
}

EXPORTED int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *found, MPI_Status *status) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Iprobe(from, tag, comm, found, status) : error;
}

EXPORTED int MPI_Improbe(int from, int tag, MPI_Comm comm, int *found, MPI_Message *message,
                         MPI_Status *status) {
  int error = progress();
  return error == MPI_SUCCESS ? PMPI_Improbe(from, tag, comm, found, message, status) : error;
}
