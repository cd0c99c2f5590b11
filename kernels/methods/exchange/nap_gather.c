/*
 * Node-aware exchange: gathering. A rank's bundle for a node is cut where ranks share that node; the
 * receivers of a slice's bytes are listed for the rank that sends it. That rank gets a value once, for
 * however many nodes.
 */
#include "nap.h"
#include "nap_deal.h"
#include "order.h"

#include <stdlib.h>

/* Bytes of the caller's buffer, and their first place in the data that another rank of the node sends. */
struct sighting {
  struct run run;
  int node;
  int64_t at;
};

int swp_nap_rank_here(const struct nap *nap, int local) {
  return swp_topology_rank(nap->topology, nap->node, local);
}

int swp_nap_mail_on_node(const struct nap *nap, struct mail *mail) {
  if (!swp_mail_begin(mail, nap->size))
    return swp_plan_no_memory(nap->plan);
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
      return swp_plan_no_memory(nap->plan);
    *piece = (struct piece){from, run->offset, to, run->bytes};
    to += run->bytes;
  }
  return SWP_SUCCESS;
}

int swp_nap_send_runs(struct nap *nap, int stage, int peer, enum transfer_place place,
                      const struct array *runs) {
  const struct run *run = runs->items;
  struct run packed = {nap->schedule->outgoing_bytes, 0};
  bool by_memory;
  int error = swp_schedule_handover(nap->plan, nap->schedule, stage, SLOTS_OUT, peer, place, run, runs->count,
                                    &by_memory);
  if (error != SWP_SUCCESS || by_memory)
    return error;
  if (runs->count == 1)
    return swp_schedule_send(nap->plan, nap->schedule, stage, peer, place, run, 1, NULL, 0);
  for (int64_t i = 0; i < runs->count; i++)
    packed.bytes += run[i].bytes;
  nap->pieces.count = 0;
  error = add_pieces(nap, place, runs, packed.offset);
  if (error != SWP_SUCCESS)
    return error;
  nap->schedule->outgoing_bytes += packed.bytes;
  return swp_schedule_send(nap->plan, nap->schedule, stage, peer, PLACE_OUTGOING, &packed, 1,
                           nap->pieces.items, nap->pieces.count);
}

int swp_nap_receive_runs(const struct nap *nap, int stage, int peer, enum transfer_place place,
                         const struct array *runs) {
  bool by_memory;
  int error = swp_schedule_handover(nap->plan, nap->schedule, stage, SLOTS_IN, peer, place, runs->items,
                                    runs->count, &by_memory);
  if (error != SWP_SUCCESS || by_memory)
    return error;
  return swp_schedule_receive(nap->plan, nap->schedule, stage, peer, place, runs->items, runs->count);
}

static int64_t share_begin(const struct nap *nap, const struct placement *placement, int share) {
  return swp_nap_share_begin(placement->node_bytes, exchange_plan_of(nap->plan)->problem->item_bytes,
                             placement->shares, share);
}

static bool add_sighting(struct array *seen, struct sighting sighting) {
  struct sighting *added = swp_array_add(seen, sizeof *added, NULL);
  if (added != NULL)
    *added = sighting;
  return added != NULL;
}

/* Lists bytes of a slice that the rank has already. */
static void add_repeat(const struct slice *slice, struct numbers *list, int64_t offset,
                       const struct sighting *from, int64_t skipped, int64_t bytes) {
  if (list->spoilt)
    return;
  ++swp_numbers(list)[slice->first_number + SLICE_REPEATS];
  const int64_t numbers[REPEAT_NUMBERS] = {offset, from->node, from->at + skipped, bytes};
  swp_numbers_add_all(list, REPEAT_NUMBERS, numbers);
}

/* Adds a run of a slice, at `at` in the part, to its rank's data, except for bytes that it has: `*old` and
   further of `seen`. Sightings passed go to `merged`. False when memory runs out. */
static bool gather_run(struct gathering *gathering, const struct slice *slice, struct run run, int64_t at,
                       const struct sighting **old, struct array *merged, struct numbers *list) {
  const struct sighting *end = (struct sighting *)gathering->seen.items + gathering->seen.count;
  while (run.bytes > 0) {
    for (; *old < end && (*old)->run.offset + (*old)->run.bytes <= run.offset; ++*old)
      if (!add_sighting(merged, **old))
        return false;
    int64_t ahead = *old < end ? (*old)->run.offset - run.offset : run.bytes, bytes = run.bytes;
    if (ahead > 0) {
      bytes = ahead < bytes ? ahead : bytes;
      struct sighting first = {{run.offset, bytes}, slice->bundle->node, at};
      if (!add_sighting(merged, first) || !swp_run_add(&gathering->sent, run.offset, bytes))
        return false;
    } else {
      bytes = (*old)->run.bytes + ahead < bytes ? (*old)->run.bytes + ahead : bytes;
      add_repeat(slice, list, at, *old, -ahead, bytes);
    }
    run = (struct run){run.offset + bytes, run.bytes - bytes};
    at += bytes;
  }
  return true;
}

/* Adds a slice to its rank's data. False when memory runs out. */
static bool gather_slice(struct nap *nap, const struct slice *slice, struct numbers *list) {
  struct gathering *gathering = &nap->gatherings[slice->local];
  const struct sighting *old = gathering->seen.items, *end = old + gathering->seen.count;
  struct array merged = {0};
  int64_t at = slice->part_offset;
  nap->runs.count = 0;
  bool done = swp_bundle_slice(slice->bundle, slice->from, slice->to, &nap->runs);
  const struct run *run = nap->runs.items;
  for (int64_t i = 0; done && i < nap->runs.count; at += run[i++].bytes)
    done = gather_run(gathering, slice, run[i], at, &old, &merged, list);
  for (; done && old < end; old++)
    done = add_sighting(&merged, *old);
  swp_release(gathering->seen.items);
  gathering->seen = merged;
  return done;
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
      return swp_plan_no_memory(nap->plan);
    struct numbers *list = &mail->boxes[placement->first + share].out;
    *slice = (struct slice){.local = placement->first + share,
                            .bundle = bundle,
                            .from = from - placement->begin,
                            .to = to - placement->begin,
                            .part_offset = from - part,
                            .first_number = list->array.count};
    const int64_t numbers[SLICE_NUMBERS] = {bundle->node, slice->part_offset, to - from, 0, 0};
    swp_numbers_add_all(list, SLICE_NUMBERS, numbers);
    if (slice->local != nap->local && !gather_slice(nap, slice, list))
      return swp_plan_no_memory(nap->plan);
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
  swp_numbers_add_all(list, EXTRACT_NUMBERS, numbers);
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

static int send_slices(struct nap *nap) {
  int error = SWP_SUCCESS;
  for (int local = 0; local < nap->size; local++)
    if (nap->gatherings[local].sent.count > 0)
      TRY(swp_nap_send_runs(nap, STAGE_GATHER, swp_nap_rank_here(nap, local), PLACE_USER,
                            &nap->gatherings[local].sent));
done:
  return error;
}

static const int64_t *behind(const int64_t *slice) {
  return swp_nap_extracts(slice) + slice[SLICE_EXTRACTS] * EXTRACT_NUMBERS;
}

const int64_t *swp_nap_next_slice(struct part **part, const int64_t *slice) {
  while ((*part)->node != slice[SLICE_NODE])
    ++*part;
  return behind(slice);
}

const int64_t *swp_nap_extracts(const int64_t *slice) {
  return slice + SLICE_NUMBERS + slice[SLICE_REPEATS] * REPEAT_NUMBERS;
}

/* Adds bytes received to be passed on. False when memory runs out. */
static bool add_gathered(struct nap *nap, int64_t offset, int64_t bytes) {
  exchange_plan_of(nap->plan)->forwarded_bytes += bytes;
  return bytes == 0 || swp_run_add(&nap->runs, offset, bytes);
}

/* Puts the slices of another rank into their parts, except for bytes that they repeat. */
static int receive_slices(struct nap *nap, const struct box *box) {
  const int64_t *slice = box->in, *last = box->in + box->nin, *next;
  struct part *part = nap->assignment.sends.items;
  nap->runs.count = 0;
  for (; slice < last; slice = next) {
    next = swp_nap_next_slice(&part, slice);
    int64_t at = slice[SLICE_OFFSET], end = at + slice[SLICE_BYTES];
    for (const int64_t *n = slice + SLICE_NUMBERS; n < swp_nap_extracts(slice); n += REPEAT_NUMBERS) {
      if (!add_gathered(nap, part->base + at, n[REPEAT_OFFSET] - at))
        return swp_plan_no_memory(nap->plan);
      at = n[REPEAT_OFFSET] + n[REPEAT_BYTES];
    }
    if (!add_gathered(nap, part->base + at, end - at))
      return swp_plan_no_memory(nap->plan);
  }
  return nap->runs.count == 0
             ? SWP_SUCCESS
             : swp_nap_receive_runs(nap, STAGE_GATHER, box->rank, PLACE_OUTGOING, &nap->runs);
}

/* This rank's own slice of a part becomes nap->runs, none or those of one slice; returns where it begins.
   Parts come by node, as slices do, of which those before the next-th are of earlier ones. */
static int own_runs(struct nap *nap, const struct part *part, int64_t *next, int64_t *begin) {
  const struct slice *slices = nap->slices.items;
  nap->runs.count = 0;
  for (; *next < nap->slices.count && slices[*next].bundle->node <= part->node; ++*next) {
    const struct slice *slice = &slices[*next];
    if (slice->local == nap->local && slice->bundle->node == part->node) {
      *begin = slice->part_offset;
      return swp_bundle_slice(slice->bundle, slice->from, slice->to, &nap->runs)
                 ? SWP_SUCCESS
                 : swp_plan_no_memory(nap->plan);
    }
  }
  return SWP_SUCCESS;
}

/* A part that is entirely this rank's own, in one run, is sent from where it is; others get a place. */
static bool lies_together(const struct nap *nap, const struct part *part) {
  const struct run *own = nap->runs.items;
  return nap->runs.count == 1 && own->bytes == part->bytes;
}

static int place_parts(struct nap *nap) {
  struct part *part = nap->assignment.sends.items;
  int64_t begin, next = 0;
  for (int64_t i = 0; i < nap->assignment.sends.count; i++, part++) {
    int error = own_runs(nap, part, &next, &begin);
    if (error != SWP_SUCCESS)
      return error;
    part->base = nap->schedule->outgoing_bytes;
    nap->schedule->outgoing_bytes += lies_together(nap, part) ? 0 : part->bytes;
  }
  return SWP_SUCCESS;
}

/* Adds copies of the bytes that a rank's slice for a part repeats from the parts before it. Parts come by
   node, as slices do. */
static int copy_repeats(struct nap *nap, const struct part *part, struct box *box) {
  const struct array *parts = &nap->assignment.sends;
  const int64_t *slice = box->in + box->nread, *last = box->in + box->nin;
  while (slice < last && slice[SLICE_NODE] < part->node)
    slice = behind(slice);
  box->nread = slice - box->in;
  if (slice >= last || slice[SLICE_NODE] != part->node)
    return SWP_SUCCESS;
  for (const int64_t *n = slice + SLICE_NUMBERS; n < swp_nap_extracts(slice); n += REPEAT_NUMBERS) {
    struct part key = {.node = (int)n[REPEAT_FROM_NODE]};
    const struct part *from = bsearch(&key, parts->items, (size_t)parts->count, sizeof key, swp_by_int);
    struct array run = {.items = &(struct run){from->base + n[REPEAT_FROM_OFFSET], n[REPEAT_BYTES]},
                        .count = 1};
    int error = add_pieces(nap, PLACE_OUTGOING, &run, part->base + n[REPEAT_OFFSET]);
    if (error != SWP_SUCCESS)
      return error;
  }
  return SWP_SUCCESS;
}

static int send_part(struct nap *nap, const struct part *part, const struct mail *mail, int64_t *next) {
  int64_t begin = 0;
  int error = own_runs(nap, part, next, &begin);
  if (error == SWP_SUCCESS && lies_together(nap, part))
    return swp_schedule_send(nap->plan, nap->schedule, STAGE_NODES, part->peer, PLACE_USER, nap->runs.items,
                             1, NULL, 0);
  nap->pieces.count = 0;
  if (error == SWP_SUCCESS)
    error = add_pieces(nap, PLACE_USER, &nap->runs, part->base + begin);
  for (int local = 0; error == SWP_SUCCESS && local < nap->size; local++)
    error = copy_repeats(nap, part, &mail->boxes[local]);
  if (error != SWP_SUCCESS)
    return error;
  return swp_schedule_send(nap->plan, nap->schedule, STAGE_NODES, part->peer, PLACE_OUTGOING,
                           &(struct run){part->base, part->bytes}, 1, nap->pieces.items, nap->pieces.count);
}

int swp_nap_schedule_gather(struct nap *nap, const struct mail *mail) {
  int error = SWP_SUCCESS;
  int64_t next = 0;
  struct part *part = nap->assignment.sends.items;
  TRY(send_slices(nap));
  TRY(place_parts(nap));
  for (int64_t i = 0; i < nap->assignment.sends.count; i++)
    TRY(send_part(nap, part + i, mail, &next));
  for (int local = 0; local < nap->size; local++)
    if (local != nap->local)
      TRY(receive_slices(nap, &mail->boxes[local]));
done:
  return error;
}
