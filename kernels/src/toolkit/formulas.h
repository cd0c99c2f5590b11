/* The parts of estimates of methods: the equations of tuner/models (exchange.py, discovery.py). */
#ifndef SWP_FORMULAS_H
#define SWP_FORMULAS_H

#include "slots.h"

enum { COUNT_BYTES = 4 };

/* ---- Exchange: `estimate` of methods that are made of messages ---- */

/* The sum of D over the stages as planned, and the packing. */
int swp_estimate_messages(const struct swp_plan *plan, const struct estimate *estimate, double *seconds);

/* The same of a method that packs only messages of more bytes. */
int swp_estimate_larger(const struct swp_plan *plan, const struct estimate *estimate, int64_t above_bytes,
                        double *seconds);

/* The same of a method that packs only messages that do not go by these slots. */
int swp_estimate_sent(const struct swp_plan *plan, const struct estimate *estimate, const struct slots *slots,
                      double *seconds);

/* The same of a method that copies all that it sends at each stage, as it forwards. */
int swp_estimate_forwarding(const struct swp_plan *plan, const struct estimate *estimate, double *seconds);

/* Adds the time of messages by slots, of which this rank copies so many bytes in each stage: where there are
   any, a small message of the pair until they are seen, and copying. */
int swp_estimate_slots(const struct swp_plan *plan, const struct estimate *estimate,
                       const struct pair_model *pair, int nstages, const int64_t *copied_bytes,
                       double *seconds);

/* ---- Discovery: finding the senders, and X, the delivery of the payload ---- */

struct census {
  const struct model *model;
  const struct pair_model *pair;    /* the slowest */
  const struct message_cost *small; /* message */
  int procs, ppn, nodes;
  int64_t degree;     /* -1: unknown */
  double parts_bytes; /* that a rank sends, with their headers */
};

struct census swp_census(const struct swp_plan *plan, const struct estimate *estimate);

/* A round in which each rank sends a message to the rank that is so far behind it, and gets one. */
double swp_round_s(const struct census *census, int distance, double bytes);

/* How many of 0 ... below - 1 have the bit: the blocks that Bruck's algorithm sends in its round. */
int swp_with_bit(int bit, int below);

/* A stage that forwards parts to so many partners, found one by one; local: they are on the same node. */
double swp_forward_s(const struct census *census, int partners, bool local);

/* The same on a node by its memory: as a small message is seen, with two copies. */
double swp_forward_by_memory_s(const struct census *census);

/* The penalty of a synchronous send and a barrier. Negative: unknown. */
double swp_consensus_s(const struct census *census);

/* The time of a barrier by dissemination. */
double swp_barrier_s(const struct census *census);

/* A fence, and before it a small one-sided operation on each receiver. */
double swp_fence_s(const struct census *census);
double swp_one_sided_s(const struct census *census);

/* X, as far as the hints specify it: every rank sends and receives as many messages of the mean bytes. */
double swp_payload_s(const struct swp_plan *plan, const struct model *model);

/* X of methods that find a message before they receive it: its bytes follow those of the one before. */
double swp_probed_s(const struct swp_plan *plan, const struct model *model);

#endif
