/* One operation on one pattern at one size: its buffers, planning, executing and verifying. */
#ifndef BENCH_OPERATION_H
#define BENCH_OPERATION_H

#include "pattern.h"
#include "verify.h"

#include <switchpoint.h>

struct operation;

struct workload {
  const struct operation *operation;
  const struct team *team;
  const struct pattern *pattern;
  struct payload payload;
  struct swp_hints hints; /* of a discovery: the pattern's degree and bytes per message */
  char *send;             /* exchange: all own items; discovery: the messages, one after the other */
  char *recv;             /* exchange only */
  int64_t send_bytes, recv_bytes;
  int64_t send_room, recv_room; /* of the buffers */
  int root;                     /* of a rooted collective */
  const void **messages;        /* discovery only: where each message is in send */
  int64_t *message_bytes;       /* discovery only */
  swp_inbox *inbox;             /* discovery only; one for all methods */
  int *lists;                   /* collectives: the counts and places of blocks received, and sent; or NULL */
  struct product *product;      /* spmv only */
};

/* A part of an operation that is also timed on its own. */
struct phase {
  const char *name;
  const char *key; /* of its times in a case record */
  /* Executes the part, as the operation's function does the whole. */
  int (*execute)(struct workload *workload, swp_plan *plan);
};

enum { PHASES_MOST = 2 };

/* The measured operations: exchange, discovery, spmv, and the collectives by enum swp_operation. */
struct operation {
  const char *name;
  enum swp_operation operation; /* of its plans */
  struct phase phases[PHASES_MOST];
  int nphases;
  bool rooted;                /* a rank may return before others begin: never executed twice in a sample */
  int64_t message_bytes_most; /* that it supports; 0: any */
  /* Refuses unsuitable patterns and sizes, by failure_set(); may be NULL. Local. */
  int (*check)(const struct operation *operation, const struct pattern_spec *pattern,
               const int64_t *sizes_bytes, int nsizes);
  /* Sets send_bytes and recv_bytes, and all members that need no buffers. Local. 0, or -1 with failure_text()
     set. */
  int (*size)(struct workload *workload);
  /* Frees the members that size made; may be NULL. Local. */
  void (*free)(struct workload *workload);
  /* Collective. Returns a code of enum swp_error. */
  int (*plan)(const struct workload *workload, const char *method, swp_plan **plan);
  /* Writes the payload and overwrites the last execution's results, which also warms the buffers. Local. */
  void (*prepare)(struct workload *workload);
  /* Makes the next rank the root, also of the plan, if the operation is rooted. 0, or -1 with failure_text()
     set. */
  int (*turn)(struct workload *workload, swp_plan *plan);
  /* The timed call. Collective. Returns a code of enum swp_error. */
  int (*execute)(struct workload *workload, swp_plan *plan);
  /* 0, or -1 with failure_text() set. Local. */
  int (*verify)(const struct workload *workload);
};

extern const struct operation operation_exchange, operation_discovery, operation_spmv;
extern const struct operation operation_collectives[];

/* NULL when there is none. */
const struct operation *operation_by_name(const char *name);

/* Plans get the hints, NULL: those of the pattern only. Collective; the failure is agreed. workload_free must
   be called in both cases. */
int workload_create(const struct team *team, const struct operation *operation, const struct pattern *pattern,
                    const struct pattern_features *features, int64_t item_bytes, uint64_t seed,
                    const struct swp_hints *hints, struct workload *workload);
void workload_free(struct workload *workload);

/* Sets the bytes of the buffers, and makes those anew that are too small. Local. 0, or -1 with failure_text()
   set. */
int workload_fit(struct workload *workload);

/* The messages of an exchange, as the library takes them, and how they are planned and exchanged. */
struct swp_exchange exchange_problem(const struct workload *workload);
int exchange_plan(const struct workload *workload, const char *method, swp_plan **plan);
int exchange_execute(struct workload *workload, swp_plan *plan);

/* The `bytes` of rules: for a collective its block or vector, else the mean payload of a message over all
   ranks, rounded down; 0 without messages. */
int64_t case_bytes(const struct operation *operation, const struct pattern_features *features,
                   int64_t item_bytes);

#endif
