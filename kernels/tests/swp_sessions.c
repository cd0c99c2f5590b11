/*
 * A program of an MPI session, without MPI_Init or before it: a communicator of all ranks, and its
 * collectives. For a preload. Where MPI has no sessions the program says so, and ends with 77.
 * Usage: swp_sessions [--init]
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SWP_HAVE_SESSIONS
static int check(MPI_Comm comm) {
  int rank, procs, value, sum = 0, wrong;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  value = rank + 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  wrong = sum != procs * (procs + 1) / 2;
  value = rank == 0 ? 17 : 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, comm);
  return wrong + (value != 17);
}

static int run(bool init) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank, wrong;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "swp_sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  wrong = check(comm);
  if (init) {
    MPI_Init(NULL, NULL);
    wrong += check(MPI_COMM_WORLD) + check(comm);
  }
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (init) {
    wrong += check(MPI_COMM_WORLD);
    MPI_Finalize();
  }
  if (rank == 0 && wrong == 0)
    printf("swp_sessions: all right\n");
  return wrong;
}

int main(int argc, char **argv) {
  return run(argc > 1 && strcmp(argv[1], "--init") == 0) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
int main(void) {
  printf("swp_sessions: this MPI has no sessions\n");
  return 77;
}
#endif
