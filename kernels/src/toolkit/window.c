/* Windows of one-sided communication among all ranks of a plan. */
#include "window.h"

#include <string.h>

/* Some libraries corrupt windows whose size is not a multiple of 16 bytes. */
enum { WINDOW_GRANULE_BYTES = 64 };

/* Open MPI 4 gives the files behind windows of two disjoint communicators the same names, which corrupts both
   if they are made at the same time. Shared-memory windows are not affected. */
const char *swp_window_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
#if defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION < 5
  if (!features->shared_memory && !features->alone)
    return "on some of the job's ranks, on several nodes, Open MPI 4 may confuse its windows with those of "
           "other ranks";
#else
  (void)features;
#endif
  return NULL;
}

/* In windows of shared memory of SimGrid 3.32 all ranks are rank 0 to others. */
int swp_window_make(struct swp_plan *plan, int64_t bytes, int unit_bytes, void *base, MPI_Win *window) {
  int error = SWP_SUCCESS;
  void *memory;
  bytes = swp_round_up(bytes, WINDOW_GRANULE_BYTES);
  if (plan->features.shared_memory && !SWP_SIMULATED)
    MPI_TRY(MPI_Win_allocate_shared(bytes, unit_bytes, MPI_INFO_NULL, plan->comm, &memory, window));
  else
    MPI_TRY(MPI_Win_allocate(bytes, unit_bytes, MPI_INFO_NULL, plan->comm, &memory, window));
  MPI_TRY(MPI_Win_set_errhandler(*window, MPI_ERRORS_RETURN));
  memset(memory, 0, (size_t)bytes);
  *(void **)base = memory;
done:
  return error;
}

void swp_window_free(MPI_Win *window) {
  if (*window != MPI_WIN_NULL)
    MPI_Win_free(window);
}
