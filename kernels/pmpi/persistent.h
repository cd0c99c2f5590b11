/*
 * Persistent collectives. The application's request is one of MPI's own, to receive a message of no bytes
 * from this process. A neighbourhood's data are sent and received by an exchange that progresses inside the
 * calls that wait, and sends that message when it completes; other collectives are complete when the call
 * that starts them sends it. So requests of all kinds may be waited for together.
 */
#ifndef SWP_PERSISTENT_H
#define SWP_PERSISTENT_H

#include "planned.h"

/* How many persistent requests were started and are not complete; and how many failures no call has returned
   yet. */
extern atomic_int persistent_active, persistent_failed;

static inline bool persistent_any(void) {
  return atomic_load_explicit(&persistent_active, memory_order_relaxed) != 0;
}

/* Makes a request for a neighbourhood that has a method. Local. The request owns the neighbourhood. Returns
   an MPI error code. */
int persistent_make(struct place *place, struct planned *planned, const void *send, void *recv,
                    MPI_Request *request);

/* A plain call, with all that it was given: what the starts of a request repeat. */
struct repeated_call {
  int (*make)(const struct repeated_call *call); /* returns the application's return code */
  const void *from;
  void *into;
  struct part send, recv; /* types are MPI_DATATYPE_NULL where the call ignores them */
  MPI_Op op;
  int root;
  MPI_Comm comm;
};

/* Makes a request that repeats a call on the place's communicator. Local. The request keeps the types, and
   needs the other lists of the application. Returns an MPI error code. */
int persistent_repeat(struct place *place, const struct repeated_call *call, MPI_Request *request);

/* Why this rank can make no request, whatever it is for; NULL: it can. The caller of the function may be a
   Fortran interface of the MPI library: those start and wait without calling the functions defined here. */
const char *persistent_refuses(const void *caller);

/* False: the request is the MPI library's. *result is the application's return code. */
bool persistent_start(MPI_Request request, int *result);

/* The application frees a request. */
void persistent_forget(MPI_Request request);

static inline bool persistent_any_failed(void) {
  return atomic_load_explicit(&persistent_failed, memory_order_relaxed) != 0;
}

/* Progresses all that are active. One that fails is complete; its error handler is called at once. */
void persistent_progress(void);

/* The MPI error code of a request, of any kind, that a call has just completed; MPI_SUCCESS if it has not. */
int persistent_result(MPI_Request request);

/* Frees the exchanges of requests that all ranks have freed; with `leave`, the communicator is about to be
   freed, and what is left lives until MPI ends. Collective on the place's private communicator, if it has
   one. */
void persistent_collect(struct place *place, bool leave);

#endif
