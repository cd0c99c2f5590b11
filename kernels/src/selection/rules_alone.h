/* Tables for the preload, which does by a method only what was measured. */
#ifndef SWP_RULES_ALONE_H
#define SWP_RULES_ALONE_H

#include "switchpoint.h"

/* Forgets the model of a table: plans with it go by its rules alone, and else by the default. Local. */
void swp_table_forget_model(swp_table *table);

#endif
