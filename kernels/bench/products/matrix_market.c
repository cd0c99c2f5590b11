#include "matrix_market.h"

#include "error.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char BLANKS[] = " \t";
static const char *const FIELDS[] = {"real", "integer", "complex", "pattern", NULL};
static const char *const SYMMETRIES[] = {"general", "symmetric", "skew-symmetric", "hermitian", NULL};
static const int64_t LARGEST = INT64_MAX / 4;

/* Rows take memory, a size line does not. */
enum { TOKENS_MAX = 6, ROWS_MOST = 1 << 20, ROWS_PER_ENTRY_MOST = 64 };

static int refuse(const struct matrix_market *matrix, const char *what) {
  return lines_refuse(&matrix->lines, what);
}

/* Cuts the line into tokens; their number, or TOKENS_MAX when there are as many or more. */
static int split(char *line, char **tokens) {
  int count = 0;
  char *rest = line;
  for (char *token; count < TOKENS_MAX && (token = strtok_r(rest, BLANKS, &rest));)
    tokens[count++] = token;
  return count;
}

/* The next line that is not blank, cut into tokens: their number, 0 at the end of the file, -1. */
static int next_tokens(struct matrix_market *matrix, char **tokens) {
  int status;
  while ((status = lines_next(&matrix->lines)) > 0) {
    const int count = split(matrix->lines.line, tokens);
    if (count > 0)
      return count;
  }
  return status;
}

static int keyword(const char *token, const char *const *words) {
  for (int i = 0; words[i]; i++)
    if (strcasecmp(token, words[i]) == 0)
      return i;
  return -1;
}

static int read_banner(struct matrix_market *matrix) {
  char *tokens[TOKENS_MAX];
  const int status = lines_next(&matrix->lines);
  if (status < 0)
    return -1;
  if (status == 0)
    return failure_set("%s:1: the file is empty", matrix->lines.path);
  const int count = split(matrix->lines.line, tokens);
  if (count == 0 || strcasecmp(tokens[0], "%%MatrixMarket") != 0)
    return refuse(matrix, "the first line does not begin with %%MatrixMarket");
  if (count != 5)
    return refuse(matrix, "the first line is not \"%%MatrixMarket matrix coordinate FIELD SYMMETRY\"");
  if (strcasecmp(tokens[1], "matrix") != 0 || strcasecmp(tokens[2], "coordinate") != 0)
    return refuse(matrix, "only \"matrix coordinate\" files can be read");
  const int field = keyword(tokens[3], FIELDS);
  const int symmetry = keyword(tokens[4], SYMMETRIES);
  if (field < 0)
    return refuse(matrix, "the field is none of real, integer, complex, pattern");
  if (symmetry < 0)
    return refuse(matrix, "the symmetry is none of general, symmetric, skew-symmetric, hermitian");
  matrix->field = (enum matrix_field)field;
  matrix->symmetry = (enum matrix_symmetry)symmetry;
  if ((matrix->field == MATRIX_PATTERN && matrix->symmetry > MATRIX_SYMMETRIC) ||
      (matrix->field != MATRIX_COMPLEX && matrix->symmetry == MATRIX_HERMITIAN))
    return refuse(matrix, "this field cannot have this symmetry");
  return 0;
}

/* A decimal integer from least to most that is the whole token. */
static bool parse_integer(const char *token, int64_t least, int64_t most, int64_t *value) {
  char *end;
  if (token[strspn(token, "+-0123456789")] != '\0') /* strtoll would skip blanks that separate no tokens */
    return false;
  errno = 0;
  *value = strtoll(token, &end, 10);
  return *end == '\0' && end != token && !errno && *value >= least && *value <= most;
}

static int read_size(struct matrix_market *matrix) {
  char *tokens[TOKENS_MAX];
  int64_t columns;
  int count;
  do
    count = next_tokens(matrix, tokens);
  while (count > 0 && tokens[0][0] == '%');
  if (count < 0)
    return -1;
  if (count == 0)
    return refuse(matrix, "the file ends before the line with the size");
  if (count != 3 || !parse_integer(tokens[0], 1, LARGEST, &matrix->rows) ||
      !parse_integer(tokens[1], 1, LARGEST, &columns) ||
      !parse_integer(tokens[2], 0, LARGEST, &matrix->entries))
    return refuse(matrix, "the size is not \"ROWS COLUMNS ENTRIES\", at least 1 1 0");
  if (matrix->rows != columns)
    return refuse(matrix, "the matrix is not square, as partitioning by rows requires");
  if (matrix->entries / matrix->rows > columns ||
      (matrix->entries / matrix->rows == columns && matrix->entries % matrix->rows))
    return refuse(matrix, "more entries than the matrix has places");
  if (matrix->rows > ROWS_MOST && (matrix->rows - ROWS_MOST - 1) / ROWS_PER_ENTRY_MOST >= matrix->entries)
    return refuse(matrix, "more rows than 1048576 plus 64 for each entry");
  return 0;
}

int matrix_market_open(const char *path, struct matrix_market *matrix) {
  *matrix = (struct matrix_market){0};
  return lines_open(path, &matrix->lines) || read_banner(matrix) || read_size(matrix) ? -1 : 0;
}

/* A number that is the whole token and one of the field's. */
static bool parse_value(enum matrix_field field, const char *token, double *value) {
  char *end;
  int64_t integer;
  if (field == MATRIX_INTEGER) {
    if (!parse_integer(token, INT64_MIN, INT64_MAX, &integer))
      return false;
    *value = (double)integer;
    return true;
  }
  if (token[strspn(token, "+-.0123456789eE")] != '\0') /* strtod would take hexadecimal numbers and names */
    return false;
  *value = strtod(token, &end);
  return isfinite(*value) && *end == '\0' && end != token;
}

static int parse_entry(struct matrix_market *matrix, int count, char **tokens, struct matrix_entry *entry) {
  static const int VALUES[] = {
      [MATRIX_REAL] = 1, [MATRIX_INTEGER] = 1, [MATRIX_COMPLEX] = 2, [MATRIX_PATTERN] = 0};
  if (tokens[0][0] == '%')
    return refuse(matrix, "a comment among the entries");
  if (count < 2 || count != 2 + VALUES[matrix->field])
    return refuse(matrix, "an entry of this field does not have this many numbers");
  if (!parse_integer(tokens[0], 1, matrix->rows, &entry->row))
    return refuse(matrix, "the row is not an integer from 1 to the number of rows");
  if (!parse_integer(tokens[1], 1, matrix->rows, &entry->column))
    return refuse(matrix, "the column is not an integer from 1 to the number of columns");
  double values[2] = {1};
  for (int i = 2; i < count; i++)
    if (!parse_value(matrix->field, tokens[i], &values[i - 2]))
      return refuse(matrix, "a value is not a finite number of the file's field");
  if (matrix->symmetry != MATRIX_GENERAL && entry->row < entry->column)
    return refuse(matrix, "an entry above the diagonal of a symmetric matrix");
  if (matrix->symmetry == MATRIX_SKEW_SYMMETRIC && entry->row == entry->column)
    return refuse(matrix, "an entry on the diagonal of a skew-symmetric matrix");
  entry->row--;
  entry->column--;
  entry->value = values[0];
  return 0;
}

int matrix_market_read(struct matrix_market *matrix, struct matrix_entry *batch, int most) {
  char *tokens[TOKENS_MAX];
  int n = 0;
  while (n < most && matrix->entries_read < matrix->entries) {
    const int count = next_tokens(matrix, tokens);
    if (count < 0)
      return -1;
    if (count == 0)
      return failure_set("%s:%lld: the file ends after %lld of its %lld entries", matrix->lines.path,
                         (long long)matrix->lines.number, (long long)matrix->entries_read,
                         (long long)matrix->entries);
    if (parse_entry(matrix, count, tokens, &batch[n]))
      return -1;
    n++;
    matrix->entries_read++;
  }
  if (n == 0) {
    const int count = next_tokens(matrix, tokens);
    return count > 0 ? refuse(matrix, "more entries than the size line says") : count;
  }
  return n;
}

void matrix_market_close(struct matrix_market *matrix) {
  lines_close(&matrix->lines);
  *matrix = (struct matrix_market){0};
}
