/* The properties of each operation, from switchpoint_operations.def. */
#ifndef SWP_OPERATIONS_H
#define SWP_OPERATIONS_H

#include "switchpoint.h"

#include <stdbool.h>

enum {
  OPERATIONS = 0
#define OPERATION(...) +1
#include "switchpoint_operations.def"
#undef OPERATION
};

/* The contents of a buffer, in blocks of a rank's size. */
enum extent { NONE, ONE, ONE_AT_ROOT, ALL, ALL_AT_ROOT };

/* The bytes that a call without data counts as, so that it has a size as all others. */
enum { NO_DATA_BYTES = 1 };

struct shape {
  const char *name;
  const char *default_method;
  bool rooted, reduces;
  enum extent send, recv;
};

/* In the order of enum swp_operation. */
extern const struct shape swp_shapes[OPERATIONS];

/* Returns whether the operation is one of MPI's collectives; any number may be asked about. */
static inline bool swp_is_collective(enum swp_operation operation) {
  return (int)operation >= SWP_BCAST && (int)operation < OPERATIONS; /* the enum may be unsigned */
}

/* Returns whether the blocks of recv have counts and places of their own, which then describe them. */
static inline bool swp_is_listed(enum swp_operation operation) {
  return operation == SWP_ALLGATHERV || operation == SWP_ALLTOALLV;
}

/* Returns whether a buffer has a block for each rank. */
static inline bool swp_holds_all(enum extent extent) {
  return extent >= ALL;
}

#endif
