/* Selection: which method a plan uses, and why. */
#ifndef SWP_SELECT_H
#define SWP_SELECT_H

#include "plan.h"

/*
 * Sets plan->spec and plan->chosen_by from the caller's spec (not auto), the table in the hints, the table
 * named by SWITCHPOINT_TABLE on rank 0, or the default. Reads only what is equal on all ranks. Collective on
 * plan->comm. Errors, agreed: SWP_ERR_METHOD, _NOT_APPLICABLE, _TABLE, _MEMORY, _MPI.
 */
int swp_select_method(struct swp_plan *plan, const char *method);

#endif
