/* The beginning and the end of a profile: at MPI_Init, and at MPI_Finalize, MPI_Abort or exit. */
#define _GNU_SOURCE
#include "family.h"
#include "layout.h"
#include "record.h"
#include "write.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static char path[PATH_BYTES];
static MPI_Comm own = MPI_COMM_NULL;
static double started;
static pid_t process; /* a child that it forks must not write its line */

static void fail(const char *text) {
  write_complain(path, text);
  nanosleep(&(struct timespec){.tv_nsec = 200000000},
            NULL); /* launchers drop what an abort follows at once */
  PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* Sets the path on rank 0: absolute, as programs change their directory. */
static void find_path(void) {
  const char *named = getenv("SWITCHPOINT_PROFILE");
  char here[PATH_BYTES / 2] = "";
  if (named == NULL || named[0] == '\0')
    return;
  if (named[0] != '/' && getcwd(here, sizeof here) == NULL)
    fail("the working directory has no path");
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", here, here[0] != '\0' ? "/" : "", named) >= sizeof path)
    fail("the path is too long");
  if (!write_file(path, sizeof path))
    fail("cannot be written");
}

/* Collective on MPI_COMM_WORLD. Rank 0's variable holds: launchers need not pass variables on. Jobs that a
   program spawns inherit it, and would write into the same file. */
static void begin(const void *caller) {
  int rank;
  MPI_Comm parent;
  family_check("libswitchpoint_profile.so", caller);
  PMPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL)
    return;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    find_path();
  PMPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (path[0] == '\0')
    return;
  if (!layout_begin() || PMPI_Comm_dup(MPI_COMM_WORLD, &own) != MPI_SUCCESS)
    fail("no memory, or an MPI call failed");
  write_begin();
  process = getpid();
  started = record_now();
  record_on = true;
}

/* Writes what this process recorded, once: with `comm`, all ranks do. */
static void end(MPI_Comm comm, bool aborted) {
  if (record_on && getpid() == process && record_stop())
    write_end(path, comm, aborted, record_now() - started);
}

EXPORTED int MPI_Init(int *argc, char ***argv) {
  int error = PMPI_Init(argc, argv);
  if (error == MPI_SUCCESS)
    begin(__builtin_return_address(0));
  return error;
}

EXPORTED int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int error = PMPI_Init_thread(argc, argv, required, provided);
  if (error == MPI_SUCCESS)
    begin(__builtin_return_address(0));
  return error;
}

EXPORTED int MPI_Abort(MPI_Comm comm, int code) {
  end(MPI_COMM_NULL, true);
  return PMPI_Abort(comm, code);
}

EXPORTED int MPI_Finalize(void) {
  end(own, false);
  if (own != MPI_COMM_NULL)
    PMPI_Comm_free(&own);
  layout_end();
  return interpose_finalize();
}

/* A program that ends without MPI_Finalize: each process writes its own. */
static void __attribute__((destructor)) leave(void) {
  end(MPI_COMM_NULL, false);
}
