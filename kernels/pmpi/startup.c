/* The beginning and the end of the application's MPI: reads the table, and ends the job with a message if it
   cannot. */
#define _GNU_SOURCE
#include "startup.h"

#include "family.h"
#include "guard.h"
#include "layout.h"
#include "leaving.h"
#include "place.h"
#include "planned.h"
#include "report.h"
#include "rules_alone.h"
#include "self.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

struct settings {
  bool guard;
  char path[PATH_BYTES];
};

static swp_table *table;
static bool world;    /* between MPI_Init and MPI_Finalize */
static pid_t process; /* a child that it forks must not report */
static int sessions;
static bool over; /* an MPI in which calls could be dispatched has ended: never again */

const swp_table *startup_table(void) {
  return table;
}

void startup_abort(const char *text) {
  fprintf(stderr, "switchpoint: %s\n", text);
  fflush(stderr);
  nanosleep(&(struct timespec){.tv_nsec = 200000000},
            NULL); /* launchers drop output printed right before an abort */
  if (world)
    PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  _exit(EXIT_FAILURE);
}

static bool is_set(const char *variable) {
  const char *value = getenv(variable);
  return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

/* Rank 0's variables, broadcast to all ranks: launchers need not pass variables on. */
static void share_settings(int rank, struct settings *settings) {
  const char *path = getenv("SWITCHPOINT_TABLE");
  *settings = (struct settings){.guard = is_set("SWITCHPOINT_GUARD")};
  if (rank == 0 && path != NULL && strlen(path) >= sizeof settings->path)
    startup_abort("the path in SWITCHPOINT_TABLE is too long");
  if (rank == 0 && path != NULL)
    strcpy(settings->path, path);
  PMPI_Bcast(settings, (int)sizeof *settings, MPI_BYTE, 0, MPI_COMM_WORLD);
  int mine = over, any;
  PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (any)
    settings->path[0] = '\0';
}

/* Collective on MPI_COMM_WORLD. */
static void begin_world(const void *caller) {
  int rank;
  struct settings settings;
  family_check("libswitchpoint_pmpi.so", caller);
  world = true;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  share_settings(rank, &settings);
  if (settings.path[0] == '\0')
    return;
  swp_table *read = NULL;
  if (swp_table_read(MPI_COMM_WORLD, settings.path, &read) != SWP_SUCCESS) {
    if (rank == 0)
      startup_abort(swp_error_message());
    PMPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has ended the job */
  }
  if (table == NULL) {
    table = read;
  } else if (swp_table_is_same(table, read)) { /* as a session has read it, which may use it */
    swp_table_free(&read);
  } else {
    startup_abort("a session of this process has read another table than MPI_Init");
  }
  if (swp_table_agree(MPI_COMM_WORLD, table) != SWP_SUCCESS)
    startup_abort(swp_error_message());
  if (!layout_begin())
    startup_abort("cannot find the nodes of all ranks: no memory, or an MPI call failed");
  process = getpid();
  report_on = rank == 0 && is_set("SWITCHPOINT_REPORT");
  guard_on = settings.guard;
  swp_table_forget_model(table);
  planned_on = swp_table_has(table, SWP_EXCHANGE);
  promises_on = swp_table_rules(table) > 0;
  if (promises_on)
    place_begin();
}

static void end(void) {
  place_end();
  over |= swp_table_rules(table) > 0; /* not by what this rank dispatched: all are to find the same */
  swp_table_free(&table);
}

/* For rules that name algorithms of Open MPI 4. */
static void allow(void) {
  if (is_set("SWITCHPOINT_TABLE"))
    swp_environment_allow();
}

static pthread_once_t allowed = PTHREAD_ONCE_INIT;

EXPORTED int MPI_Init(int *argc, char ***argv) {
  pthread_once(&allowed, allow);
  int error = PMPI_Init(argc, argv);
  if (error == MPI_SUCCESS)
    begin_world(__builtin_return_address(0));
  return error;
}

EXPORTED int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  pthread_once(&allowed, allow);
  int error = PMPI_Init_thread(argc, argv, required, provided);
  if (error == MPI_SUCCESS)
    begin_world(__builtin_return_address(0));
  return error;
}

EXPORTED int MPI_Finalize(void) {
  if (world) {
    report_end(table);
    planned_on = promises_on = false;
    place_forget(MPI_COMM_WORLD);
    place_forget(MPI_COMM_SELF);
    self_end();
    layout_end();
    if (sessions == 0)
      end();
  }
  world = false;
  return interpose_finalize();
}

static void report(void) {
  if (world && getpid() == process)
    report_end(table);
}

EXPORTED int MPI_Abort(MPI_Comm comm, int code) {
  report();
  return PMPI_Abort(comm, code);
}

/* A program that ends without MPI_Finalize. */
static void __attribute__((destructor)) leave(void) {
  report();
}

#ifdef SWP_HAVE_SESSIONS
/* Without MPI_COMM_WORLD every process reads the table by itself: there is no rank 0. */
static void read_alone(MPI_Session session) {
  MPI_Group group;
  MPI_Comm self;
  const char *path = getenv("SWITCHPOINT_TABLE");
  if (path == NULL || path[0] == '\0' || over)
    return;
  if (PMPI_Group_from_session_pset(session, "mpi://SELF", &group) != MPI_SUCCESS ||
      PMPI_Comm_create_from_group(group, "switchpoint", MPI_INFO_NULL, MPI_ERRORS_RETURN, &self) !=
          MPI_SUCCESS)
    startup_abort("cannot read the table: the session has no communicator of this process alone");
  PMPI_Group_free(&group);
  if (swp_table_read(self, path, &table) != SWP_SUCCESS)
    startup_abort(swp_error_message());
  guard_on = is_set("SWITCHPOINT_GUARD");
  if (swp_table_rules(table) > 0)
    place_begin();
  PMPI_Comm_free(&self);
}

/* Threads may open and close sessions at once, and none is to go on before the table is read. */
static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORTED int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
  pthread_once(&allowed, allow); /* before any thread is in MPI, which reads the environment */
  int error = PMPI_Session_init(info, handler, session);
  if (error != MPI_SUCCESS)
    return error;
  pthread_mutex_lock(&session_lock);
  if (sessions++ == 0 && !world) {
    family_check("libswitchpoint_pmpi.so", __builtin_return_address(0));
    read_alone(*session);
  }
  pthread_mutex_unlock(&session_lock);
  return MPI_SUCCESS;
}

EXPORTED int MPI_Session_finalize(MPI_Session *session) {
  pthread_mutex_lock(&session_lock);
  if (--sessions == 0 && !world)
    end();
  pthread_mutex_unlock(&session_lock);
  return PMPI_Session_finalize(session);
}
#endif

static int leave_comm(MPI_Comm *comm, int (*leave)(MPI_Comm *comm)) {
  if (comm != NULL)
    place_forget(*comm);
  return leaving_free(comm, leave);
}

EXPORTED int MPI_Comm_free(MPI_Comm *comm) {
  return leave_comm(comm, PMPI_Comm_free);
}

EXPORTED int MPI_Comm_disconnect(MPI_Comm *comm) {
  return leave_comm(comm, PMPI_Comm_disconnect);
}
