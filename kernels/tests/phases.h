/* Records which collectives of the MPI library are called, phase by phase. Linked with --wrap for each. */
#ifndef TESTS_PHASES_H
#define TESTS_PHASES_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_PHASES = 16 };

/* A call of a collective on so many ranks; bytes as of a rule: of the vector, else of a rank's block; of
   an allgatherv and gatherv, of all blocks. */
struct phase {
  char function[24];
  int ranks;
  int64_t bytes;
};

struct phases {
  int count;
  struct phase list[MOST_PHASES];
};

extern struct phases phases_made;
extern bool phases_with_messages; /* those of MPI_Isend are phases, too, of the two ranks */

/* Adds what is expected. Of no ranks: not by a call of MPI. */
void phases_expect(struct phases *expected, const char *function, int ranks, int64_t bytes);
/* Fails the test unless these were made. */
void phases_compare(const struct phases *expected);

#endif
