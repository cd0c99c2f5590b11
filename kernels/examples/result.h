/* Functions that the applications share: memory, and the line that they print. */
#ifndef RESULT_H
#define RESULT_H

#include <stddef.h>

/* Zeroed numbers; ends the job when memory runs out. */
double *result_allocate(size_t count);

/* Prints the error once, and ends the job. */
void result_refuse(const char *text);

/* Rank 0 prints the greatest time over ranks, and a hash of the bits and the 2-norm of its vector. */
void result_print(double time_s, const double *vector, int size);

#endif
