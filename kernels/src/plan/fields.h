/*
 * Several fields in one exchange. The plan's problem is that of whole items, of all fields, in buffers of the
 * plan: `send` has each item that is sent once, items that a message begins with in its order.
 */
#ifndef SWP_FIELDS_H
#define SWP_FIELDS_H

#include "problem.h"

struct swp_plan;

struct fields {
  int count;
  int64_t *bytes;                 /* of an item of each field */
  int64_t item_bytes;             /* of a whole item */
  int64_t hash;                   /* of count and bytes; 0 where there are no fields */
  int64_t nsent;                  /* runs that are packed */
  struct run *sent;               /* in items of the caller's send buffers */
  int64_t first_recv, recv_items; /* in the caller's receive buffers */
  char *send, *recv;              /* whole items */
  void **to;                      /* the caller's receive buffers, until the exchange is complete */
};

/* Checks the caller's description, and builds fields and problem; both must be freed in any case. Local.
   Errors: SWP_ERR_ARGUMENT, _MEMORY. */
int swp_fields_build(const struct swp_exchange *exchange, int nfields, const int64_t *bytes, int rank,
                     int procs, struct fields *fields, struct problem *problem, int64_t *account);

void swp_fields_free(struct fields *fields);

/* Packs what is sent, and remembers where to unpack. Errors: SWP_ERR_ARGUMENT (an array is needed, but
   NULL). */
int swp_fields_pack(struct fields *fields, const void *const *send, void *const *recv, const char *call);

/* The plan's `advance`: that of its method, which unpacks in the end. */
int swp_fields_advance(struct swp_plan *plan, bool block, bool *done);

#endif
