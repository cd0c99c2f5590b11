/*
 * Methods of a collective plan: each is prepared when it is first chosen, and kept. A selected one that
 * cannot be prepared is passed over from then on.
 */
#ifndef SWP_PREPARE_H
#define SWP_PREPARE_H

#include "choices.h"
#include "kinds.h"

/* Prepares the plan to use choices, which must live as long as the plan. Local. Errors: SWP_ERR_MEMORY. */
int swp_prepare_begin(struct collective_plan *collective, const struct choices *choices);

/* Finds the choice for these features and makes its method the plan's. Collective if that has something to
   prepare and has not done so yet. On an error, the same on every rank, the method stays as it was. Errors:
   SWP_ERR_NOT_APPLICABLE, those of planning. */
int swp_prepare_choice(struct collective_plan *collective, const struct features *features);

/* The same, of a choice that was found before. */
int swp_prepare_match(struct collective_plan *collective, const struct features *features,
                      const struct match *match);

/* Frees what the methods prepared, and the plan's own choices. */
void swp_prepare_end(struct collective_plan *collective);

#endif
