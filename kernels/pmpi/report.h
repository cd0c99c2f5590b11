/* The report of dispatched calls, printed if SWITCHPOINT_REPORT is set when the program ends. */
#ifndef SWP_REPORT_H
#define SWP_REPORT_H

#include "switchpoint.h"

#include <stdbool.h>

/* Whether this rank counts its calls. */
extern bool report_on;

/* A call of this rank; method NULL: left to the MPI library. */
void report_count(enum swp_operation operation, const char *method, int64_t bytes);

/* A call of this rank whose first rule was passed over: the method of that rule, and why. */
void report_passed(enum swp_operation operation, const char *method, const char *why, int64_t bytes);

/* A call of this rank, by the name of its function without MPI_, that is left to the MPI library before a
   method is selected, and why. */
void report_left(const char *function, const char *why);

/* Writes the report to stderr, once. */
void report_end(const swp_table *table);

#endif
