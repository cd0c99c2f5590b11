/* Which methods to measure: the expansion of --methods. */
#ifndef BENCH_METHODS_H
#define BENCH_METHODS_H

#include <stdbool.h>
#include <switchpoint.h>

enum { METHOD_SPEC_MAX = 256 };

struct method {
  char spec[METHOD_SPEC_MAX];
  bool applicable; /* false: a family of which nothing fits this number of processes */
};

/*
 * Expands a list of specs, of family names, "all" and "auto", separated by spaces or semicolons; "NAME:" is
 * the method without parameters. The caller frees the result. 0, or -1 with failure_text() set. Local.
 */
int methods_expand(enum swp_operation operation, const char *text, int procs, struct method **methods,
                   int *count);

/* If text is "vendor:environment=NAME", sets the environment for it. Call it before MPI_Init. */
void methods_set_environment(enum swp_operation operation, const char *text);

/* Returns whether the spec is "vendor:environment=NAME", an algorithm that no launch proves. */
bool methods_is_by_environment(const char *spec);

#endif
