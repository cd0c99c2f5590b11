/* The steps that plans and trials are made of. */
#ifndef SWP_MAKE_H
#define SWP_MAKE_H

#include "choices.h"
#include "kinds.h"

/* A zeroed plan of the operation's kind, without a communicator; NULL when memory runs out. */
struct swp_plan *swp_plan_new(enum swp_operation operation);

/* Sets the layout of the plan's ranks. The plan releases the topology. */
void swp_plan_place(struct swp_plan *plan, struct topology *topology);

/* Plans an exchange or a discovery by the method. Collective. Errors, agreed: the method's. */
int swp_plan_by_method(struct swp_plan *plan, const struct spec *spec);

/* Undoes that, so that another method can plan. Local. */
void swp_plan_unmake(struct swp_plan *plan);

/* Takes the first choice of the sources for the collective's call. Collective. Errors, agreed:
   SWP_ERR_NOT_APPLICABLE, _MEMORY, those of planning. */
int swp_plan_collective(struct collective_plan *collective, const struct sources *sources);

/* The same, of a selector's choices, with one of them found before. The selector must live as long as the
   plan. Error: SWP_ERR_ARGUMENT too (it is for another layout). */
int swp_plan_by_match(struct collective_plan *collective, const swp_selector *selector,
                      const struct match *match);

/* Sets the collective to another call, with its features and the choice for them; match NULL: to be found.
   After an error the plan is as before. Errors: as swp_collective_set. */
int swp_plan_set(struct collective_plan *collective, const struct call *call, const struct features *features,
                 const struct match *match);

#endif
