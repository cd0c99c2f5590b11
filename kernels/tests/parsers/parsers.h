/* The parsers of text, each as a function of any bytes; MPI is never started. */
#ifndef PARSERS_H
#define PARSERS_H

#include <stdbool.h>
#include <stddef.h>

struct parser {
  const char *name;
  /* Whether the text is accepted; it may be overwritten, and has a NUL behind it. */
  bool (*accepts)(char *text, size_t length);
};

/* The parsers of the library, and those of swpbench. The last of each list has no name. */
extern const struct parser library_parsers[], bench_parsers[];

/* The path of a file with the text, until the next call. */
const char *as_file(const char *text, size_t length);

/* Ends the program where something does not hold. */
void insist(bool holds, const char *what);

#endif
