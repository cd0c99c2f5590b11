/* Probes between pairs of ranks: parametrised round trips, and receives that come late. */
#ifndef PROBES_PAIRS_H
#define PROBES_PAIRS_H

#include "sync.h"

/* Pairs of ranks that all do the same at once. */
struct pairs {
  const char *scope;
  int count;      /* 0: there are none */
  int partner;    /* of this rank; -1: none */
  bool initiates; /* this rank begins, and is timed */
};

/* PRTT(n, d, s): n messages of s bytes, the next begun d after the call that began the last returned. */
struct trip {
  int messages;
  int64_t delay_ns;
  int64_t size_bytes;
  bool synchronous;
  bool mutual; /* both ends send this many messages at once, without delay, and receive as many; no answers */
};

/* Pairs of the local ranks of nodes 0 and 1, `count` at once. Collective. */
struct pairs pairs_between_nodes(const struct team *team, int count);

/* Pairs of the ranks of rank 0's node. */
struct node_pairs {
  struct pairs on_socket; /* rank 0 and the last rank that is known to be on its socket */
  struct pairs on_node;   /* rank 0 and the last rank of the others */
  struct pairs all;       /* every rank has a partner, but for the last of an odd number */
};

/* Collective. */
void pairs_on_node(const struct team *team, struct node_pairs *pairs);

/*
 * Seconds of `samples` round trips, on every rank those of the slowest pair. Payloads are compared outside of
 * the timed region. Collective; 0, or -1 with failure_text() set on some rank.
 */
int pairs_round_trips(const struct pairs *pairs, struct sync *sync, const struct trip *trip, int samples,
                      double *seconds);

/*
 * Seconds of calls that receive a message which has arrived. *ahead is false if some message was not sent
 * before its receive; the seconds are then meaningless. Returns like pairs_round_trips.
 */
int pairs_receives(const struct pairs *pairs, struct sync *sync, int64_t size_bytes, int64_t delay_ns,
                   int samples, double *seconds, bool *ahead);

#endif
