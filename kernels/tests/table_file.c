#include "table_file.h"

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char table_path[PATH_BYTES];

static char own_path[] = "/tmp/switchpoint-XXXXXX";
static int rank;

void table_file_begin(void) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int file = rank == 0 ? mkstemp(own_path) : -1;
  if (file >= 0)
    close(file);
  MPI_Bcast(own_path, sizeof own_path, MPI_CHAR, 0, MPI_COMM_WORLD);
  strcpy(table_path, own_path);
}

void table_file_end(void) {
  if (rank == 0)
    remove(own_path);
}

void table_file_write(const char *text) {
  FILE *file = rank == 0 ? fopen(table_path, "wb") : NULL;
  if (rank == 0)
    EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s cannot be written", table_path);
  MPI_Barrier(MPI_COMM_WORLD);
}

int table_file_read(swp_table **table) {
  *table = NULL;
  return test_agreed(MPI_COMM_WORLD, swp_table_read(MPI_COMM_WORLD, table_path, table));
}

swp_table *table_file_make(const char *text) {
  swp_table *table;
  table_file_write(text);
  EXPECT_ERROR(table_file_read(&table), SWP_SUCCESS);
  return table;
}
