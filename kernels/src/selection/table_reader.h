/* Declarations that the parts of the method table's parser share. */
#ifndef SWP_TABLE_READER_H
#define SWP_TABLE_READER_H

#include "allocate.h"
#include "error.h"
#include "table.h"

enum { PROVENANCE_KEYS = 64 };

/* The state of the parser. */
struct reader {
  struct swp_table *table;
  struct array rules;
  int line;
  bool versioned;
  char keys[PROVENANCE_KEYS][32]; /* of provenance, seen so far */
  int nkeys;
  unsigned model_lines[PAIR_KINDS]; /* bits of those given, by the kind of the pair where they have one */
};

#define BROKEN(reader, ...) swp_table_broken((reader)->table->path, (reader)->line, __VA_ARGS__)

/* SWP_ERR_TABLE, with file and line. */
int swp_table_broken(const char *path, int line, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* Cuts the next key=value from the line; *key is NULL at its end. evidence="…" may hold blanks. */
int swp_table_field(struct reader *reader, char **line, char **key, char **value);

/* Parses what follows `model`, and checks at the end that the model is whole. */
int swp_table_model(struct reader *reader, char *line);
int swp_table_model_end(struct reader *reader);

#endif
