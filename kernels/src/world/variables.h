/*
 * The variables by which MPI libraries let their own algorithms be chosen: the one place that names them. A
 * name with %s is that of an operation.
 */
#ifndef SWP_VARIABLES_H
#define SWP_VARIABLES_H

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

#endif
