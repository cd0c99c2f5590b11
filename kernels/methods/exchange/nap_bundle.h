/* Node-aware exchange: a rank's data for each other node, every value once. */
#ifndef SWP_NAP_BUNDLE_H
#define SWP_NAP_BUNDLE_H

#include "kinds.h"

/* The bytes that any rank of one node needs from here. */
struct bundle {
  int node;
  int64_t bytes;
  int64_t nruns;
  struct run *runs; /* of the caller's send buffer, increasing, apart from each other */
  int64_t *begins;  /* where each run begins in the bundle */
  int64_t nsends;
  const struct send **sends; /* the messages that it is made of, in the caller's order */
};

struct bundles {
  int64_t count;
  struct bundle *list; /* by increasing node */
  /* Storage of all of them: */
  struct run *runs;
  int64_t *begins;
  const struct send **sends;
};

/* Sorts the problem's messages to other nodes. Local. swp_bundles_free must be called in any case. Errors:
   SWP_ERR_MEMORY. */
int swp_bundles_make(const struct swp_plan *plan, struct bundles *bundles);
void swp_bundles_free(struct bundles *bundles);

/* The place in the bundle of a byte of the caller's send buffer, which must be in the bundle. */
int64_t swp_bundle_position(const struct bundle *bundle, int64_t offset);

/* Appends the bytes from … to - 1 of the bundle to an array of struct run, as runs of the caller's buffer.
   False when memory runs out. */
bool swp_bundle_slice(const struct bundle *bundle, int64_t from, int64_t to, struct array *runs);

/* Appends a run, joined with the last when they touch. False when memory runs out. */
bool swp_run_add(struct array *runs, int64_t offset, int64_t bytes);

#endif
