/* Windows of one-sided communication among all ranks of a plan. */
#ifndef SWP_WINDOW_H
#define SWP_WINDOW_H

#include "plan.h"

/* NULL where they can be relied on, otherwise why not. */
const char *swp_window_applicable(const struct spec *spec, const struct features *features);

/* Allocates zeroed memory of each rank, *base, which others address in units of so many bytes; in memory that
   all share where they do. Collective. Errors: SWP_ERR_MPI. */
int swp_window_make(struct swp_plan *plan, int64_t bytes, int unit_bytes, void *base, MPI_Win *window);

/* MPI_WIN_NULL is allowed. Collective. */
void swp_window_free(MPI_Win *window);

#endif
