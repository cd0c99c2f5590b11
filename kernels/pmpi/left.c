/* Collectives that are always the MPI library's: they are only counted, for the report. */
#include "functions.h"
#include "report.h"
#include "startup.h"

/* Parameters and arguments are in parentheses. */
#define LEFT(function, shown, why, parameters, arguments)                                                    \
  EXPORTED int MPI_##function(LIST parameters) {                                                             \
    if (report_on)                                                                                           \
      report_left(shown, why);                                                                               \
    return PMPI_##function(LIST arguments);                                                                  \
  }

/*
 * Methods of collectives wait for other ranks while they execute. In MPI_Start that would be wrong where
 * another rank needs a message of this one before it starts, and in MPI_Wait where it needs one before it
 * waits.
 */
#ifdef SWP_HAVE_PERSISTENT
#define PERSISTENT(name, suffix, parameters, arguments)                                                      \
  LEFT(name##_init##suffix, #name "_init",                                                                   \
       "persistent; starting it must not wait for other ranks, as methods do",                               \
       (LIST parameters, MPI_Comm comm, MPI_Info info, MPI_Request * request),                               \
       (LIST arguments, comm, info, request))
#else
#define PERSISTENT(name, suffix, parameters, arguments)
#endif

#define TABLED(name, nonblocking, suffix, parameters, arguments)                                             \
  PERSISTENT(name, suffix, parameters, arguments)
#define UNTABLED TABLED
#define NEIGHBOR(name, nonblocking, suffix, parameters, arguments)

#define EACH(group, name, nonblocking, suffix, parameters, arguments, items, type)                           \
  group(name, nonblocking, suffix, parameters, arguments)

FUNCTIONS(EACH, , int, int, )
#ifdef SWP_HAVE_LARGE_COUNTS
FUNCTIONS(EACH, _c, MPI_Count, MPI_Aint, )
#endif
