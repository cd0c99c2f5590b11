#include "leaving.h"

#include <stddef.h>

/* A communicator that this thread is freeing, and the one in whose callback it does so. */
struct leaving {
  const MPI_Comm *comm;
  const struct leaving *outer;
};

static _Thread_local const struct leaving *innermost; /* or NULL */

int leaving_free(MPI_Comm *comm, int (*leave)(MPI_Comm *comm)) {
  const struct leaving its = {.comm = comm, .outer = innermost};
  innermost = &its;
  const int error = leave(comm);
  innermost = its.outer;
  return error;
}

bool leaving_has(MPI_Comm comm) {
  const struct leaving *its = innermost;
  while (its != NULL && (its->comm == NULL || *its->comm != comm))
    its = its->outer;
  return its != NULL;
}
