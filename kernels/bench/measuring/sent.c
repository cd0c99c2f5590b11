#include "sent.h"

#include "rng.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

typedef int isend_function(const void *data, size_t count, MPI_Datatype type, int receiver, int tag, int mode,
                           MPI_Comm comm, MPI_Request *request);
typedef int send_function(const void *data, size_t count, MPI_Datatype type, int receiver, int tag, int mode,
                          MPI_Comm comm);

/* The functions through which all of Open MPI sends (ompi/mca/pml/pml.h). */
struct layer {
  void (*before[10])(void);
  isend_function *isend;
  send_function *send;
};

static struct layer *layer, own; /* layer: NULL if messages cannot be seen */
static uint64_t sum;

static void note(size_t count, MPI_Datatype type, int receiver) {
  int bytes;
  MPI_Type_size(type, &bytes);
  sum += hash_pair((uint64_t)receiver, count * (uint64_t)bytes);
}

static int isend(const void *data, size_t count, MPI_Datatype type, int receiver, int tag, int mode,
                 MPI_Comm comm, MPI_Request *request) {
  note(count, type, receiver);
  return own.isend(data, count, type, receiver, tag, mode, comm, request);
}

static int send(const void *data, size_t count, MPI_Datatype type, int receiver, int tag, int mode,
                MPI_Comm comm) {
  note(count, type, receiver);
  return own.send(data, count, type, receiver, tag, mode, comm);
}

/* Other versions may have other functions there. */
static struct layer *find(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, major = 0;
  MPI_Get_library_version(version, &length);
  if (sscanf(version, "Open MPI v%d", &major) != 1 || major < 4 || major > 5)
    return NULL;
  void *program = dlopen(NULL, RTLD_LAZY);
  return program ? dlsym(program, "mca_pml") : NULL;
}

void sent_begin(void) {
  sum = 0;
  layer = find();
  if (layer == NULL)
    return;
  own = *layer;
  layer->isend = isend;
  layer->send = send;
}

uint64_t sent_end(void) {
  if (layer != NULL)
    *layer = own;
  return sum;
}
