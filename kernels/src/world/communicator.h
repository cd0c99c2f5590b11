/* Communicators of the library's own. */
#ifndef SWP_COMMUNICATOR_H
#define SWP_COMMUNICATOR_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * A duplicate of the caller's communicator that returns its errors; an error in making it is returned too,
 * whatever error handler the caller has set. Collective. *own is MPI_COMM_NULL on an error. Errors:
 * SWP_ERR_ARGUMENT (no communicator, or an intercommunicator), SWP_ERR_MPI.
 */
int swp_comm_duplicate(MPI_Comm comm, MPI_Comm *own);

/* The caller's communicator itself, made to return its errors. Local. Errors as above. */
int swp_comm_take(MPI_Comm comm, MPI_Comm *own);

/*
 * The key of an attribute that no copy of a communicator inherits, made at the first use by whichever thread
 * comes first: *shared is static, and MPI_KEYVAL_INVALID until then. Local. Errors: SWP_ERR_MPI.
 */
int swp_comm_key(atomic_int *shared, MPI_Comm_delete_attr_function *forget, int *key);

/* Returns whether MPI_COMM_WORLD exists, between MPI_Init and MPI_Finalize: in a session alone it does not.
   Local. */
bool swp_comm_has_world(void);

#endif
