/* Selection: which method a plan uses, and why. */
#ifndef SWP_SELECT_H
#define SWP_SELECT_H

#include "plan.h"
#include "table.h"

/*
 * For an exchange or a discovery; collectives have choices. Sets plan->spec and plan->chosen_by from the
 * caller's spec (not auto), the user's table, a race if the hints want one, the table in the hints, the table
 * named by SWITCHPOINT_TABLE on rank 0, or the default. Reads only what is equal on all ranks. Collective on
 * plan->comm. Errors, agreed: SWP_ERR_METHOD, _NOT_APPLICABLE, _TABLE, _MEMORY, _MPI.
 */
int swp_select_method(struct swp_plan *plan, const char *method);

const char *swp_default_method(enum swp_operation operation);

/* The table that a variable of rank 0's environment names, or NULL; an optional one may be missing.
   Collective. To be freed. Errors, agreed. */
int swp_environment_table(MPI_Comm comm, int rank, const char *variable, bool optional, swp_table **table);

/* Whether the rule is for the operation on so many nodes and ranks per node. */
bool swp_rule_is_for(const struct rule *rule, enum swp_operation operation, const struct features *features);

#endif
