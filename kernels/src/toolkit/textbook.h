/* The times of collective algorithms on P ranks, by m, the block of a rank or the whole vector: the equations
   of tuner/models (algorithms.py, collectives.py), which name their sources. */
#ifndef SWP_TEXTBOOK_H
#define SWP_TEXTBOOK_H

#include "kinds.h"

/* The ranks of a collective, with the costs of their messages and of bytes in memory. */
struct group {
  const struct pair_model *pair, *on_node; /* on_node: within nodes of ppn ranks; NULL where there is one */
  int procs, ppn;
  double reduce_s_per_byte, copy_s_per_byte;
};

typedef double formula(const struct group *group, double m);

/* All ranks of a plan. */
struct group swp_group(const struct swp_plan *plan, const struct model *model);

/* So many of the ranks, which are among `span` ranks that follow each other. */
struct group swp_group_part(const struct group *group, int procs, int span);

/* The formula of a method without parameters, or NULL. */
formula *swp_textbook_method(enum swp_operation operation, const char *name);

/* The formula of a library's algorithm; NULL if none is known by that name. */
formula *swp_textbook_algorithm(enum swp_operation operation, const char *name);

/* The least time of the algorithms of an operation, as the library's choice is not known. */
double swp_textbook_least_s(enum swp_operation operation, const struct group *group, double m);

/* Those of methods with parameters. */
typedef double radix_formula(const struct group *group, double m, int radix);
radix_formula swp_textbook_knomial_bcast_s, swp_textbook_knomial_blocks_s, swp_textbook_knomial_reduce_s;
radix_formula swp_textbook_knomial_barrier_s, swp_textbook_bruck_barrier_s;
radix_formula swp_textbook_multiplying_allreduce_s, swp_textbook_multiplying_allgather_s;
radix_formula swp_textbook_bruck_allgather_s, swp_textbook_bruck_alltoall_s;
double swp_textbook_chain_s(const struct group *group, double m, double segment_bytes);
formula swp_textbook_scatter_ring_s;
double swp_textbook_uneven_bruck_s(const struct group *group, double m, int radix,
                                   int global); /* global 0: all ranks as one node */

/* That of boards in the node's memory: no algorithm of libraries, so not among those of which the least is
 * taken. */
double swp_textbook_shared_s(enum swp_operation operation, const struct group *group, double m);

/* `estimate` of methods whose formula is in the table by their name. */
int swp_estimate_textbook(const struct swp_plan *plan, const struct estimate *estimate, double *seconds);

#endif
