/* Collectives that are always the MPI library's: they are only counted, for the report. */
#include "functions.h"
#include "report.h"
#include "startup.h"

/* Parameters and arguments are in parentheses. */
#define LEFT(function, why, parameters, arguments)                                                           \
  EXPORTED int MPI_##function(LIST parameters) {                                                             \
    if (report_on)                                                                                           \
      report_left(#function, why);                                                                           \
    return PMPI_##function(LIST arguments);                                                                  \
  }

#define NO_TABLE "no table is about this function"
#define NONBLOCKING "nonblocking; methods wait for other ranks"
#define PLANNED_NONBLOCKING "nonblocking; only plain and persistent calls are dispatched"

/* The forms of a function. Parameters and arguments are those before the communicator, with a comma. */
#define PLAIN(name, why, parameters, arguments)                                                              \
  LEFT(name, why, (LIST parameters MPI_Comm comm), (LIST arguments comm))
#define BEGUN(name, why, parameters, arguments)                                                              \
  LEFT(name, why, (LIST parameters MPI_Comm comm, MPI_Request * request), (LIST arguments comm, request))
#ifdef SWP_HAVE_PERSISTENT
#define MADE(name, why, parameters, arguments)                                                               \
  LEFT(name, why, (LIST parameters MPI_Comm comm, MPI_Info info, MPI_Request * request),                     \
       (LIST arguments comm, info, request))
#else
#define MADE(name, why, parameters, arguments)
#endif

/* The calls that are left to the library, by the group of the function. */
#define TABLED(name, nonblocking, suffix, parameters, arguments)                                             \
  BEGUN(nonblocking##suffix, NONBLOCKING, parameters, arguments)
#define UNTABLED(name, nonblocking, suffix, parameters, arguments)                                           \
  PLAIN(name##suffix, NO_TABLE, parameters, arguments)                                                       \
  BEGUN(nonblocking##suffix, NO_TABLE, parameters, arguments)                                                \
  MADE(name##_init##suffix, NO_TABLE, parameters, arguments)
#define PLANNED(name, nonblocking, suffix, parameters, arguments)                                            \
  BEGUN(nonblocking##suffix, PLANNED_NONBLOCKING, parameters, arguments)
#define NEIGHBOR PLANNED

#define EACH(group, name, nonblocking, suffix, parameters, arguments, items, type)                           \
  group(name, nonblocking, suffix, (LIST parameters, ), (LIST arguments, ))

FUNCTIONS(EACH, , int, int, )
#ifdef SWP_HAVE_LARGE_COUNTS
FUNCTIONS(EACH, _c, MPI_Count, MPI_Aint, )
#endif
BEGUN(Ibarrier, NONBLOCKING, (), ())
