#include "self.h"

#include <pthread.h>

enum { COPY_TAG = SELF_TAGS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, and of a copy under way */
static MPI_Comm self = MPI_COMM_NULL;

/* A split, as a duplicate would run callbacks of the application. */
static int begin(void) {
  return self != MPI_COMM_NULL ? MPI_SUCCESS : PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &self);
}

int self_find(MPI_Comm *comm) {
  pthread_mutex_lock(&lock);
  int error = begin();
  *comm = self;
  pthread_mutex_unlock(&lock);
  return error;
}

int self_copy(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type) {
  pthread_mutex_lock(&lock);
  int error = begin();
  if (error == MPI_SUCCESS)
    error = PMPI_Sendrecv(from, count, type, 0, COPY_TAG, to, to_count, to_type, 0, COPY_TAG, self,
                          MPI_STATUS_IGNORE);
  pthread_mutex_unlock(&lock);
  return error;
}

void self_end(void) {
  if (self != MPI_COMM_NULL)
    PMPI_Comm_free(&self);
}
