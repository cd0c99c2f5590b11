/*
 * Functions that discovery methods that forward share: parcels, each a message of the caller with a header,
 * which travel in letters between known partners. A rank that fails sends letters that say so, and takes all
 * that come: a rank that may miss a parcel because of it fails too, and none waits for it.
 */
#ifndef SWP_RELAY_H
#define SWP_RELAY_H

#include "inbox.h"
#include "plan.h"

struct parcel {
  int source, destination;
  int64_t bytes;
  const void *data; /* the caller's, or in a letter received in this call */
  int next;         /* index of the partner that it goes to in the current stage; STAYS */
};

enum { STAYS = -1 };

/* The letter to one partner in a stage: headers and data of parcels, or an error. */
struct letter {
  int64_t bytes;
  void *data;
};

struct relay {
  int64_t nheld, capacity;
  struct parcel *held;
  struct letter *letters; /* to the partners of the current stage */
  MPI_Request *requests;
  struct inbox *received, *outgoing; /* letters of this call, and of the current stage */
  int turn;                          /* calls take turns between two tags a stage */
  int failure;                       /* of this call so far */
  char failure_letter;               /* its text, sent to partners */
};

/* Prepares for stages with at most this many partners. Local. Errors: SWP_ERR_MEMORY. */
int swp_relay_plan(struct swp_plan *plan, struct relay *relay, int most_partners);

void swp_relay_free(struct relay *relay);

/* Begins a call: holds the caller's messages to other ranks. */
void swp_relay_begin(struct swp_plan *plan, struct relay *relay, const struct outbox *outbox);

/* Packs a letter to every partner from the parcels whose `next` names it, which are held no longer; after a
   failure, packs letters that report it. */
void swp_relay_pack(struct swp_plan *plan, struct relay *relay, int npartners);

/* Holds the parcels of a letter, which must stay in memory until the call ends. */
void swp_relay_open(struct swp_plan *plan, struct relay *relay, int from, const void *letter, int64_t bytes);

/* Packs, sends to every partner, empty letters included, and holds what they send. The partners' own
   partners in this stage include this rank. Stages of a call differ in number. Errors: SWP_ERR_MPI. */
int swp_relay_stage(struct swp_plan *plan, struct relay *relay, int stage, int npartners,
                    const int *partners);

/* Ends a call: all that is held goes into the inbox. Errors: those of this rank, or reported to it. */
int swp_relay_deliver(struct swp_plan *plan, struct relay *relay, struct inbox *inbox);

#endif
