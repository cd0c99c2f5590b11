/*
 * Node-aware exchange: gathering. A rank's bundle for a node is cut where ranks share that node; what a slice
 * holds for whom is listed for the rank that sends it.
 */
#include "nap.h"
#include "nap_deal.h"

static int no_memory(const struct nap *nap) {
  return swp_plan_no_memory(nap->plan);
}

int swp_nap_rank_here(const struct nap *nap, int local) {
  return swp_topology_rank(nap->topology, nap->node, local);
}

int swp_nap_mail_on_node(const struct nap *nap, struct mail *mail) {
  swp_mail_begin(mail, nap->size);
  if (mail->boxes == NULL)
    return no_memory(nap);
  for (int i = 0; i < nap->size; i++)
    mail->boxes[i] = (struct box){.rank = swp_nap_rank_here(nap, i), .sends = true, .receives = true};
  return SWP_SUCCESS;
}

/* Adds runs of a buffer to the copies to outgoing bytes from `to` on. */
static int add_pieces(struct nap *nap, enum transfer_place from, const struct array *runs, int64_t to) {
  const struct run *run = runs->items;
  for (int64_t i = 0; i < runs->count; i++, run++) {
    struct piece *piece = swp_array_add(&nap->pieces, sizeof *piece, NULL);
    if (piece == NULL)
      return no_memory(nap);
    *piece = (struct piece){from, run->offset, to, run->bytes};
    to += run->bytes;
  }
  return SWP_SUCCESS;
}

int swp_nap_send_runs(struct nap *nap, int stage, int peer, enum transfer_place place,
                      const struct array *runs) {
  const struct run *run = runs->items;
  struct run packed = {nap->schedule->outgoing_bytes, 0};
  if (runs->count == 1)
    return swp_schedule_send(nap->plan, nap->schedule, stage, peer, place, run, 1, NULL, 0);
  for (int64_t i = 0; i < runs->count; i++)
    packed.bytes += run[i].bytes;
  nap->pieces.count = 0;
  int error = add_pieces(nap, place, runs, packed.offset);
  if (error != SWP_SUCCESS)
    return error;
  nap->schedule->outgoing_bytes += packed.bytes;
  return swp_schedule_send(nap->plan, nap->schedule, stage, peer, PLACE_OUTGOING, &packed, 1,
                           nap->pieces.items, nap->pieces.count);
}

static int64_t share_begin(const struct nap *nap, const struct placement *placement, int share) {
  return swp_nap_share_begin(placement->node_bytes, nap->plan->problem.item_bytes, placement->shares, share);
}

/* Cuts a bundle at the shares of its node, and begins a list of each slice. */
static int cut_bundle(struct nap *nap, const struct bundle *bundle, const struct placement *placement,
                      struct mail *mail) {
  int64_t bundle_end = placement->begin + bundle->bytes;
  for (int share = 0; share < placement->shares; share++) {
    int64_t from = share_begin(nap, placement, share), to = share_begin(nap, placement, share + 1),
            part = from;
    from = from > placement->begin ? from : placement->begin;
    to = to < bundle_end ? to : bundle_end;
    if (from >= to)
      continue;
    struct slice *slice = swp_array_add(&nap->slices, sizeof *slice, NULL);
    if (slice == NULL)
      return no_memory(nap);
    struct numbers *list = &mail->boxes[placement->first + share].out;
    *slice = (struct slice){.local = placement->first + share,
                            .bundle = bundle,
                            .from = from - placement->begin,
                            .to = to - placement->begin,
                            .part_offset = from - part,
                            .first_number = list->array.count};
    const int64_t numbers[SLICE_NUMBERS] = {bundle->node, slice->part_offset, to - from, 0};
    for (int i = 0; i < SLICE_NUMBERS; i++)
      swp_numbers_add(list, numbers[i]);
  }
  return SWP_SUCCESS;
}

/* Adds bytes of a slice to its list: byte `at` and further of the message to `destination`. Joined with the
   extract before when it goes on. */
static void add_extract(const struct slice *slice, struct numbers *list, int destination, int64_t at,
                        int64_t position, int64_t bytes) {
  if (list->spoilt)
    return;
  int64_t offset = slice->part_offset + position - slice->from;
  int64_t *count = swp_numbers(list) + slice->first_number + SLICE_EXTRACTS;
  int64_t *last = swp_numbers(list) + list->array.count - EXTRACT_NUMBERS;
  if (*count > 0 && last[EXTRACT_DESTINATION] == destination &&
      last[EXTRACT_AT] + last[EXTRACT_BYTES] == at && last[EXTRACT_OFFSET] + last[EXTRACT_BYTES] == offset) {
    last[EXTRACT_BYTES] += bytes;
    return;
  }
  ++*count;
  const int64_t numbers[EXTRACT_NUMBERS] = {destination, at, offset, bytes};
  for (int i = 0; i < EXTRACT_NUMBERS; i++)
    swp_numbers_add(list, numbers[i]);
}

/* Lists where in the slices of a bundle the bytes of each message are. */
static void list_extracts(const struct bundle *bundle, const struct slice *slices, struct mail *mail) {
  for (int64_t i = 0; i < bundle->nsends; i++) {
    const struct send *send = bundle->sends[i];
    int64_t at = 0;
    for (int64_t r = 0; r < send->nruns; r++) {
      int64_t position = swp_bundle_position(bundle, send->runs[r].offset), left = send->runs[r].bytes;
      const struct slice *slice = slices;
      while (left > 0) {
        while (slice->to <= position)
          slice++;
        int64_t bytes = slice->to - position < left ? slice->to - position : left;
        add_extract(slice, &mail->boxes[slice->local].out, send->peer, at, position, bytes);
        at += bytes;
        position += bytes;
        left -= bytes;
      }
    }
  }
}

int swp_nap_list_slices(struct nap *nap, struct mail *mail) {
  int error = swp_nap_mail_on_node(nap, mail);
  for (int64_t b = 0; error == SWP_SUCCESS && b < nap->bundles.count; b++) {
    const struct bundle *bundle = &nap->bundles.list[b];
    int64_t first = nap->slices.count;
    error = cut_bundle(nap, bundle, &nap->assignment.placements[b], mail);
    if (error == SWP_SUCCESS)
      list_extracts(bundle, (const struct slice *)nap->slices.items + first, mail);
  }
  return error;
}

/* This rank's slices for another rank of the node, or with `node` not negative only those for that node. */
static int collect_slices(struct nap *nap, int local, int node) {
  const struct slice *slice = nap->slices.items;
  nap->runs.count = 0;
  for (int64_t i = 0; i < nap->slices.count; i++, slice++)
    if (slice->local == local && (node < 0 || slice->bundle->node == node) &&
        !swp_bundle_slice(slice->bundle, slice->from, slice->to, &nap->runs))
      return no_memory(nap);
  return SWP_SUCCESS;
}

static int send_slices(struct nap *nap) {
  int error = SWP_SUCCESS;
  for (int local = 0; local < nap->size; local++) {
    if (local == nap->local)
      continue;
    TRY(collect_slices(nap, local, -1));
    if (nap->runs.count > 0)
      TRY(swp_nap_send_runs(nap, STAGE_GATHER, swp_nap_rank_here(nap, local), PLACE_USER, &nap->runs));
  }
done:
  return error;
}

const int64_t *swp_nap_next_slice(struct part **part, const int64_t *slice) {
  while ((*part)->node != slice[SLICE_NODE])
    ++*part;
  return slice + SLICE_NUMBERS + slice[SLICE_EXTRACTS] * EXTRACT_NUMBERS;
}

/* The slices of another rank come into the parts that they belong to. */
static int receive_slices(struct nap *nap, const struct box *box) {
  const int64_t *slice = box->in, *last = box->in + box->nin, *next;
  struct part *part = nap->assignment.sends.items;
  nap->runs.count = 0;
  for (; slice < last; slice = next) {
    next = swp_nap_next_slice(&part, slice);
    if (!swp_run_add(&nap->runs, part->base + slice[SLICE_OFFSET], slice[SLICE_BYTES]))
      return no_memory(nap);
  }
  return nap->runs.count == 0 ? SWP_SUCCESS
                              : swp_schedule_receive(nap->plan, nap->schedule, STAGE_GATHER, box->rank,
                                                     PLACE_OUTGOING, nap->runs.items, nap->runs.count);
}

/* A part that is all this rank's own, in one run, is sent from where it is; others are gathered. */
static int send_part(struct nap *nap, struct part *part) {
  int error = collect_slices(nap, nap->local, part->node);
  if (error != SWP_SUCCESS)
    return error;
  const struct run *own = nap->runs.items;
  if (nap->runs.count == 1 && own->bytes == part->bytes)
    return swp_schedule_send(nap->plan, nap->schedule, STAGE_NODES, part->peer, PLACE_USER, own, 1, NULL, 0);
  part->base = nap->schedule->outgoing_bytes;
  nap->schedule->outgoing_bytes += part->bytes;
  nap->pieces.count = 0;
  const struct slice *slice = nap->slices.items;
  for (int64_t i = 0; i < nap->slices.count; i++, slice++)
    if (slice->local == nap->local && slice->bundle->node == part->node)
      error = add_pieces(nap, PLACE_USER, &nap->runs, part->base + slice->part_offset);
  if (error != SWP_SUCCESS)
    return error;
  return swp_schedule_send(nap->plan, nap->schedule, STAGE_NODES, part->peer, PLACE_OUTGOING,
                           &(struct run){part->base, part->bytes}, 1, nap->pieces.items, nap->pieces.count);
}

int swp_nap_schedule_gather(struct nap *nap, const struct mail *mail) {
  int error = SWP_SUCCESS;
  struct part *part = nap->assignment.sends.items;
  TRY(send_slices(nap));
  for (int64_t i = 0; i < nap->assignment.sends.count; i++)
    TRY(send_part(nap, part + i));
  for (int local = 0; local < nap->size; local++)
    if (local != nap->local)
      TRY(receive_slices(nap, &mail->boxes[local]));
done:
  return error;
}
