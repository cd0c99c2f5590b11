/* Text files line by line, compressed by gzip or not. Refuses by failure_set(), with file and line. */
#ifndef PRODUCTS_LINES_H
#define PRODUCTS_LINES_H

#include <stddef.h>
#include <stdint.h>

struct lines {
  const char *path;
  void *file;
  char *block; /* read ahead */
  size_t used, filled;
  char *line; /* the current line, without its end */
  size_t length, room;
  int64_t number; /* of the current line, from 1 */
};

/* 0 or -1; lines_close must be called in both cases. */
int lines_open(const char *path, struct lines *lines);

/* 1 with the next line, 0 at the end of the file, -1. */
int lines_next(struct lines *lines);

/* Sets the failure of the current line, and returns -1. */
int lines_refuse(const struct lines *lines, const char *what);

void lines_close(struct lines *lines);

#endif
