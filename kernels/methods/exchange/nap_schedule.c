/*
 * Node-aware exchange: the schedule. Every rank lists the destinations of its bundles' bytes for the senders
 * of its node; these pass the lists to their receivers, which announce the arrivals to the ranks of their
 * node. Then all is known.
 */
#include "nap.h"

#include "order.h"

#include <stdlib.h>
#include <string.h>

enum { ARRIVAL_SOURCE, ARRIVAL_AT, ARRIVAL_BYTES, ARRIVAL_NUMBERS };

static int begin(struct nap *nap) {
  const struct problem *problem = exchange_plan_of(nap->plan)->problem;
  nap->expected = swp_allocate((size_t)problem->nrecvs, sizeof *nap->expected, NULL);
  nap->extracts = swp_allocate((size_t)nap->size, sizeof *nap->extracts, NULL);
  nap->gatherings = swp_allocate((size_t)nap->size, sizeof *nap->gatherings, NULL);
  if (nap->expected == NULL || nap->extracts == NULL || nap->gatherings == NULL)
    return swp_plan_no_memory(nap->plan);
  if (problem->nrecvs > 0)
    memcpy(nap->expected, problem->recvs, (size_t)problem->nrecvs * sizeof *nap->expected);
  qsort(nap->expected, (size_t)problem->nrecvs, sizeof *nap->expected, swp_by_int);
  return swp_bundles_make(nap->plan, &nap->bundles);
}

static void end(struct nap *nap) {
  swp_bundles_free(&nap->bundles);
  swp_nap_assignment_free(&nap->assignment);
  for (int i = 0; nap->extracts != NULL && i < nap->size; i++)
    swp_release(nap->extracts[i].items);
  swp_release(nap->extracts);
  for (int i = 0; nap->gatherings != NULL && i < nap->size; i++) {
    swp_release(nap->gatherings[i].sent.items);
    swp_release(nap->gatherings[i].seen.items);
  }
  swp_release(nap->gatherings);
  swp_release(nap->slices.items);
  swp_release(nap->expected);
  swp_release(nap->runs.items);
  swp_release(nap->pieces.items);
}

/* ---- On the node: directly ---- */

static int schedule_on_node(struct nap *nap) {
  const struct problem *problem = exchange_plan_of(nap->plan)->problem;
  int error = SWP_SUCCESS;
  for (int i = 0; i < problem->nsends; i++) {
    const struct send *send = &problem->sends[i];
    if (swp_topology_node(nap->topology, send->peer) != nap->node)
      continue;
    nap->runs.count = 0;
    for (int64_t r = 0; r < send->nruns; r++)
      if (!swp_run_add(&nap->runs, send->runs[r].offset, send->runs[r].bytes))
        return swp_plan_no_memory(nap->plan);
    TRY(swp_nap_send_runs(nap, STAGE_NODES, send->peer, PLACE_USER, &nap->runs));
  }
  for (int i = 0; i < problem->nrecvs; i++) {
    const struct receive *receive = &problem->recvs[i];
    if (swp_topology_node(nap->topology, receive->peer) != nap->node)
      continue;
    nap->runs.count = 0;
    if (!swp_run_add(&nap->runs, receive->offset, receive->bytes))
      return swp_plan_no_memory(nap->plan);
    TRY(swp_nap_receive_runs(nap, STAGE_NODES, receive->peer, PLACE_USER, &nap->runs));
  }
done:
  return error;
}

/* ---- Between nodes ---- */

/* A box to the receiver of each part, and after these one from the sender of each. */
static int list_parts(struct nap *nap, const struct mail *slices, struct mail *mail) {
  const struct array *sends = &nap->assignment.sends, *recvs = &nap->assignment.recvs;
  struct part *parts = sends->items;
  if (!swp_mail_begin(mail, (int)(sends->count + recvs->count)))
    return swp_plan_no_memory(nap->plan);
  for (int64_t i = 0; i < sends->count; i++)
    mail->boxes[i] = (struct box){.rank = parts[i].peer, .sends = true};
  for (int64_t i = 0; i < recvs->count; i++)
    mail->boxes[sends->count + i] =
        (struct box){.rank = ((struct part *)recvs->items)[i].peer, .receives = true};
  for (int local = 0; local < nap->size; local++) {
    const int64_t *slice = slices->boxes[local].in, *last = slice + slices->boxes[local].nin, *next;
    struct part *part = parts;
    for (; slice < last; slice = next) {
      next = swp_nap_next_slice(&part, slice);
      for (const int64_t *extract = swp_nap_extracts(slice); extract < next; extract += EXTRACT_NUMBERS) {
        struct numbers *list = &mail->boxes[part - parts].out;
        swp_numbers_add(list, swp_nap_rank_here(nap, local));
        swp_numbers_add_all(list, EXTRACT_NUMBERS, extract);
      }
    }
  }
  return SWP_SUCCESS;
}

/* The place of byte `at` from `source` to this rank in the caller's receive buffer. */
static int find_place(const struct nap *nap, int64_t source, int64_t at, int64_t bytes, int64_t *place) {
  struct receive key = {.peer = (int)source};
  const struct receive *receive = bsearch(
      &key, nap->expected, (size_t)exchange_plan_of(nap->plan)->problem->nrecvs, sizeof key, swp_by_int);
  if (receive == NULL || at + bytes > receive->bytes)
    return swp_fail(SWP_ERR_MISMATCH, "exchange: rank %d sends bytes that are not expected here",
                    (int)source);
  *place = receive->offset + at;
  return SWP_SUCCESS;
}

/* Returns whether this rank wants a part from its first to its last byte. */
static bool lies_as_wanted(const struct nap *nap, const struct part *part, const struct box *box) {
  int64_t offset = 0;
  for (const int64_t *n = box->in; n < box->in + box->nin; n += 1 + EXTRACT_NUMBERS) {
    const int64_t *extract = n + 1;
    if (extract[EXTRACT_DESTINATION] != nap->plan->rank || extract[EXTRACT_OFFSET] != offset)
      return false;
    offset += extract[EXTRACT_BYTES];
  }
  return offset == part->bytes;
}

static int receive_part_in_place(struct nap *nap, const struct part *part, const struct box *box) {
  int error = SWP_SUCCESS;
  nap->runs.count = 0;
  for (const int64_t *n = box->in; n < box->in + box->nin; n += 1 + EXTRACT_NUMBERS) {
    const int64_t *extract = n + 1;
    int64_t place = 0;
    TRY(find_place(nap, *n, extract[EXTRACT_AT], extract[EXTRACT_BYTES], &place));
    if (!swp_run_add(&nap->runs, place, extract[EXTRACT_BYTES]))
      return swp_plan_no_memory(nap->plan);
  }
  TRY(swp_schedule_receive(nap->plan, nap->schedule, STAGE_NODES, part->peer, PLACE_USER, nap->runs.items,
                           nap->runs.count));
done:
  return error;
}

/* Announces an extract to the rank of the node that it is for, joined with the one before if contiguous. */
static void announce_arrival(struct numbers *list, int64_t source, int64_t at, int64_t bytes) {
  if (list->spoilt)
    return;
  int64_t *last = list->array.count > 0 ? swp_numbers(list) + list->array.count - ARRIVAL_NUMBERS : NULL;
  if (last != NULL && last[ARRIVAL_SOURCE] == source && last[ARRIVAL_AT] + last[ARRIVAL_BYTES] == at) {
    last[ARRIVAL_BYTES] += bytes;
    return;
  }
  swp_numbers_add(list, source);
  swp_numbers_add(list, at);
  swp_numbers_add(list, bytes);
}

/* Bytes of a part that other ranks of the node want; -1 when memory runs out. */
static int64_t bytes_for_others(struct nap *nap, const struct box *box) {
  int64_t bytes = 0, end = 0;
  nap->runs.count = 0;
  for (const int64_t *n = box->in; n < box->in + box->nin; n += 1 + EXTRACT_NUMBERS)
    if (n[1 + EXTRACT_DESTINATION] != nap->plan->rank &&
        !swp_run_add(&nap->runs, n[1 + EXTRACT_OFFSET], n[1 + EXTRACT_BYTES]))
      return -1;
  const struct run *run = nap->runs.items;
  if (nap->runs.count > 1)
    qsort(nap->runs.items, (size_t)nap->runs.count, sizeof *run, swp_by_int64);
  for (int64_t i = 0; i < nap->runs.count; i++, run++) {
    int64_t begin = run->offset > end ? run->offset : end, stop = run->offset + run->bytes;
    bytes += stop > begin ? stop - begin : 0;
    end = stop > end ? stop : end;
  }
  return bytes;
}

/* Receives a part in the plan's buffer: this rank's own bytes are unpacked, the rest will be distributed. */
static int receive_part(struct nap *nap, const struct box *box, struct part *part, struct mail *mail) {
  int error = SWP_SUCCESS;
  int64_t for_others = bytes_for_others(nap, box);
  if (for_others < 0)
    return swp_plan_no_memory(nap->plan);
  exchange_plan_of(nap->plan)->forwarded_bytes += for_others;
  part->base = nap->schedule->incoming_bytes;
  nap->schedule->incoming_bytes += part->bytes;
  for (const int64_t *n = box->in; n < box->in + box->nin; n += 1 + EXTRACT_NUMBERS) {
    const int64_t *extract = n + 1, at = extract[EXTRACT_AT], bytes = extract[EXTRACT_BYTES];
    int64_t place = 0, offset = part->base + extract[EXTRACT_OFFSET];
    if (extract[EXTRACT_DESTINATION] == nap->plan->rank) {
      TRY(find_place(nap, *n, at, bytes, &place));
      TRY(swp_schedule_unpack(nap->plan, nap->schedule, STAGE_NODES, offset, place, bytes));
      continue;
    }
    int local = swp_topology_local(nap->topology, (int)extract[EXTRACT_DESTINATION]);
    announce_arrival(&mail->boxes[local].out, *n, at, bytes);
    if (!swp_run_add(&nap->extracts[local], offset, bytes))
      return swp_plan_no_memory(nap->plan);
  }
  TRY(swp_schedule_receive(nap->plan, nap->schedule, STAGE_NODES, part->peer, PLACE_INCOMING,
                           &(struct run){part->base, part->bytes}, 1));
done:
  return error;
}

static int receive_parts(struct nap *nap, const struct mail *parts, struct mail *mail) {
  const struct box *box = parts->boxes + nap->assignment.sends.count;
  struct part *part = nap->assignment.recvs.items;
  int error = swp_nap_mail_on_node(nap, mail);
  for (int64_t i = 0; error == SWP_SUCCESS && i < nap->assignment.recvs.count; i++, part++, box++)
    error = lies_as_wanted(nap, part, box) ? receive_part_in_place(nap, part, box)
                                           : receive_part(nap, box, part, mail);
  return error;
}

/* ---- Distribute ---- */

static int schedule_distribution(struct nap *nap, const struct mail *arrivals) {
  int error = SWP_SUCCESS;
  for (int local = 0; local < nap->size; local++) {
    const struct box *box = &arrivals->boxes[local];
    if (nap->extracts[local].count > 0)
      TRY(swp_nap_send_runs(nap, STAGE_DISTRIBUTE, box->rank, PLACE_INCOMING, &nap->extracts[local]));
    nap->runs.count = 0;
    for (const int64_t *n = box->in; n < box->in + box->nin; n += ARRIVAL_NUMBERS) {
      int64_t place = 0;
      TRY(find_place(nap, n[ARRIVAL_SOURCE], n[ARRIVAL_AT], n[ARRIVAL_BYTES], &place));
      if (!swp_run_add(&nap->runs, place, n[ARRIVAL_BYTES]))
        return swp_plan_no_memory(nap->plan);
    }
    if (nap->runs.count > 0)
      TRY(swp_nap_receive_runs(nap, STAGE_DISTRIBUTE, box->rank, PLACE_USER, &nap->runs));
  }
done:
  return error;
}

/* Messages between nodes. A local error is passed on to the next step, where all ranks agree on it. */
static int schedule_off_node(struct nap *nap, bool sharing) {
  struct mail slices = {0}, parts = {0}, arrivals = {0};
  int error = swp_nap_assign(nap->plan, &nap->bundles, sharing, begin(nap), &nap->assignment);
  if (error == SWP_SUCCESS)
    error = swp_nap_list_slices(nap, &slices);
  TRY(swp_mail_exchange(nap->plan, &slices, error));
  error = swp_nap_schedule_gather(nap, &slices);
  if (error == SWP_SUCCESS)
    error = list_parts(nap, &slices, &parts);
  TRY(swp_mail_exchange(nap->plan, &parts, error));
  error = receive_parts(nap, &parts, &arrivals);
  TRY(swp_mail_exchange(nap->plan, &arrivals, error));
  error = schedule_distribution(nap, &arrivals);
done:
  swp_mail_free(&slices);
  swp_mail_free(&parts);
  swp_mail_free(&arrivals);
  return error;
}

int swp_nap_schedule(struct swp_plan *plan, bool sharing, struct schedule *schedule) {
  int node = swp_topology_node(plan->topology, plan->rank);
  struct nap nap = {.plan = plan,
                    .schedule = schedule,
                    .topology = plan->topology,
                    .node = node,
                    .size = swp_topology_node_size(plan->topology, node),
                    .local = swp_topology_local(plan->topology, plan->rank)};
  int error = plan->topology->nodes > 1 ? schedule_off_node(&nap, sharing) : SWP_SUCCESS;
  if (error == SWP_SUCCESS)
    error = schedule_on_node(&nap);
  end(&nap);
  return error;
}
