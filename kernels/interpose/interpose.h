/* How a library stands before MPI's functions. */
#ifndef SWP_INTERPOSE_H
#define SWP_INTERPOSE_H

#define EXPORTED __attribute__((visibility("default")))

/* Calls the next definition of MPI_Finalize, which may be another preload's: that for MPICH 4 over TCP. */
int interpose_finalize(void);

#endif
