/* Parameters of messages, as a table carries them: what times are composed of (tuner/models/costs.py). */
#ifndef SWP_MODEL_H
#define SWP_MODEL_H

#include <stdbool.h>

enum { MODEL_PROTOCOLS = 8 }; /* of one kind of pair at most */

enum pair_kind { PAIR_ON_NODE, PAIR_OFF_NODE, PAIR_KINDS };

/* What messages cost that have at most so many bytes, and more than those of the protocol before. */
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
  double copy_s_per_byte; /* 0: not known */
  double fence_barriers;  /* that MPI_Win_fence takes as long as. 0: not known */
  double cores; /* of a node; more ranks wait for each other's, of which nothing is told. 0: not known */
};

#endif
