/* Tables for the preload, which does by a method only what was measured. */
#ifndef SWP_RULES_ALONE_H
#define SWP_RULES_ALONE_H

#include "switchpoint.h"

#include <stdbool.h>

/* Forgets the model of a table: plans with it go by its rules alone, and else by the default. Local. */
void swp_table_forget_model(swp_table *table);

/* Returns whether two tables were read from the same text. */
bool swp_table_is_same(const swp_table *a, const swp_table *b);

/* Makes all ranks pass over the rules whose method the process of some rank lacks: the preload selects
   without asking other ranks. Collective. Errors: SWP_ERR_MEMORY, SWP_ERR_MPI. */
int swp_table_agree(MPI_Comm comm, swp_table *table);

#endif
