/*
 * The variables by which MPI libraries let their own algorithms be chosen, and Open MPI's components: the one
 * place that names them. A name with %s is that of an operation or component.
 */
#ifndef SWP_VARIABLES_H
#define SWP_VARIABLES_H

#include "switchpoint.h"

#include <stdbool.h>

/* MPICH: read at every call. DEVICE_COLLECTIVES otherwise makes other code run, on some nodes and after some
   calls; FALLBACK decides what becomes of a call that the algorithm cannot do. */
#define MPICH_ALGORITHM "MPIR_CVAR_%s_INTRA_ALGORITHM"
#define MPICH_BYPASS "MPIR_CVAR_DEVICE_COLLECTIVES"
#define MPICH_FALLBACK "MPIR_CVAR_COLLECTIVE_FALLBACK"

/* Open MPI: read when a communicator is made, where the switch is on; of 4, only if it was on at the start.
   A component is used for what none of higher priority does. */
#define OPENMPI_PREFIX "OMPI_MCA_" /* in the environment */
#define OPENMPI_ALGORITHM "coll_tuned_%s_algorithm"
#define OPENMPI_SWITCH "coll_tuned_use_dynamic_rules"
#define OPENMPI_PRIORITY "coll_%s_priority"
#define OPENMPI_HAN "coll_han_%s_" /* of its parts, read at the start */

/* Intel MPI: read at the start. */
#define INTEL_ALGORITHM "I_MPI_ADJUST_%s"

enum {
  VARIABLE_BYTES = 80,  /* of a variable's name */
  ALGORITHM_BYTES = 64, /* of an algorithm's, which a spec must be able to have */
  FIRST_PRIORITY = 99   /* before all but what users put at 100 */
};

/* Writes the name of an operation's variable to text, of VARIABLE_BYTES; upper: in capitals. */
void swp_variable_name(const char *format, bool upper, enum swp_operation operation, char *text);

#define SWP_BIT(operation) (1U << (operation))

/* A component of Open MPI, chosen as a whole. */
struct component {
  const char *name;
  unsigned operations; /* bits */
  unsigned in_parts;   /* those of them that it makes of parts that can be chosen too */
  bool at_start;       /* only by the environment */
};

/* Ends with one that has no name. */
extern const struct component swp_components[];

#endif
