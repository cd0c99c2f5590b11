/*
 * Node-aware exchange: which rank of a node communicates with which rank of which other node. The first rank
 * of a node, its leader, collects all volumes, deals them, and agrees with the leaders of the other nodes on
 * the pairs.
 */
#include "nap.h"

#include "mail.h"
#include "nap_deal.h"
#include "order.h"

#include <stdlib.h>

/* The data of one rank of the node for another node. */
struct contribution {
  int node, local;
  int64_t bytes;
  int64_t begin; /* in what the node sends to the other */
};

/* Data that only the leader has. */
struct leader {
  struct array contributions; /* by node, then local rank */
  struct array sends;         /* struct lot of each node that is sent to, by node */
  struct array recvs;         /* struct lot of each share that comes from a node, by node and share */
  struct array senders;       /* of each of them: the rank that sends it, int64_t */
  struct array origins;       /* nodes that send to this one, int, increasing */
};

struct assigner {
  struct swp_plan *plan;
  const struct bundles *bundles;
  bool sharing;
  struct assignment *assignment;
  const struct topology *topology;
  int node, size; /* ranks on it */
  bool leads;
  struct leader leader;
};

static int compare_contributions(const void *a, const void *b) {
  const struct contribution *x = a, *y = b;
  if (x->node != y->node)
    return x->node < y->node ? -1 : 1;
  return (x->local > y->local) - (x->local < y->local);
}

/* ---- Up: every rank sends the leader its bundles, and the nodes from which it receives ---- */

static int mail_to_leader(struct assigner *a, struct mail *mail) {
  if (!swp_mail_begin(mail, a->leads ? a->size : 1))
    return swp_plan_no_memory(a->plan);
  for (int i = 0; i < mail->nboxes; i++)
    mail->boxes[i] = (struct box){
        .rank = swp_topology_rank(a->topology, a->node, i), .receives = a->leads, .sends = i == 0};
  struct numbers *out = &mail->boxes[0].out;
  swp_numbers_add(out, a->bundles->count);
  for (int64_t b = 0; b < a->bundles->count; b++) {
    swp_numbers_add(out, a->bundles->list[b].node);
    swp_numbers_add(out, a->bundles->list[b].bytes);
  }
  const struct problem *problem = exchange_plan_of(a->plan)->problem;
  int last = -1; /* neighbouring ranks are often on one node */
  for (int i = 0; i < problem->nrecvs; i++) {
    int node = swp_topology_node(a->topology, problem->recvs[i].peer);
    if (node != a->node && node != last)
      swp_numbers_add(out, node);
    last = node;
  }
  return SWP_SUCCESS;
}

static int read_volumes(struct assigner *a, const struct mail *mail) {
  struct leader *leader = &a->leader;
  for (int local = 0; local < mail->nboxes; local++) {
    const struct box *box = &mail->boxes[local];
    const int64_t *number = box->in + 1, *end = box->in + box->nin;
    for (int64_t left = box->in[0]; left > 0; left--, number += 2) {
      struct contribution *added = swp_array_add(&leader->contributions, sizeof *added, NULL);
      if (added == NULL)
        return swp_plan_no_memory(a->plan);
      *added = (struct contribution){(int)number[0], local, number[1], 0};
    }
    for (; number < end; number++) {
      int *added = swp_array_add(&leader->origins, sizeof *added, NULL);
      if (added == NULL)
        return swp_plan_no_memory(a->plan);
      *added = (int)*number;
    }
  }
  return SWP_SUCCESS;
}

/* Sums the contributions for each node, and deals the nodes. */
static int deal_sends(struct assigner *a) {
  struct leader *leader = &a->leader;
  struct contribution *contribution = leader->contributions.items;
  struct lot *lot = NULL;
  if (leader->contributions.count > 1)
    qsort(contribution, (size_t)leader->contributions.count, sizeof *contribution, compare_contributions);
  for (int64_t i = 0; i < leader->contributions.count; i++, contribution++) {
    if (lot == NULL || lot->node != contribution->node) {
      lot = swp_array_add(&leader->sends, sizeof *lot, NULL);
      if (lot == NULL)
        return swp_plan_no_memory(a->plan);
      lot->node = contribution->node;
    }
    contribution->begin = lot->bytes;
    lot->bytes += contribution->bytes;
  }
  swp_nap_deal_sends(leader->sends.items, leader->sends.count, a->size,
                     exchange_plan_of(a->plan)->problem->item_bytes, a->sharing);
  swp_nap_sort_lots(leader->sends.items, leader->sends.count);
  return SWP_SUCCESS;
}

static void sort_origins(struct array *origins) {
  int *nodes = origins->items;
  int64_t kept = 0;
  if (origins->count > 1)
    qsort(nodes, (size_t)origins->count, sizeof *nodes, swp_by_int);
  for (int64_t i = 0; i < origins->count; i++)
    if (kept == 0 || nodes[i] != nodes[kept - 1])
      nodes[kept++] = nodes[i];
  origins->count = kept;
}

static int gather_volumes(struct assigner *a, int error) {
  struct mail mail = {0};
  if (error == SWP_SUCCESS)
    error = mail_to_leader(a, &mail);
  TRY(swp_mail_exchange(a->plan, &mail, error));
  if (a->leads) {
    error = read_volumes(a, &mail);
    if (error == SWP_SUCCESS)
      error = deal_sends(a);
    sort_origins(&a->leader.origins);
  }
done:
  swp_mail_free(&mail);
  return error;
}

/* ---- Across: leaders send the volumes and senders, and answer with the receivers ---- */

/* A box for the leader of every node that is sent to and of every node that sends, these first. */
static int mail_to_leaders(const struct assigner *a, struct mail *mail, bool forth) {
  const struct leader *leader = &a->leader;
  const int *origins = leader->origins.items;
  const struct lot *lots = leader->sends.items;
  int norigins = (int)leader->origins.count, nlots = (int)leader->sends.count;
  if (!swp_mail_begin(mail, norigins + nlots))
    return swp_plan_no_memory(a->plan);
  for (int i = 0; i < norigins; i++)
    mail->boxes[i] = (struct box){
        .rank = swp_topology_rank(a->topology, origins[i], 0), .receives = forth, .sends = !forth};
  for (int i = 0; i < nlots; i++)
    mail->boxes[norigins + i] = (struct box){
        .rank = swp_topology_rank(a->topology, lots[i].node, 0), .receives = !forth, .sends = forth};
  return SWP_SUCCESS;
}

/* Reads volume, shares and first sender of the data from each origin, and deals them. */
static int deal_receives(struct assigner *a, const struct mail *mail) {
  struct leader *leader = &a->leader;
  const int *origins = leader->origins.items;
  for (int64_t i = 0; i < leader->origins.count; i++) {
    const int64_t *offer = mail->boxes[i].in; /* bytes, shares, first */
    for (int share = 0; share < offer[1]; share++) {
      struct lot *lot = swp_array_add(&leader->recvs, sizeof *lot, NULL);
      int64_t *sender = swp_array_add(&leader->senders, sizeof *sender, NULL);
      if (lot == NULL || sender == NULL)
        return swp_plan_no_memory(a->plan);
      int64_t item_bytes = exchange_plan_of(a->plan)->problem->item_bytes;
      int64_t begin = swp_nap_share_begin(offer[0], item_bytes, (int)offer[1], share);
      lot->node = origins[i];
      lot->share = share;
      lot->bytes = swp_nap_share_begin(offer[0], item_bytes, (int)offer[1], share + 1) - begin;
      *sender = swp_topology_rank(a->topology, origins[i], (int)offer[2] + share);
    }
  }
  swp_nap_deal_receives(leader->recvs.items, leader->recvs.count, a->size);
  swp_nap_sort_lots(leader->recvs.items, leader->recvs.count); /* in the order of the senders again */
  return SWP_SUCCESS;
}

static int announce(struct assigner *a, int error) {
  struct mail mail = {0};
  if (error == SWP_SUCCESS)
    error = mail_to_leaders(a, &mail, true);
  const struct lot *lots = a->leader.sends.items;
  for (int64_t i = 0; error == SWP_SUCCESS && i < a->leader.sends.count; i++) {
    struct numbers *out = &mail.boxes[a->leader.origins.count + i].out;
    swp_numbers_add(out, lots[i].bytes);
    swp_numbers_add(out, lots[i].shares);
    swp_numbers_add(out, lots[i].first);
  }
  TRY(swp_mail_exchange(a->plan, &mail, error));
  error = deal_receives(a, &mail);
done:
  swp_mail_free(&mail);
  return error;
}

/* Sends the leaders of the origins the receivers; `mail` then has the receivers of this node's data. */
static int answer(struct assigner *a, struct mail *mail, int error) {
  if (error == SWP_SUCCESS)
    error = mail_to_leaders(a, mail, false);
  const struct lot *lot = a->leader.recvs.items, *end = lot + a->leader.recvs.count;
  const int *origins = a->leader.origins.items;
  for (int64_t i = 0; error == SWP_SUCCESS && i < a->leader.origins.count; i++)
    for (; lot < end && lot->node == origins[i]; lot++)
      swp_numbers_add(&mail->boxes[i].out, lot->first);
  return swp_mail_exchange(a->plan, mail, error);
}

/* ---- Down: the leader sends every rank the places of its bundles, and its parts ---- */

static void add_part(struct mail *mail, int local, bool sent, int node, int peer, int64_t bytes) {
  const int64_t words[] = {sent, node, peer, bytes};
  swp_numbers_add_all(&mail->boxes[local].out, 4, words);
}

static void add_placements(const struct assigner *a, struct mail *mail) {
  const struct contribution *contribution = a->leader.contributions.items;
  const struct lot *lot = a->leader.sends.items;
  for (int64_t i = 0; i < a->leader.contributions.count; i++, contribution++) {
    while (lot->node != contribution->node)
      lot++;
    const int64_t words[] = {contribution->begin, lot->bytes, lot->shares, lot->first};
    swp_numbers_add_all(&mail->boxes[contribution->local].out, 4, words);
  }
}

static void add_parts(const struct assigner *a, struct mail *mail, const struct mail *answers) {
  const struct leader *leader = &a->leader;
  const struct lot *lot = leader->sends.items;
  const struct box *receivers = answers->boxes + leader->origins.count;
  int64_t item_bytes = exchange_plan_of(a->plan)->problem->item_bytes;
  for (int64_t i = 0; i < leader->sends.count; i++, lot++, receivers++)
    for (int share = 0; share < lot->shares; share++) {
      int64_t begin = swp_nap_share_begin(lot->bytes, item_bytes, lot->shares, share);
      int64_t end = swp_nap_share_begin(lot->bytes, item_bytes, lot->shares, share + 1);
      add_part(mail, lot->first + share, true, lot->node,
               swp_topology_rank(a->topology, lot->node, (int)receivers->in[share]), end - begin);
    }
  const int64_t *sender = leader->senders.items;
  lot = leader->recvs.items;
  for (int64_t i = 0; i < leader->recvs.count; i++, lot++)
    add_part(mail, lot->first, false, lot->node, (int)sender[i], lot->bytes);
}

static int mail_from_leader(struct assigner *a, struct mail *mail, const struct mail *answers) {
  if (!swp_mail_begin(mail, a->leads ? a->size : 1))
    return swp_plan_no_memory(a->plan);
  for (int i = 0; i < mail->nboxes; i++)
    mail->boxes[i] = (struct box){
        .rank = swp_topology_rank(a->topology, a->node, i), .receives = i == 0, .sends = a->leads};
  if (a->leads) {
    add_placements(a, mail);
    add_parts(a, mail, answers);
  }
  return SWP_SUCCESS;
}

static int read_assignment(struct assigner *a, const struct mail *mail) {
  struct assignment *assignment = a->assignment;
  const int64_t *number = mail->boxes[0].in, *end = number + mail->boxes[0].nin;
  assignment->placements = swp_allocate((size_t)a->bundles->count, sizeof *assignment->placements, NULL);
  if (assignment->placements == NULL)
    return swp_plan_no_memory(a->plan);
  for (int64_t b = 0; b < a->bundles->count; b++, number += 4)
    assignment->placements[b] = (struct placement){number[0], number[1], (int)number[2], (int)number[3]};
  for (; number < end; number += 4) {
    struct part *part =
        swp_array_add(number[0] ? &assignment->sends : &assignment->recvs, sizeof *part, NULL);
    if (part == NULL)
      return swp_plan_no_memory(a->plan);
    *part = (struct part){.node = (int)number[1], .peer = (int)number[2], .bytes = number[3]};
  }
  return SWP_SUCCESS;
}

static int hand_out(struct assigner *a, const struct mail *answers) {
  struct mail mail = {0};
  int error = mail_from_leader(a, &mail, answers);
  TRY(swp_mail_exchange(a->plan, &mail, error));
  error = read_assignment(a, &mail);
done:
  swp_mail_free(&mail);
  return error;
}

int swp_nap_assign(struct swp_plan *plan, const struct bundles *bundles, bool sharing, int error,
                   struct assignment *assignment) {
  int node = swp_topology_node(plan->topology, plan->rank);
  struct assigner a = {.plan = plan,
                       .bundles = bundles,
                       .sharing = sharing,
                       .assignment = assignment,
                       .topology = plan->topology,
                       .node = node,
                       .size = swp_topology_node_size(plan->topology, node),
                       .leads = swp_topology_local(plan->topology, plan->rank) == 0};
  struct mail answers = {0};
  /* An error on one rank only is agreed on in the next step. */
  error = gather_volumes(&a, error);
  error = announce(&a, error);
  TRY(answer(&a, &answers, error));
  TRY(hand_out(&a, &answers));
done:
  swp_mail_free(&answers);
  swp_release(a.leader.contributions.items);
  swp_release(a.leader.sends.items);
  swp_release(a.leader.recvs.items);
  swp_release(a.leader.senders.items);
  swp_release(a.leader.origins.items);
  return error;
}

void swp_nap_assignment_free(struct assignment *assignment) {
  swp_release(assignment->placements);
  swp_release(assignment->sends.items);
  swp_release(assignment->recvs.items);
}
