#include "parsers.h"

#include "command_line.h"
#include "error.h"
#include "matrix_market.h"
#include "methods.h"
#include "overlap.h"
#include "partition.h"
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 64, PROCS = 6, ROWS = 4, PARTS = 3 };

static bool matrix(char *text, size_t length) {
  struct matrix_market matrix;
  struct matrix_entry batch[7];
  int count = matrix_market_open(as_file(text, length), &matrix) ? -1 : 1;
  while (count > 0 && (count = matrix_market_read(&matrix, batch, 7)) > 0)
    for (int i = 0; i < count; i++)
      insist(batch[i].row >= 0 && batch[i].row < matrix.rows && batch[i].column >= 0 &&
                 batch[i].column < matrix.rows,
             "an entry beyond the matrix");
  matrix_market_close(&matrix);
  return count == 0;
}

static bool partition(char *text, size_t length) {
  int owners[ROWS];
  const bool accepted = partition_read(as_file(text, length), ROWS, PARTS, owners) == 0;
  for (int i = 0; accepted && i < ROWS; i++)
    insist(owners[i] >= 0 && owners[i] < PARTS, "an owner that is no part");
  return accepted;
}

static bool pattern(char *text, size_t length) {
  (void)length;
  struct pattern_spec spec, again;
  char printed[2 * PATTERN_PATH_MAX + 64], reprinted[sizeof printed];
  if (pattern_parse(text, &spec))
    return false;
  pattern_print(&spec, printed, sizeof printed);
  if (!spec.family->from_file) { /* those of files are printed without directories */
    insist(pattern_parse(printed, &again) == 0, "a pattern cannot be read as it is printed");
    pattern_print(&again, reprinted, sizeof reprinted);
    insist(strcmp(printed, reprinted) == 0, "a pattern is printed in two ways");
  }
  return true;
}

static bool sizes(char *text, size_t length) {
  (void)length;
  struct items sizes;
  const bool accepted = sizes_parse(text, &sizes) == 0;
  for (int64_t i = 1; accepted && i < sizes.count; i++)
    insist(sizes.list[i - 1] < sizes.list[i], "sizes do not increase");
  free(sizes.list);
  return accepted;
}

/* One word a line, the command first. */
static bool arguments(char *text, size_t length) {
  (void)length;
  struct command_line line;
  char *words[WORDS_MOST];
  int count = 0;
  for (char *word; count < WORDS_MOST && (word = strsep(&text, "\n"));)
    words[count++] = word;
  if (!command_find(words[0], &line))
    return false;
  const bool accepted = command_line_parse(count - 1, words + 1, &line) == 0;
  command_line_free(&line);
  return accepted;
}

/* The first character is the number of the operation. */
static bool methods(char *text, size_t length) {
  struct method *methods = NULL;
  int count = 0;
  const int operation = text[0] - '0';
  if (length == 0 || !swp_operation_name(operation))
    return false;
  const bool accepted = methods_expand((enum swp_operation)operation, text + 1, PROCS, &methods, &count) == 0;
  insist(!accepted || count > 0, "no method is accepted");
  free(methods);
  return accepted;
}

/* The first character names the kernel. */
static bool transfers(char *text, size_t length) {
  extern const struct overlap_kernel overlap_ft, overlap_spmv;
  static const struct team team = {.procs = PROCS};
  struct overlap overlap = {.kernel = text[0] == 'f' ? &overlap_ft : &overlap_spmv, .team = &team};
  struct overlap_method *methods = NULL;
  int count = 0;
  for (int i = 0; i < PATTERN_PARAMETERS; i++)
    overlap.values[i] = overlap.kernel->parameters[i].standard;
  const bool accepted = length > 0 && overlap_methods(&overlap, text + 1, &methods, &count) == 0;
  insist(!accepted || count > 0, "no method is accepted");
  free(methods);
  return accepted;
}

const struct parser bench_parsers[] = {{"arguments", arguments}, {"matrix", matrix},   {"methods", methods},
                                       {"partition", partition}, {"pattern", pattern}, {"sizes", sizes},
                                       {"transfers", transfers}, {NULL, NULL}};
