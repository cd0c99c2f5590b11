/* A table in a file, for tests of how tables are read and used. */
#ifndef SWP_TABLE_FILE_H
#define SWP_TABLE_FILE_H

#include "switchpoint.h"

enum { PATH_BYTES = 512 };

extern char table_path[PATH_BYTES]; /* of the table at hand, known on every rank */

/* Makes an empty file of a new name, which the end removes. Collective, like all of these. */
void table_file_begin(void);
void table_file_end(void);

/* Writes a table to the file, on rank 0. */
void table_file_write(const char *text);

int table_file_read(swp_table **table);

/* Writes it and reads it. */
swp_table *table_file_make(const char *text);

#endif
