/*
 * The MPI library's own algorithms for collectives, as the library reports them by its control variables
 * (MPI_T), and how one of them is made to run: MPICH reads its variables at every call, Open MPI when a
 * communicator is made.
 */
#ifndef SWP_ALGORITHMS_H
#define SWP_ALGORITHMS_H

#include "operations.h"

#include <mpi.h>

/* A variable that is written around each call. */
struct setting {
  MPI_T_cvar_handle handle;
  int value, own_value;
};

enum { SETTINGS = 2 };

struct algorithm {
  MPI_Comm comm; /* for the calls; a duplicate where the library needs that */
  bool owns_comm;
  int nsettings;
  struct setting settings[SETTINGS];
};

/* The level that MPI_Query_thread returns; MPI_THREAD_MULTIPLE if only sessions are open, whose level is
   unknown. Local. */
int swp_thread_level(void);

/* The index-th name that can be set for the operation; NULL past the last. Static. Local; needs no MPI. */
const char *swp_algorithm_name(enum swp_operation operation, int index);

/* Returns whether there is such a name. Local; needs no MPI. */
bool swp_algorithm_known(enum swp_operation operation, const char *name);

/* Prepares calls on a communicator that is like comm. Collective. swp_algorithm_close must be called, even
   after an error. A communicator that another thread makes at this time may get the algorithm too: a lock
   could not be held here, where ranks wait for each other. Errors, agreed: SWP_ERR_NOT_APPLICABLE, _MPI. */
int swp_algorithm_open(MPI_Comm comm, enum swp_operation operation, const char *name,
                       struct algorithm *algorithm);

/* Called around a call by this algorithm. Local. No other thread of the process may then be in such a call:
   the variable is one for all. */
void swp_algorithm_begin(const struct algorithm *algorithm);
void swp_algorithm_end(const struct algorithm *algorithm);

/* Collective. */
void swp_algorithm_close(struct algorithm *algorithm);

#endif
