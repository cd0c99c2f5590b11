/* The user's table: what SWP_MEASURE found, kept as rules for later plans. */
#ifndef SWP_USER_TABLE_H
#define SWP_USER_TABLE_H

#include "race.h"

#define SWP_USER_TABLE "SWITCHPOINT_USER_TABLE"

/*
 * Finds whether rank 0's environment names a user's table; checks that it can be written before a race takes
 * time. Collective on plan->comm. Errors, agreed: SWP_ERR_TABLE, _MPI.
 */
int swp_remember_possible(struct swp_plan *plan, bool *possible);

/*
 * Appends rules for the plan's problem to the user's table. The file is replaced by one with more lines, so
 * that a reader never sees half of it, also over NFS; of two programs that do so at once, one may lose its
 * rules, and measures again in a later run. Collective on plan->comm. Errors, agreed: SWP_ERR_TABLE, _MEMORY,
 * _MPI.
 */
int swp_remember(struct swp_plan *plan, const struct outcome *outcome);

#endif
