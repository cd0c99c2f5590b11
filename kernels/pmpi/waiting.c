/*
 * The calls of the application that start requests, wait, or look for messages, for persistent collectives by
 * our methods. For those of neighbourhoods, other ranks need this one to pass messages on while it waits for
 * anything. While there are none, each checks a counter and calls the MPI library's own.
 */
#include "functions.h"
#include "persistent.h"
#include "startup.h"

#include <sched.h>

/* Repeats a nonblocking call of the MPI library until it fails or is `done`. */
#define POLL(error, call, done)                                                                              \
  do {                                                                                                       \
    persistent_progress();                                                                                   \
    error = (call);                                                                                          \
    if (error != MPI_SUCCESS || (done))                                                                      \
      break;                                                                                                 \
    sched_yield();                                                                                           \
  } while (true)

static void progress(void) {
  if (persistent_any())
    persistent_progress();
}

/* The return code of a call that has completed a request. */
static int end_one(MPI_Request request) {
  return persistent_any_failed() ? persistent_result(request) : MPI_SUCCESS;
}

/* Sets the code of the i-th of `count` statuses; the others have one only after MPI_ERR_IN_STATUS. */
static void set_code(int error, int count, MPI_Status statuses[], int i, int code) {
  for (int other = 0; error == MPI_SUCCESS && other < count; other++)
    statuses[other].MPI_ERROR = MPI_SUCCESS;
  statuses[i].MPI_ERROR = code;
}

/* Returns whether a call for several requests may have completed some. */
static bool completes(int error) {
  return error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS;
}

/* The return code of a call that may have completed several, where MPI's is `error`: all, if no indices are
   given. */
static int end_several(int error, int count, const MPI_Request requests[], const int *indices,
                       MPI_Status statuses[]) {
  for (int i = 0; persistent_any_failed() && i < count; i++) {
    const int result = persistent_result(requests[indices != NULL ? indices[i] : i]);
    if (result == MPI_SUCCESS)
      continue;
    if (statuses != MPI_STATUSES_IGNORE)
      set_code(error, count, statuses, i, result);
    error = MPI_ERR_IN_STATUS;
  }
  return error;
}

/* ---- Requests ---- */

EXPORTED int MPI_Start(MPI_Request *request) {
  int result;
  progress();
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
  progress();
  return PMPI_Request_get_status(request, done, status);
}

#ifdef SWP_HAVE_STATUS_OF_SEVERAL
EXPORTED int MPI_Request_get_status_any(int count, REQUESTS requests[], int *index, int *done,
                                        MPI_Status *status) {
  progress();
  return PMPI_Request_get_status_any(count, requests, index, done, status);
}

EXPORTED int MPI_Request_get_status_all(int count, REQUESTS requests[], int *done, MPI_Status statuses[]) {
  progress();
  return PMPI_Request_get_status_all(count, requests, done, statuses);
}

EXPORTED int MPI_Request_get_status_some(int count, REQUESTS requests[], int *done, int indices[],
                                         MPI_Status statuses[]) {
  progress();
  return PMPI_Request_get_status_some(count, requests, done, indices, statuses);
}
#endif

#ifdef SWP_HAVE_PARTITIONED
EXPORTED int MPI_Parrived(MPI_Request request, int partition, int *arrived) {
  progress();
  return PMPI_Parrived(request, partition, arrived);
}
#endif

EXPORTED int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
  progress();
  const int error = PMPI_Test(request, done, status);
  return error == MPI_SUCCESS && *done ? end_one(*request) : error;
}

EXPORTED int MPI_Testany(int count, MPI_Request requests[], int *index, int *done, MPI_Status *status) {
  progress();
  const int error = PMPI_Testany(count, requests, index, done, status);
  return error == MPI_SUCCESS && *index >= 0 ? end_one(requests[*index]) : error;
}

EXPORTED int MPI_Testall(int count, MPI_Request requests[], int *done, MPI_Status statuses[]) {
  progress();
  const int error = PMPI_Testall(count, requests, done, statuses);
  const bool all = error == MPI_SUCCESS ? *done != 0 : completes(error); /* all that it will complete */
  return all ? end_several(error, count, requests, NULL, statuses) : error;
}

EXPORTED int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
                          MPI_Status statuses[]) {
  progress();
  const int error = PMPI_Testsome(count, requests, done, indices, statuses);
  return completes(error) ? end_several(error, *done, requests, indices, statuses) : error;
}

EXPORTED int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  int done = 0, error;
  if (!persistent_any())
    error = PMPI_Wait(request, status);
  else
    POLL(error, PMPI_Test(request, &done, status), done);
  return error == MPI_SUCCESS ? end_one(*request) : error;
}

EXPORTED int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  int done = 0, error;
  if (!persistent_any())
    error = PMPI_Waitany(count, requests, index, status);
  else
    POLL(error, PMPI_Testany(count, requests, index, &done, status), done);
  return error == MPI_SUCCESS && *index >= 0 ? end_one(requests[*index]) : error;
}

EXPORTED int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  int done = 0, error;
  if (!persistent_any())
    error = PMPI_Waitall(count, requests, statuses);
  else
    POLL(error, PMPI_Testall(count, requests, &done, statuses), done);
  return completes(error) ? end_several(error, count, requests, NULL, statuses) : error;
}

EXPORTED int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
                          MPI_Status statuses[]) {
  int error;
  if (!persistent_any())
    error = PMPI_Waitsome(count, requests, done, indices, statuses);
  else
    POLL(error, PMPI_Testsome(count, requests, done, indices, statuses), *done != 0);
  return completes(error) ? end_several(error, *done, requests, indices, statuses) : error;
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
  int found = 0, error;
  if (!persistent_any())
    return PMPI_Probe(from, tag, comm, status);
  POLL(error, PMPI_Iprobe(from, tag, comm, &found, status), found);
  return error;
}

EXPORTED int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {
  int found = 0, error;
  if (!persistent_any())
    return PMPI_Mprobe(from, tag, comm, message, status);
  POLL(error, PMPI_Improbe(from, tag, comm, &found, message, status), found);
  return error;
}

EXPORTED int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *found, MPI_Status *status) {
  progress();
  return PMPI_Iprobe(from, tag, comm, found, status);
}

EXPORTED int MPI_Improbe(int from, int tag, MPI_Comm comm, int *found, MPI_Message *message,
                         MPI_Status *status) {
  progress();
  return PMPI_Improbe(from, tag, comm, found, message, status);
}
