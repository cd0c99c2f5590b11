/* Messages in memory that the ranks share: planning. */
#include "slots.h"

#include "mail.h"
#include "parts.h"

/* What this rank knows of another one. */
struct partner {
  bool has_messages[DIRECTIONS]; /* of any size, to it and from it */
  struct box *box;               /* NULL: no message goes by slots */
  int64_t nread;                 /* numbers of the box */
};

int swp_slots_begin(struct swp_plan *plan, bool on_node, struct slots *slots) {
  slots->sharers = swp_sharers(plan, on_node);
  slots->partners = swp_allocate((size_t)slots->sharers.count, sizeof *slots->partners, NULL);
  return slots->partners != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

void swp_slots_free(struct slots *slots) {
  swp_release(slots->partners);
  for (int direction = 0; direction < DIRECTIONS; direction++)
    swp_release(slots->channels[direction].items);
  swp_arena_give(slots->sharers.arena, &slots->share);
}

static struct partner *partner_of(const struct swp_plan *plan, const struct slots *slots, int rank) {
  return &slots->partners[swp_sharer_of(plan, &slots->sharers, rank)];
}

static int64_t slot_bytes(int64_t bytes) {
  return swp_round_up((int64_t)sizeof(struct slot) + bytes, LINE_BYTES);
}

bool swp_slots_fit(const struct swp_plan *plan, const struct slots *slots, int peer, int64_t bytes) {
  return bytes <= SHARING_BYTES && swp_is_sharer(plan, &slots->sharers, peer);
}

int swp_slots_add(struct swp_plan *plan, struct slots *slots, enum direction direction, int peer,
                  int64_t bytes, struct channel **channel) {
  *channel = NULL;
  if (!swp_is_sharer(plan, &slots->sharers, peer))
    return SWP_SUCCESS;
  partner_of(plan, slots, peer)->has_messages[direction] = true;
  if (!swp_slots_fit(plan, slots, peer, bytes))
    return SWP_SUCCESS;
  *channel = swp_array_add(&slots->channels[direction], sizeof **channel, &plan->account);
  if (*channel == NULL)
    return swp_plan_no_memory(plan);
  (*channel)->peer = peer;
  (*channel)->slot_bytes = slot_bytes(bytes);
  slots->copied_bytes += bytes;
  exchange_plan_of(plan)->copied_bytes += bytes;
  return SWP_SUCCESS;
}

/* ---- Taking the memory ---- */

/* The bytes of this rank's slots, then of a number for each message that it may have to acknowledge. */
static int64_t part_bytes(const struct slots *slots) {
  const struct array *out = &slots->channels[SLOTS_OUT];
  int64_t bytes = slots->channels[SLOTS_IN].count * LINE_BYTES;
  for (int64_t i = 0; i < out->count; i++)
    bytes += SLOTS * ((const struct channel *)out->items)[i].slot_bytes;
  return bytes;
}

/* Refuses a plan without any message in slots: it would be another method by this one's name. Collective,
   errors agreed; `error` is an earlier one. */
static int check_any(const struct swp_plan *plan, const struct slots *slots, int error) {
  int mine = slots->channels[SLOTS_OUT].count > 0, any;
  TRY(swp_agree(plan->comm, error));
  MPI_TRY(MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, plan->comm));
  if (!any)
    error = swp_fail(SWP_ERR_NOT_APPLICABLE, "%s: no message%s is of %d bytes or less", plan->spec.text,
                     slots->sharers.on_node ? " on a node" : "", SHARING_BYTES);
done:
  return error;
}

/* Places what this rank writes. */
static void lay_out(const struct swp_plan *plan, struct slots *slots) {
  struct channel *out = slots->channels[SLOTS_OUT].items, *in = slots->channels[SLOTS_IN].items;
  char *place = swp_share_of(&slots->share, swp_sharer_of(plan, &slots->sharers, plan->rank));
  for (int64_t i = 0; i < slots->channels[SLOTS_OUT].count; i++) {
    out[i].slots = place;
    for (uint64_t slot = 0; slot < SLOTS; slot++)
      swp_reach(&swp_slot_of(&out[i], slot)->call, slots->call);
    place += SLOTS * out[i].slot_bytes;
  }
  for (int64_t i = 0; i < slots->channels[SLOTS_IN].count; i++, place += LINE_BYTES) {
    in[i].read = (call_number *)(void *)place;
    swp_reach(in[i].read, slots->call);
  }
}

/* ---- Announcing places ---- */

static struct box *box_of(const struct swp_plan *plan, const struct slots *slots, int rank,
                          struct mail *mail) {
  struct partner *partner = partner_of(plan, slots, rank);
  if (partner->box == NULL) {
    partner->box = &mail->boxes[mail->nboxes++];
    *partner->box = (struct box){.rank = rank, .sends = true, .receives = true};
  }
  return partner->box;
}

/* For each partner, where in this rank's part the slots for that one begin, or, if it only receives from it,
   what it has read. */
static int list_places(const struct swp_plan *plan, struct slots *slots, struct mail *mail) {
  const char *mine = swp_share_of(&slots->share, swp_sharer_of(plan, &slots->sharers, plan->rank));
  struct channel *out = slots->channels[SLOTS_OUT].items, *in = slots->channels[SLOTS_IN].items;
  if (!swp_mail_begin(mail, slots->sharers.count))
    return swp_plan_no_memory(plan);
  mail->nboxes = 0;
  for (int64_t i = 0; i < slots->channels[SLOTS_OUT].count; i++)
    swp_numbers_add(&box_of(plan, slots, out[i].peer, mail)->out, out[i].slots - mine);
  for (int64_t i = 0; i < slots->channels[SLOTS_IN].count; i++) {
    struct box *box = box_of(plan, slots, in[i].peer, mail);
    if (partner_of(plan, slots, in[i].peer)->has_messages[SLOTS_OUT])
      in[i].read = NULL;
    else
      swp_numbers_add(&box->out, (char *)in[i].read - mine);
  }
  return SWP_SUCCESS;
}

/* The next place that a rank announced. */
static char *next_place(const struct swp_plan *plan, const struct slots *slots, int rank) {
  struct partner *partner = partner_of(plan, slots, rank);
  return swp_share_of(&slots->share, swp_sharer_of(plan, &slots->sharers, rank)) +
         partner->box->in[partner->nread++];
}

static void read_places(const struct swp_plan *plan, const struct slots *slots) {
  struct channel *out = slots->channels[SLOTS_OUT].items, *in = slots->channels[SLOTS_IN].items;
  for (int64_t i = 0; i < slots->channels[SLOTS_IN].count; i++)
    in[i].slots = next_place(plan, slots, in[i].peer);
  for (int64_t i = 0; i < slots->channels[SLOTS_OUT].count; i++)
    if (!partner_of(plan, slots, out[i].peer)->has_messages[SLOTS_IN])
      out[i].read = (call_number *)(void *)next_place(plan, slots, out[i].peer);
}

static int introduce(struct swp_plan *plan, struct slots *slots, int error) {
  struct mail mail = {0};
  if (error == SWP_SUCCESS)
    error = list_places(plan, slots, &mail);
  TRY(swp_mail_exchange(plan, &mail, error));
  read_places(plan, slots);
done:
  swp_mail_free(&mail);
  return error;
}

/* As swp_slots_place; `comm` is that of the ranks which share the memory. */
static int place(struct swp_plan *plan, struct slots *slots, MPI_Comm comm, int error) {
  const int64_t bytes = part_bytes(slots);
  TRY(check_any(plan, slots, error == SWP_SUCCESS ? swp_sharing_check(plan, bytes) : error));
  /* Agreed on the arena's ranks only. On a node without messages one byte, as nothing cannot be given back.
   */
  error =
      swp_sharing_take(plan, slots->sharers.arena, comm, SWP_SUCCESS, bytes > 0 ? bytes : 1, &slots->share);
  if (error == SWP_SUCCESS) {
    slots->call = swp_calls_begin;
    for (int direction = 0; direction < DIRECTIONS; direction++)
      swp_array_trim(&slots->channels[direction], sizeof(struct channel), &plan->account);
    lay_out(plan, slots);
  }
  error = introduce(plan, slots, error);
done:
  swp_release(slots->partners);
  slots->partners = NULL;
  return error;
}

int swp_slots_place(struct swp_plan *plan, struct slots *slots, int error) {
  MPI_Comm node;
  if (!slots->sharers.on_node)
    return place(plan, slots, plan->comm, error);
  const int failed = swp_part_take_node(plan, &node);
  if (failed != SWP_SUCCESS)
    return failed;
  error = place(plan, slots, node, error);
  swp_part_give(plan, &node);
  return error;
}
