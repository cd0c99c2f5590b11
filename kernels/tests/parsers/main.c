/*
 * `swp_parsers --parser=NAME` reads paths from standard input, and prints for each whether the parser accepts
 * the content. With GUIDED it is a program of libFuzzer instead, and has this option beside those of
 * libFuzzer.
 */
#define _GNU_SOURCE /* memfd_create */
#include "parsers.h"

#include "error.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct parser *parser;

void insist(bool holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "swp_parsers: %s\n", what);
  abort();
}

const char *as_file(const char *text, size_t length) {
  static char path[64];
  static int file = -1;
  if (file < 0) {
    file = memfd_create("input", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  }
  insist(ftruncate(file, 0) == 0 && pwrite(file, text, length, 0) == (ssize_t)length, "no memory for a file");
  return path;
}

static const struct parser *find(const struct parser *parsers, const char *name) {
  while (parsers->name && strcmp(parsers->name, name) != 0)
    parsers++;
  return parsers->name ? parsers : NULL;
}

static bool accepts(const void *data, size_t size) {
  char *text = malloc(size + 1); /* as large as it must be, so that nothing is read behind it */
  insist(text != NULL, "no memory for an input");
  memcpy(text, data, size);
  text[size] = '\0';
  failure_clear();
  const bool accepted = parser->accepts(text, size);
  free(text);
  return accepted;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  static const char OPTION[] = "--parser=";
  for (int i = 1; i < *argc && !parser; i++)
    if (strncmp((*argv)[i], OPTION, strlen(OPTION)) == 0) {
      const char *name = (*argv)[i] + strlen(OPTION);
      parser = find(library_parsers, name);
      parser = parser ? parser : find(bench_parsers, name);
    }
  insist(parser != NULL, "write --parser=NAME, of a parser that there is");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  accepts(data, size);
  return 0;
}

#ifndef GUIDED
static bool accepts_file(const char *path) {
  FILE *file = fopen(path, "rb");
  insist(file != NULL && fseek(file, 0, SEEK_END) == 0, "a path of no file");
  const long size = ftell(file);
  char *data = malloc((size_t)size + 1);
  rewind(file);
  insist(data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size, "a file cannot be read");
  fclose(file);
  const bool accepted = accepts(data, (size_t)size);
  free(data);
  return accepted;
}

int main(int argc, char **argv) {
  char path[4096];
  LLVMFuzzerInitialize(&argc, &argv);
  while (fgets(path, sizeof path, stdin)) {
    path[strcspn(path, "\n")] = '\0';
    printf("%s\n", accepts_file(path) ? "accepted" : "refused");
    fflush(stdout);
  }
  return EXIT_SUCCESS;
}
#endif
