/* Counts, by MPI's profiling interface, the MPI objects that exist: what a tool for memory takes for in use.
 */
#ifndef OBJECTS_H
#define OBJECTS_H

/* Communicators, windows and types made and not freed by this process, but those that MPI itself makes. */
long mpi_objects(void);

#endif
