/*
 * What the documents' fragments of C take as given, on any number of ranks in a ring: FRAGMENT is the file of
 * one. Fails where one of its calls of the library has failed.
 */
#include <mpi.h>
#include <stdio.h>
#include <switchpoint.h>

enum { NEIGHBORS = 1 };

MPI_Comm comm, graph;
MPI_Info info;
MPI_Request allreduce; /* stands for one */
int rank, steps = 2, token;
int nsources = NEIGHBORS, sources[NEIGHBORS], ndestinations = NEIGHBORS, destinations[NEIGHBORS];
const int64_t offsets[NEIGHBORS + 1] = {0, 1};
struct swp_exchange halo = {.item_bytes = sizeof(double),
                            .nitems = NEIGHBORS,
                            .nsends = NEIGHBORS,
                            .send_ranks = destinations,
                            .send_offsets = offsets,
                            .nrecvs = NEIGHBORS,
                            .recv_ranks = sources,
                            .recv_offsets = offsets};
swp_plan *plan;
double send[NEIGHBORS], recv[NEIGHBORS];
double pressure[NEIGHBORS], velocity[3 * NEIGHBORS], halo_pressure[NEIGHBORS], halo_velocity[3 * NEIGHBORS];
int flag[NEIGHBORS], halo_flag[NEIGHBORS];

void compute_boundary(double *items) {
  items[0] = rank;
}

static void fragment(void) {
#include FRAGMENT
}

int main(int argc, char **argv) {
  int procs;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  destinations[0] = (rank + 1) % procs;
  sources[0] = (rank + procs - 1) % procs;
  MPI_Info_create(&info);
  MPI_Send_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, comm, &allreduce);
  fragment();
  fputs(swp_error_message(), stderr);
  const int failed = swp_error_message()[0] != '\0';
  swp_plan_free(&plan);
  MPI_Request_free(&allreduce);
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return failed;
}
