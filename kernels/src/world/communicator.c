/* Communicators of the library's own. */
#include "communicator.h"

#include "error.h"
#include "switchpoint.h"

static int check_kind(MPI_Comm comm) {
  int error = SWP_SUCCESS, inter = 0;
  MPI_TRY(MPI_Comm_test_inter(comm, &inter));
  if (inter)
    return swp_fail(SWP_ERR_ARGUMENT, "intercommunicators are not supported");
done:
  return error;
}

int swp_comm_take(MPI_Comm comm, MPI_Comm *own) {
  int error = SWP_SUCCESS;
  *own = MPI_COMM_NULL;
  if (comm == MPI_COMM_NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "the communicator is MPI_COMM_NULL");
  TRY(check_kind(comm));
  MPI_TRY(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  *own = comm;
done:
  return error;
}

static int duplicate(MPI_Comm comm, MPI_Comm *own) {
  int error = SWP_SUCCESS;
  TRY(check_kind(comm));
  MPI_TRY(MPI_Comm_dup(comm, own));
  MPI_TRY(MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN));
done:
  return error;
}

int swp_comm_duplicate(MPI_Comm comm, MPI_Comm *own) {
  int error = SWP_SUCCESS;
  MPI_Errhandler theirs;
  *own = MPI_COMM_NULL;
  if (comm == MPI_COMM_NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "the communicator is MPI_COMM_NULL");
  MPI_TRY(MPI_Comm_get_errhandler(comm, &theirs));
  MPI_TRY(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  error = duplicate(comm, own);
  MPI_TRY(MPI_Comm_set_errhandler(comm, theirs));
  MPI_TRY(MPI_Errhandler_free(&theirs));
done:
  return error;
}

int swp_comm_key(atomic_int *shared, MPI_Comm_delete_attr_function *forget, int *key) {
  int error = SWP_SUCCESS, none = MPI_KEYVAL_INVALID, made;
  *key = atomic_load(shared);
  if (*key != MPI_KEYVAL_INVALID)
    return SWP_SUCCESS;
  MPI_TRY(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &made, NULL));
  if (!atomic_compare_exchange_strong(shared, &none, made))
    MPI_TRY(MPI_Comm_free_keyval(&made));
  *key = atomic_load(shared);
done:
  return error;
}

bool swp_comm_has_world(void) {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun && !ended;
}
