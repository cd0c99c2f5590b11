#include "group.h"

#include "formulas.h"

/* A root handles all messages: those on a node have the costs of one pair alone, where these are known. */
struct group swp_group(const struct swp_plan *plan, const struct model *model) {
  const struct features *features = &plan->features;
  const struct pair_model *alone = &model->pairs[PAIR_ALONE];
  const struct pair_model *on_node = alone->nmessages > 0 ? alone : &model->pairs[PAIR_ON_NODE];
  bool several = features->nodes > 1;
  return (struct group){.pair = several ? &model->pairs[PAIR_OFF_NODE] : on_node,
                        .on_node = several ? on_node : NULL,
                        .procs = plan->procs,
                        .ppn = features->ppn,
                        .reduce_s_per_byte = model->reduce_s_per_byte,
                        .copy_s_per_byte = model->copy_s_per_byte};
}

struct group swp_group_part(const struct group *group, int procs, int span) {
  struct group part = *group;
  if (group->on_node != NULL && group->ppn % span == 0)
    part.pair = group->on_node;
  part.on_node = NULL;
  part.procs = procs;
  return part;
}

double swp_message_s(const struct group *g, double bytes) {
  const struct message_cost *cost = swp_cost_of(g->pair, bytes);
  return cost->alpha_s + cost->beta_s * bytes;
}

double swp_burst_s(const struct group *g, int messages, double bytes, int received) {
  const struct message_cost *cost = swp_cost_of(g->pair, bytes);
  return swp_ahead_s(cost, bytes) + (messages - 1) * cost->step_s + (received - 1) * cost->receive_s +
         messages * bytes * cost->per_byte_s;
}

double swp_reduced_s(const struct group *g, double bytes) {
  return bytes * g->reduce_s_per_byte;
}
