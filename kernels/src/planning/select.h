/* Where the method of a plan comes from. */
#ifndef SWP_SELECT_H
#define SWP_SELECT_H

#include "choices.h"
#include "kinds.h"

/* The choices of a plan. */
struct selection {
  struct sources sources;
  struct spec found; /* the caller's, or the race's */
  char evidence[EVIDENCE_BYTES];
  swp_table *users, *own; /* read from the environment */
};

/*
 * Finds the sources of choices: the caller's spec (not auto), or else the user's table, a race if the hints
 * want one and that table has no rule, and the table in the hints or the one named by SWITCHPOINT_TABLE on
 * rank 0. Reads only what is equal on all ranks. swp_select_end must be called in any case. Collective on
 * plan->comm. Errors, agreed: SWP_ERR_METHOD, _NOT_APPLICABLE, _TABLE, _MEMORY, _MPI.
 */
int swp_select(struct swp_plan *plan, const char *method, struct selection *selection);

void swp_select_end(struct selection *selection);

/* Sets *spec to the first choice for an exchange or a discovery, by the table's model where no rule is, and
   plan->chosen_by to why. Collective. Errors as above. */
int swp_select_first(struct swp_plan *plan, const struct sources *sources, struct spec *spec);

#endif
