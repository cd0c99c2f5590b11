/* The method table: parsed rules, in order of priority. Grammar: docs/reference/table.md. */
#ifndef SWP_TABLE_H
#define SWP_TABLE_H

#include "method.h"
#include "model.h"

/* Conditions of a rule, in the order of `condition_names`. Both ends included. */
enum condition {
  CONDITION_NODES,
  CONDITION_PPN,
  CONDITION_MMAX,
  CONDITION_MAVG,
  CONDITION_BYTES,
  CONDITION_EXECUTIONS,
  CONDITIONS
};

struct range {
  double low, high; /* integers up to 2^53 are exact; unbounded: 0 and INFINITY */
};

#define SWP_WHY_LACKED "another rank's process does not have it"

struct rule {
  enum swp_operation operation;
  struct spec spec;
  struct range ranges[CONDITIONS];
  int line;
  const char *unusable; /* why, on all ranks: off at this site, or lacking on one; NULL: it may be used */
};

struct swp_table {
  int nrules;
  struct rule *rules;
  struct model model; /* without messages: the table has none */
  int64_t hash;       /* of the text */
  char path[192];     /* for messages, the end of it when it is long */
};

/* Parses a table's text of `length` bytes, with a NUL behind them. Local. Errors: SWP_ERR_TABLE,
 * SWP_ERR_MEMORY. */
int swp_table_parse(const char *path, const char *text, size_t length, struct swp_table **table);

/* Reads a file, of which what follows a line that is refused may be left out. *text, which ends with a NUL,
   must be released. Local. Errors: SWP_ERR_TABLE, _MEMORY. */
int swp_table_text(const char *path, char **text, int64_t *length);

/* The table that a variable of rank 0's environment names, or NULL; an optional one may be missing.
   Collective. The caller frees it. Errors, agreed. */
int swp_table_named(MPI_Comm comm, int rank, const char *variable, bool optional, swp_table **table);

#endif
