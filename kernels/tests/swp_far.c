/*
 * An allgatherv with large counts, where on rank 0 alone a block lies farther away than an int can express,
 * in memory of which little is touched; and a bcast without data. For a preload. Where MPI has no large
 * counts the program says so, and ends with 77.
 */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SWP_HAVE_LARGE_COUNTS
enum { COUNT = 3, MOST_PROCS = 16 };

/* Items of two chars. The blocks that are not as they should be. */
static int gather(char *recv, MPI_Aint far, int rank, int procs, int in_place) {
  MPI_Datatype pair;
  MPI_Count counts[MOST_PROCS];
  MPI_Aint displs[MOST_PROCS];
  char send[2 * COUNT], expected[2 * COUNT];
  int wrong = 0;
  for (int i = 0; i < procs; i++) {
    counts[i] = COUNT;
    displs[i] = rank == 0 && i == procs - 1 ? far : (MPI_Aint)i * (COUNT + 1);
  }
  MPI_Type_contiguous_c(2, MPI_CHAR, &pair); /* MPICH describes such types less than others */
  MPI_Type_commit(&pair);
  memset(in_place ? recv + 2 * displs[rank] : send, 'a' + rank, sizeof send);
  MPI_Allgatherv_c(in_place ? MPI_IN_PLACE : send, COUNT, pair, recv, counts, displs, pair, MPI_COMM_WORLD);
  MPI_Type_free(&pair);
  for (int i = 0; i < procs; i++) {
    char *block = recv + 2 * displs[i];
    memset(expected, 'a' + i, sizeof expected);
    wrong += memcmp(block, expected, sizeof expected) != 0 || block[sizeof expected] != 0;
    memset(block, 0, sizeof expected);
  }
  return wrong;
}

/* Ranks may call different forms; of a type without bytes, rank 0 has more items than an int can express. */
static void send_nothing(int rank) {
  MPI_Datatype empty;
  char byte;
  MPI_Type_contiguous(0, MPI_CHAR, &empty);
  MPI_Type_commit(&empty);
  if (rank == 0)
    MPI_Bcast_c(&byte, (MPI_Count)INT_MAX + 1, empty, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(&byte, 0, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Type_free(&empty);
}

int main(int argc, char **argv) {
  const MPI_Aint far = (MPI_Aint)INT_MAX + 1000;
  const size_t bytes = 2 * ((size_t)far + COUNT) + 1;
  int rank, procs, wrong;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  char *recv = calloc(bytes, 1);
  if (procs > MOST_PROCS || recv == NULL)
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  wrong = gather(recv, far, rank, procs, 0) + gather(recv, far, rank, procs, 1);
  send_nothing(rank);
  free(recv);
  MPI_Finalize();
  if (rank == 0 && wrong == 0)
    printf("swp_far: all right\n");
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
int main(void) {
  printf("swp_far: this MPI has no large counts\n");
  return 77;
}
#endif
