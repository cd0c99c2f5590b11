/* Node-aware exchange: the results of planning, step by step. */
#ifndef SWP_NAP_H
#define SWP_NAP_H

#include "mail.h"
#include "nap_bundle.h"
#include "schedule.h"

/* Stages of the schedule. On-node messages are sent beside those between nodes. */
enum { STAGE_GATHER, STAGE_NODES, STAGE_DISTRIBUTE, NAP_STAGES };

/* The place of a bundle in all data from its node to the other one, and the rank that sends it. */
struct placement {
  int64_t begin;
  int64_t node_bytes;
  int shares, first; /* as in struct lot */
};

/* The data between this rank and one of another node. */
struct part {
  int node; /* the other */
  int peer;
  int64_t bytes;
  int64_t base; /* where it begins in the plan's buffer, if it is there */
};

struct assignment {
  struct placement *placements; /* of each bundle */
  struct array sends, recvs;    /* of struct part, by increasing node */
};

/* Deals the nodes to the ranks, through the first rank of each node. Collective; errors are agreed but for
   those of the last step. swp_nap_assignment_free must be called in any case. */
int swp_nap_assign(struct swp_plan *plan, const struct bundles *bundles, bool sharing, int error,
                   struct assignment *assignment);
void swp_nap_assignment_free(struct assignment *assignment);

/* Numbers in the lists sent: of a slice, of its bytes already sent in a slice for another node, and of the
   bytes for each rank. */
enum { SLICE_NODE, SLICE_OFFSET, SLICE_BYTES, SLICE_REPEATS, SLICE_EXTRACTS, SLICE_NUMBERS };
enum { REPEAT_OFFSET, REPEAT_FROM_NODE, REPEAT_FROM_OFFSET, REPEAT_BYTES, REPEAT_NUMBERS };
enum { EXTRACT_DESTINATION, EXTRACT_AT, EXTRACT_OFFSET, EXTRACT_BYTES, EXTRACT_NUMBERS };

/* Bytes of a bundle that go to one rank of the node, which sends them. */
struct slice {
  int local;
  const struct bundle *bundle;
  int64_t from, to;     /* in the bundle */
  int64_t part_offset;  /* in what that rank sends */
  int64_t first_number; /* of its numbers in the list for that rank */
};

/* The bytes that one rank of the node receives to pass on, each once. */
struct gathering {
  struct array sent; /* struct run of the caller's buffer, in the order of the message */
  struct array seen; /* struct sighting of the same bytes, by offset */
};

struct nap {
  struct swp_plan *plan;
  struct schedule *schedule;
  const struct topology *topology;
  int node, size, local;
  struct bundles bundles;
  struct assignment assignment;
  struct array slices;          /* of this rank's bundles, by node and share */
  struct gathering *gatherings; /* the bytes of them that each rank of the node gets */
  struct receive *expected;     /* the problem's receives by increasing peer */
  struct array *extracts;       /* per local rank: runs of the incoming buffer for it */
  struct array runs, pieces;    /* of the current message */
};

/* Cuts the bundles at the shares of their nodes and lists every slice, with the receivers of its bytes, for
   the rank of the node that sends it. Local. */
int swp_nap_list_slices(struct nap *nap, struct mail *mail);

/* Iterates over the slices that a rank listed: sets `*part` to the part of `slice`, returns the next one. */
const int64_t *swp_nap_next_slice(struct part **part, const int64_t *slice);

/* The first extract of a slice that a rank listed. */
const int64_t *swp_nap_extracts(const int64_t *slice);

/* Schedules the messages that gather, and those between nodes, from the lists received. Local. */
int swp_nap_schedule_gather(struct nap *nap, const struct mail *slices);

/* The rank with a local number on this node. */
int swp_nap_rank_here(const struct nap *nap, int local);

/* A box to and from every rank of the node. Local. */
int swp_nap_mail_on_node(const struct nap *nap, struct mail *mail);

/* Schedule a message to or from another rank of the node, by its memory if that is possible. Else one run of
   a buffer is sent from there, others are packed. Local. */
int swp_nap_send_runs(struct nap *nap, int stage, int peer, enum transfer_place place,
                      const struct array *runs);
int swp_nap_receive_runs(const struct nap *nap, int stage, int peer, enum transfer_place place,
                         const struct array *runs);

/* Fills the schedule. Collective; errors as above. */
int swp_nap_schedule(struct swp_plan *plan, bool sharing, struct schedule *schedule);

#endif
