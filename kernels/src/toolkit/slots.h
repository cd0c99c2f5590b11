/*
 * Messages of an exchange in memory that the ranks share: the sender writes one to a slot, where the receiver
 * reads it. A message has two slots, which take turns. That of call n is written again in call n + 2, when
 * the receiver has read it: it has if a message of its own of call n + 1 came, as it then had completed call
 * n. A receiver that sends the sender nothing acknowledges. A sender that waits for this has waited for call
 * n + 1, which by MPI's rules may take until the receiver starts that call: so no correct program hangs.
 * kernels/tests/protocols/slots.pml is a model of this.
 */
#ifndef SWP_SLOTS_H
#define SWP_SLOTS_H

#include "kinds.h"
#include "sharing.h"

enum { SLOTS = 2 };

enum direction { SLOTS_OUT, SLOTS_IN, DIRECTIONS };

struct slot {
  call_number call; /* whose message this is; written last, read first */
  char data[];
};

/* A message that goes by slots. */
struct channel {
  int peer;
  int64_t nruns;
  const struct run *runs; /* of the sender's buffer, or of the receiver's */
  char *slots;            /* in memory of the sender */
  int64_t slot_bytes;
  call_number *read; /* by the receiver, the last call, in its memory; NULL: its own messages show it */
};

/* The messages by slots of a plan. Zeroed: none. */
struct slots {
  struct sharers sharers; /* without an arena there are none */
  struct share share;
  uint64_t call;                     /* the last that was started */
  struct array channels[DIRECTIONS]; /* of struct channel */
  int64_t copied_bytes;              /* by this rank, in each call */
  struct partner *partners;          /* while planning: what is known of each sharer */
};

/* Must be called before the others, by all ranks of a plan alike. on_node: messages are those between ranks
   of a node, else of all. Local. Errors: SWP_ERR_MEMORY; swp_slots_place may be called nevertheless. */
int swp_slots_begin(struct swp_plan *plan, bool on_node, struct slots *slots);

/* Returns whether a message between this rank and the peer goes by slots: it fits one, and they share memory.
   Local. */
bool swp_slots_fit(const struct swp_plan *plan, const struct slots *slots, int peer, int64_t bytes);

/* A message that this rank sends or receives. If it goes by slots, *channel is a channel for it, of which the
   caller sets the runs before it calls this again; else it is NULL, and the message goes another way.
   Messages between two ranks are added in the same order on both. Local. Errors: SWP_ERR_MEMORY. */
int swp_slots_add(struct swp_plan *plan, struct slots *slots, enum direction direction, int peer,
                  int64_t bytes, struct channel **channel);

/*
 * Takes the memory, when all messages are added. Collective on the plan's ranks. `error` is an earlier error
 * of this rank, which is agreed on. Errors, agreed: as swp_arena_take, and SWP_ERR_NOT_APPLICABLE also where
 * no message fits a slot, or a rank's slots are too many.
 */
int swp_slots_place(struct swp_plan *plan, struct slots *slots, int error);

void swp_slots_free(struct slots *slots);

static inline struct slot *swp_slot_of(const struct channel *channel, uint64_t call) {
  return (struct slot *)(void *)(channel->slots + (int64_t)(call % SLOTS) * channel->slot_bytes);
}

/* Returns whether the slot for a call may be written. */
static inline bool swp_slot_is_free(const struct channel *channel, uint64_t call) {
  return channel->read == NULL || swp_has_reached(channel->read, call - SLOTS);
}

/* Waits until it may. Errors: SWP_ERR_MPI. */
static inline int swp_slot_await(struct swp_plan *plan, const struct channel *channel, uint64_t call) {
  return channel->read != NULL ? swp_await(plan, channel->read, call - SLOTS) : SWP_SUCCESS;
}

static inline void swp_slot_write(const struct channel *channel, uint64_t call, const char *from) {
  struct slot *slot = swp_slot_of(channel, call);
  swp_claim((char *)slot, channel->slot_bytes);
  swp_runs_pack(channel->runs, channel->nruns, from, slot->data);
  swp_reach(&slot->call, call);
}

static inline void swp_slot_read(const struct channel *channel, uint64_t call, char *to) {
  swp_runs_unpack(channel->runs, channel->nruns, swp_slot_of(channel, call)->data, to);
  if (channel->read != NULL)
    swp_reach(channel->read, call);
}

#endif
