/* Checks that the program runs under the MPI that this is built for. */
#ifndef SWP_FAMILY_H
#define SWP_FAMILY_H

/* Ends the process with a message that names the preload if the MPI of the caller, an address in the program
   or in a library of its, is another: handles have other meanings there, so that nothing can be called. */
void family_check(const char *preload, const void *caller);

/* The same for MPI_Init of a program in Fortran, which need not be linked with the library for C itself: by
   the function that this library stands before, or the caller where that is not among what the program has
   loaded for all. */
void family_check_fortran(const char *preload, const void *caller);

#endif
