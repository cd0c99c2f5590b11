/* Parameters of messages, as a table carries them, and the times composed of them: the equations of
   tuner/models (costs.py, delivery.py). */
#ifndef SWP_MODEL_H
#define SWP_MODEL_H

#include "method.h"

enum { MODEL_PROTOCOLS = 8 }; /* of one kind of pair at most */

/* Pairs on a node and between nodes while all ranks send, and pairs on a node while nobody else does. */
enum pair_kind { PAIR_ON_NODE, PAIR_OFF_NODE, PAIR_ALONE, PAIR_KINDS };

/* The cost of messages of at most this many bytes, and more than those of the protocol before. */
struct message_cost {
  double up_to_bytes; /* of the last INFINITY */
  double alpha_s;     /* L + 2o */
  double step_s;      /* max(o, g), of each message after the first */
  double receive_s;   /* o, of each message received */
  double per_byte_s;  /* G */
  double beta_s;      /* of a message alone */
};

/* Bytes per second that leave a node: of one process, what each further one adds, up to so many, and what
   the node never exceeds. 0: not known. */
struct rates {
  double up_to_bytes;
  double b_max, b_inj, b_node;
  double processes;
};

struct pair_model {
  int nmessages, nrates;
  struct message_cost messages[MODEL_PROTOCOLS];
  struct rates rates[MODEL_PROTOCOLS];
  bool has_penalty;
  double penalty_s; /* of a synchronous send */
};

struct model {
  struct pair_model pairs[PAIR_KINDS];
  double copy_s_per_byte; /* 0: not known, as the next */
  double reduce_s_per_byte;
  double fence_barriers; /* number of barriers that take as long as MPI_Win_fence. 0: not known */
  double cores;          /* of a node; with more ranks than cores there is no estimate. 0: not known */
};

/* A rank's messages of one stage. */
struct tally {
  double ahead_s;                       /* the longest, of those sent and received */
  double steps_s, longest_step_s;       /* of those sent */
  double receives_s, longest_receive_s; /* of those received */
  double stay_s, leave_s, arrive_s;     /* their bytes: sent on the node, sent off it, received */
  int64_t leaving, leaving_bytes;
};

/* The bytes that leave a node in a stage, and how large their messages are. */
struct crowd {
  int64_t senders, bytes;
  double mean_bytes;
};

/* The basis of estimates. */
struct estimate {
  const struct model *model;
  const struct spec *spec; /* of the method that is estimated */
  MPI_Comm node;           /* MPI_COMM_NULL where no rate bounds what leaves a node */
};

/* The cost of a message of this many bytes between ranks of this kind. */
const struct message_cost *swp_cost_of(const struct pair_model *pair, double bytes);

/* Alpha, plus the extra time of a lone message's bytes over those of many messages. */
double swp_ahead_s(const struct message_cost *cost, double bytes);

/* Adds a message that this rank sends, or receives, to its tally; off: to or from another node. */
void swp_tally_send(const struct model *model, bool off_node, int64_t bytes, struct tally *tally);
void swp_tally_receive(const struct model *model, bool off_node, int64_t bytes, struct tally *tally);

/* D of this rank, with all messages begun together; ahead_s has the overheads of one sent and one
   received. */
double swp_delivery_s(const struct model *model, const struct tally *tally, const struct crowd *crowd);

#endif
