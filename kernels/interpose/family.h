/* Checks that the program runs under the MPI that this is built for. */
#ifndef SWP_FAMILY_H
#define SWP_FAMILY_H

/* Ends the process with a message that names the preload if the MPI of the caller, an address in the program
   or in a library of its, is another: handles have other meanings there, so that nothing can be called. */
void family_check(const char *preload, const void *caller);

#endif
