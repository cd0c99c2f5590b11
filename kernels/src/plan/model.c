#include "model.h"

#include "order.h"

double swp_ahead_s(const struct message_cost *cost, double bytes) {
  return cost->alpha_s + swp_greater(cost->beta_s - cost->per_byte_s, 0) * bytes;
}

const struct message_cost *swp_cost_of(const struct pair_model *pair, double bytes) {
  int i = 0;
  while (bytes > pair->messages[i].up_to_bytes)
    i++;
  return &pair->messages[i];
}

static const struct message_cost *cost_between(const struct model *model, bool off_node, double bytes) {
  return swp_cost_of(&model->pairs[off_node ? PAIR_OFF_NODE : PAIR_ON_NODE], bytes);
}

void swp_tally_send(const struct model *model, bool off_node, int64_t bytes, struct tally *tally) {
  const struct message_cost *cost = cost_between(model, off_node, (double)bytes);
  double moved_s = cost->per_byte_s * (double)bytes;
  tally->ahead_s = swp_greater(tally->ahead_s, swp_ahead_s(cost, (double)bytes));
  tally->steps_s += cost->step_s;
  tally->longest_step_s = swp_greater(tally->longest_step_s, cost->step_s);
  if (off_node) {
    tally->leave_s += moved_s;
    tally->leaving++;
    tally->leaving_bytes += bytes;
  } else {
    tally->stay_s += moved_s;
  }
}

void swp_tally_receive(const struct model *model, bool off_node, int64_t bytes, struct tally *tally) {
  const struct message_cost *cost = cost_between(model, off_node, (double)bytes);
  tally->ahead_s = swp_greater(tally->ahead_s, swp_ahead_s(cost, (double)bytes));
  tally->receives_s += cost->receive_s;
  tally->longest_receive_s = swp_greater(tally->longest_receive_s, cost->receive_s);
  tally->arrive_s += cost->per_byte_s * (double)bytes;
}

/* The time of the bytes that this rank sends to other nodes, by the max-rate model. */
static double bound_s(const struct pair_model *off_node, const struct tally *tally,
                      const struct crowd *crowd) {
  if (off_node->nrates == 0 || tally->leaving_bytes == 0)
    return 0;
  const struct rates *rates = off_node->rates;
  while (crowd->mean_bytes > rates->up_to_bytes)
    rates++;
  if (rates->b_max <= 0)
    return 0;
  double senders = (double)crowd->senders;
  double active = senders < rates->processes ? senders : rates->processes;
  double own = (double)tally->leaving_bytes * (senders / (rates->b_max + (active - 1) * rates->b_inj));
  return rates->b_node > 0 ? swp_greater(own, (double)crowd->bytes / rates->b_node) : own;
}

double swp_delivery_s(const struct model *model, const struct tally *tally, const struct crowd *crowd) {
  double sent_s =
      tally->stay_s + swp_greater(tally->leave_s, bound_s(&model->pairs[PAIR_OFF_NODE], tally, crowd));
  return tally->ahead_s + tally->steps_s - tally->longest_step_s + tally->receives_s -
         tally->longest_receive_s + swp_greater(sent_s, tally->arrive_s);
}
