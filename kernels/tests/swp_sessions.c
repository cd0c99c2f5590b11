/*
 * A program of an MPI session, without MPI_Init: a communicator of all ranks, and its collectives. For a
 * preload. Where MPI has no sessions the program says so, and ends with 77.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SWP_HAVE_SESSIONS
static int run(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank, procs, value, sum = 0, wrong;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "swp_sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  value = rank + 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  wrong = sum != procs * (procs + 1) / 2;
  value = rank == 0 ? 17 : 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, comm);
  wrong += value != 17;
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (rank == 0 && wrong == 0)
    printf("swp_sessions: all right\n");
  return wrong;
}

int main(void) {
  return run() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
int main(void) {
  printf("swp_sessions: this MPI has no sessions\n");
  return 77;
}
#endif
