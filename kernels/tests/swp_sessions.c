/*
 * A program of an MPI session, without MPI_Init or before it: a communicator of all ranks, and its
 * collectives. For a preload; with --library, plans of the library too, by the table in the environment.
 * Where MPI has no sessions the program says so, and ends with 77. Usage: swp_sessions [--init | --library]
 */
#include "switchpoint.h"

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

/* An exchange, and a reduction, by the methods that the table says. */
static int plan(MPI_Comm comm) {
  int rank, procs, sent, came = -1, sum = 0, wrong = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &procs);
  const int next = (rank + 1) % procs, previous = (rank + procs - 1) % procs;
  const int64_t offsets[] = {0, 1};
  const struct swp_exchange ring = {sizeof sent, 1, 1, &next, offsets, NULL, 1, &previous, offsets};
  const struct swp_collective total = {
      .operation = SWP_ALLREDUCE, .recv_count = 1, .recv_type = MPI_INT, .op = MPI_SUM};
  swp_plan *exchange, *allreduce;
  sent = rank + 1;
  wrong += swp_exchange_plan(comm, &ring, "auto", NULL, &exchange) != SWP_SUCCESS;
  wrong += swp_exchange_execute(exchange, &sent, &came) != SWP_SUCCESS || came != previous + 1;
  wrong += swp_collective_plan(comm, &total, "auto", NULL, &allreduce) != SWP_SUCCESS;
  wrong += swp_collective_execute(allreduce, &sent, &sum) != SWP_SUCCESS || sum != procs * (procs + 1) / 2;
  if (rank == 0)
    printf("swp_sessions: exchange by %s, allreduce by %s\n", swp_plan_method(exchange),
           swp_plan_method(allreduce));
  swp_plan_free(&exchange);
  swp_plan_free(&allreduce);
  return wrong;
}

static int run(const char *option) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank, wrong;
  const bool init = strcmp(option, "--init") == 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "swp_sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  wrong = check(comm);
  if (strcmp(option, "--library") == 0)
    wrong += plan(comm);
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
  return run(argc > 1 ? argv[1] : "") == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
int main(void) {
  printf("swp_sessions: this MPI has no sessions\n");
  return 77;
}
#endif
