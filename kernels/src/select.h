/* Selection: which method a plan uses, and why. */
#ifndef SWP_SELECT_H
#define SWP_SELECT_H

#include "plan.h"
#include "table.h"

/*
 * For an exchange or a discovery; collectives have choices. Sets plan->spec, plan->chosen_by and
 * plan->passed_over from the caller's spec (not auto), the user's table, a race if the hints want one, the
 * table in the hints, the table named by SWITCHPOINT_TABLE on rank 0, or the default. Reads only what is
 * equal on all ranks. Collective on plan->comm. Errors, agreed: SWP_ERR_METHOD, _NOT_APPLICABLE, _TABLE,
 * _MEMORY, _MPI.
 */
int swp_select_method(struct swp_plan *plan, const char *method);

const char *swp_default_method(enum swp_operation operation);

/* The table that a variable of rank 0's environment names, or NULL; an optional one may be missing.
   Collective. To be freed. Errors, agreed. */
int swp_environment_table(MPI_Comm comm, int rank, const char *variable, bool optional, swp_table **table);

/* Whether the rule is for the features' operation, nodes, ranks per node and expected executions. */
bool swp_rule_is_for(const struct rule *rule, const struct features *features);

/* The first rule that is for the features, all of them, and whose method can be used; or NULL. *passed, where
   it is wanted, is the first one before it whose method cannot, and *why the reason; NULL: none. */
const struct rule *swp_rule_find(const swp_table *table, const struct features *features,
                                 const struct rule **passed, const char **why);

/*
 * Sets plan->spec and plan->chosen_by by a race, and remembers what it told in the user's table; *found is
 * false when the budget was too short for one. Collective on plan->comm. Errors, agreed: SWP_ERR_TABLE,
 * _MEMORY, _MPI.
 */
int swp_select_by_race(struct swp_plan *plan, bool *found);

#endif
