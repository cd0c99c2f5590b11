/* The times of collective algorithms on P ranks, by m, the block of a rank or the whole vector: the equations
   of tuner/models (algorithms.py, collectives.py), which name their sources. */
#ifndef SWP_TEXTBOOK_H
#define SWP_TEXTBOOK_H

#include "group.h"

typedef double formula(const struct group *group, double m);

/* The formula of a library's algorithm; NULL if none is known by that name. */
formula *swp_textbook_algorithm(enum swp_operation operation, const char *name);

/* The least time of the algorithms of an operation, as the library's choice is not known. */
double swp_textbook_least_s(enum swp_operation operation, const struct group *group, double m);

/* The formulas of methods with parameters other than a radix (radix.h). */
double swp_textbook_chain_s(const struct group *group, double m, double segment_bytes);
formula swp_textbook_scatter_ring_s;

/* The formula of boards in the node's memory: no algorithm of libraries, so not among those of which the
   least is taken. */
double swp_textbook_shared_s(enum swp_operation operation, const struct group *group, double m);

/* `estimate` by a formula, and of methods whose formula is in the table by their name. */
int swp_estimate_formula(const struct swp_plan *plan, const struct estimate *estimate, formula *its,
                         double *seconds);
int swp_estimate_textbook(const struct swp_plan *plan, const struct estimate *estimate, double *seconds);

#endif
