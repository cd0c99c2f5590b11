/* The ranks of a collective, and what their messages cost: Group of tuner/models/algorithms.py. */
#ifndef SWP_GROUP_H
#define SWP_GROUP_H

#include "kinds.h"

/* Ranks, and the costs of their messages, and of bytes in memory. */
struct group {
  const struct pair_model *pair, *on_node; /* on_node: within nodes of ppn ranks; NULL where there is one */
  int procs, ppn;
  double reduce_s_per_byte, copy_s_per_byte;
};

/* All ranks of a plan. */
struct group swp_group(const struct swp_plan *plan, const struct model *model);

/* So many of the ranks, which are among `span` ranks that follow each other. */
struct group swp_group_part(const struct group *group, int procs, int span);

double swp_message_s(const struct group *group, double bytes);

/* D of messages that a rank sends at once while it receives so many. */
double swp_burst_s(const struct group *group, int messages, double bytes, int received);

double swp_reduced_s(const struct group *group, double bytes);

#endif
