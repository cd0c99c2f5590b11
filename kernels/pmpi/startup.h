/* The beginning and the end of the application's MPI. */
#ifndef SWP_STARTUP_H
#define SWP_STARTUP_H

#include "interpose.h"
#include "switchpoint.h"

/* The table that SWITCHPOINT_TABLE names on rank 0; NULL where it names none. */
const swp_table *startup_table(void);

/* Prints the error, and ends the job. */
void startup_abort(const char *text) __attribute__((noreturn));

#endif
