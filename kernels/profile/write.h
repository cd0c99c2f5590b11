/* The file of a profile: JSON Lines, one for each process. */
#ifndef SWP_PROFILE_WRITE_H
#define SWP_PROFILE_WRITE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* Makes the file, empty; in a directory a new one, whose name it adds to the path. False if that fails. */
bool write_file(char *path, size_t path_bytes);

/* Prints what is wrong with the file. */
void write_complain(const char *path, const char *why);

/* Learns what a line says of this process; MPI is initialised. */
void write_begin(void);

/* Adds the line of this process; with a communicator, rank 0 of it adds those of all its ranks. `aborted`:
   the process has called MPI_Abort. */
void write_end(const char *path, MPI_Comm comm, bool aborted, double seconds);

#endif
