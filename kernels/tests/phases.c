#include "phases.h"
#include "testing.h"

#include <stdio.h>
#include <string.h>

struct phases phases_made;
bool phases_with_messages;

static void note(const char *function, MPI_Comm comm, int64_t count, MPI_Datatype type) {
  struct phase *phase =
      &phases_made.list[phases_made.count < MOST_PHASES - 1 ? phases_made.count++ : phases_made.count];
  int size;
  MPI_Comm_size(comm, &phase->ranks);
  MPI_Type_size(type, &size);
  snprintf(phase->function, sizeof phase->function, "%s", function);
  phase->bytes = count * size;
}

static int is_root(int root, MPI_Comm comm) {
  int here;
  MPI_Comm_rank(comm, &here);
  return here == root;
}

static int64_t sum_of(const int *counts, MPI_Comm comm) {
  int64_t sum = 0;
  int size;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < size; i++)
    sum += counts[i];
  return sum;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request) {
  if (phases_with_messages) {
    note("Isend", comm, count, MPI_BYTE);
    phases_made.list[phases_made.count - 1].ranks = 2;
  }
  return PMPI_Isend(buffer, count, type, destination, tag, comm, request);
}

#define WRAP(name, parameters, arguments, comm, count, type)                                                 \
  int __real_PMPI_##name parameters;                                                                         \
  int __wrap_PMPI_##name parameters;                                                                         \
  int __wrap_PMPI_##name parameters {                                                                        \
    note(#name, comm, count, type);                                                                          \
    return __real_PMPI_##name arguments;                                                                     \
  }

WRAP(Bcast, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c), c, n, t)
WRAP(Reduce, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, int r, MPI_Comm c),
     (s, d, n, t, o, r, c), c, n, t)
WRAP(Allreduce, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c), c,
     n, t)
WRAP(Reduce_scatter_block, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
     (s, d, n, t, o, c), c, n, t)
WRAP(Gather, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r, MPI_Comm c),
     (s, n, t, d, m, u, r, c), c, is_root(r, c) ? m : n, is_root(r, c) ? u : t)
WRAP(Scatter, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r, MPI_Comm c),
     (s, n, t, d, m, u, r, c), c, is_root(r, c) ? n : m, is_root(r, c) ? t : u)
WRAP(Allgather, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
     (s, n, t, d, m, u, c), c, m, u)
WRAP(Alltoall, (const void *s, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
     (s, n, t, d, m, u, c), c, m, u)
WRAP(Allgatherv,
     (const void *s, int n, MPI_Datatype t, void *d, const int *m, const int *p, MPI_Datatype u, MPI_Comm c),
     (s, n, t, d, m, p, u, c), c, sum_of(m, c), u)
WRAP(Gatherv,
     (const void *s, int n, MPI_Datatype t, void *d, const int *m, const int *p, MPI_Datatype u, int r,
      MPI_Comm c),
     (s, n, t, d, m, p, u, r, c), c, is_root(r, c) ? sum_of(m, c) : n, is_root(r, c) ? u : t)

WRAP(Scatterv,
     (const void *s, const int *n, const int *p, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r,
      MPI_Comm c),
     (s, n, p, t, d, m, u, r, c), c, is_root(r, c) ? sum_of(n, c) : m, is_root(r, c) ? t : u)
WRAP(Reduce_scatter, (const void *s, void *d, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
     (s, d, n, t, o, c), c, sum_of(n, c), t)
WRAP(Alltoallv,
     (const void *s, const int *n, const int *p, MPI_Datatype t, void *d, const int *m, const int *q,
      MPI_Datatype u, MPI_Comm c),
     (s, n, p, t, d, m, q, u, c), c, sum_of(m, c), u)

void phases_expect(struct phases *expected, const char *function, int ranks, int64_t bytes) {
  if (ranks == 0)
    return;
  struct phase *phase = &expected->list[expected->count++];
  snprintf(phase->function, sizeof phase->function, "%s", function);
  phase->ranks = ranks;
  phase->bytes = bytes;
}

void phases_compare(const struct phases *expected) {
  EXPECT_EQUAL(phases_made.count, expected->count);
  for (int i = 0; i < phases_made.count && i < expected->count; i++) {
    const struct phase *here = &phases_made.list[i], *there = &expected->list[i];
    EXPECT(strcmp(here->function, there->function) == 0 && here->ranks == there->ranks &&
               here->bytes == there->bytes,
           "phase %d: %s of %d ranks and %lld bytes, expected %s of %d and %lld", i, here->function,
           here->ranks, (long long)here->bytes, there->function, there->ranks, (long long)there->bytes);
  }
}
