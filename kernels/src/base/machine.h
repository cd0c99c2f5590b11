/* The ranks of one machine, which share its clock and cores, also where its nodes are several virtual ones.
 */
#ifndef SWP_MACHINE_H
#define SWP_MACHINE_H

#include "random.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

/* A hash of what only this machine has. */
static inline uint64_t swp_machine_hash(void) {
  char boot[64] = "";
  uint64_t hash = 0;
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (file == NULL || fgets(boot, sizeof boot, file) == NULL)
    gethostname(boot, sizeof boot - 1);
  if (file != NULL)
    fclose(file);
  for (const char *letter = boot; *letter != '\0'; letter++)
    hash = swp_mix(hash ^ (unsigned char)*letter);
  return hash;
}

/* Divides the ranks by the hash of their machine, in order of the key. Returns an MPI error code. A colour
   has 31 bits only, which two of many thousand machines may have in common: they are divided once more. */
static inline int swp_machine_split(MPI_Comm comm, uint64_t hash, int key, MPI_Comm *machine) {
  MPI_Comm part;
  int mpi_error = MPI_Comm_split(comm, (int)(hash & INT_MAX), key, &part);
  if (mpi_error != MPI_SUCCESS)
    return mpi_error;
  mpi_error = MPI_Comm_split(part, (int)(hash >> 33), key, machine);
  MPI_Comm_free(&part);
  return mpi_error;
}

#endif
