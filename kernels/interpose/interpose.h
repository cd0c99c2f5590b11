/* How a library stands before MPI's functions. */
#ifndef SWP_INTERPOSE_H
#define SWP_INTERPOSE_H

#define EXPORTED __attribute__((visibility("default")))

/* Ends MPI, after what the preload for MPICH 4 over TCP does before. Never calls the next definition of
   MPI_Finalize: it may be of a tool that has not seen MPI begin. */
int interpose_finalize(void);

#endif
