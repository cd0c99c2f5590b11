/* Parses the method table and distributes it to all ranks. Grammar: docs/reference/table.md. */
#include "communicator.h"
#include "off.h"
#include "allocate.h"
#include "rules_alone.h"
#include "table_reader.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_BYTES = 4096 };
static const char VERSION_WORD[] = "switchpoint-table";

static const char *const condition_names[CONDITIONS] = {"nodes", "ppn",   "mmax",
                                                        "mavg",  "bytes", "executions"};

int swp_table_broken(const char *path, int line, const char *format, ...) {
  char text[ERROR_TEXT_BYTES - 224];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return swp_fail(SWP_ERR_TABLE, "%s:%d: %s", path, line, text);
}

/* Reads digits with, for mavg, a decimal fraction; NULL when there are none. No locale, sign or exponent. */
static const char *read_number(const char *text, bool fraction, double *value) {
  const char *p = text;
  *value = 0;
  while (isdigit((unsigned char)*p) && p - text < 15)
    *value = *value * 10 + (*p++ - '0');
  if (p == text)
    return NULL;
  if (!fraction || *p != '.')
    return p;
  const char *first = ++p;
  double decimals = 0, scale = 1;
  for (; isdigit((unsigned char)*p) && p - first < 15; p++) {
    decimals = decimals * 10 + (*p - '0');
    scale *= 10;
  }
  *value = (*value * scale + decimals) / scale; /* rounded once, of up to 15 digits, as a degree is */
  return p == first ? NULL : p;
}

static bool parse_range(const char *text, bool fraction, struct range *range) {
  if (strcmp(text, "*") == 0) {
    *range = (struct range){0, INFINITY};
    return true;
  }
  const char *end = read_number(text, fraction, &range->low);
  if (end == NULL)
    return false;
  range->high = range->low;
  if (strcmp(end, ":*") == 0) {
    range->high = INFINITY;
    return true;
  }
  if (*end == ':')
    end = read_number(end + 1, fraction, &range->high);
  return end != NULL && *end == '\0';
}

static int parse_condition(struct reader *reader, int condition, const char *value, struct rule *rule) {
  struct range *range = &rule->ranges[condition];
  if (!parse_range(value, condition == CONDITION_MAVG, range))
    return BROKEN(reader, "malformed range '%s' of %s; write LOW:HIGH, LOW:*, or *", value,
                  condition_names[condition]);
  if (range->low > range->high)
    return BROKEN(reader, "the ends of %s=%s are reversed", condition_names[condition], value);
  return SWP_SUCCESS;
}

/* A rule's fields as text, so that op may come after method. */
struct fields {
  const char *op, *method;
  bool evidence, conditions[CONDITIONS];
};

static int parse_field(struct reader *reader, const char *key, const char *value, struct fields *fields,
                       struct rule *rule) {
  bool twice = false, *seen = NULL;
  if (strcmp(key, "op") == 0) {
    twice = fields->op != NULL;
    fields->op = value;
  } else if (strcmp(key, "method") == 0) {
    twice = fields->method != NULL;
    fields->method = value;
  } else if (strcmp(key, "evidence") == 0) {
    seen = &fields->evidence;
  } else {
    for (int i = 0; i < CONDITIONS; i++)
      if (strcmp(key, condition_names[i]) == 0) {
        seen = &fields->conditions[i];
        int error = *seen ? SWP_SUCCESS : parse_condition(reader, i, value, rule);
        if (error != SWP_SUCCESS)
          return error;
      }
    if (seen == NULL)
      return BROKEN(reader, "unknown field '%s'", key);
  }
  if (seen != NULL) {
    twice = *seen;
    *seen = true;
  }
  return twice ? BROKEN(reader, "%s is given twice", key) : SWP_SUCCESS;
}

int swp_table_field(struct reader *reader, char **line, char **key, char **value) {
  char *p = *line + strspn(*line, " \t");
  *key = NULL;
  if (*p == '\0')
    return SWP_SUCCESS;
  size_t length = strcspn(p, "= \t");
  if (length == 0 || p[length] != '=')
    return BROKEN(reader, "expected key=value, found '%.*s'", (int)(length + 1), p);
  *key = p;
  p[length] = '\0';
  *value = p + length + 1;
  if (strcmp(*key, "evidence") == 0) {
    char *quote = **value == '"' ? strchr(*value + 1, '"') : NULL;
    if (quote == NULL || (quote[1] != '\0' && quote[1] != ' ' && quote[1] != '\t'))
      return BROKEN(reader, "evidence must be one text in double quotes");
    *line = quote + 1;
    return SWP_SUCCESS;
  }
  length = strcspn(*value, " \t");
  *line = *value + length + ((*value)[length] != '\0');
  (*value)[length] = '\0';
  return SWP_SUCCESS;
}

static int find_operation(const char *name) {
  for (int operation = 0; operation < OPERATIONS; operation++)
    if (strcmp(swp_shapes[operation].name, name) == 0)
      return operation;
  return -1;
}

static int parse_rule(struct reader *reader, char *line) {
  struct fields fields = {0};
  struct rule *rule = swp_array_add(&reader->rules, sizeof *rule, NULL);
  if (rule == NULL)
    return swp_fail(SWP_ERR_MEMORY, "%s: no memory for %lld rules", reader->table->path,
                    (long long)reader->rules.count + 1);
  rule->line = reader->line;
  for (int i = 0; i < CONDITIONS; i++)
    rule->ranges[i] = (struct range){0, INFINITY};
  for (char *key, *value;;) {
    int error = swp_table_field(reader, &line, &key, &value);
    if (error == SWP_SUCCESS && key == NULL)
      break;
    if (error == SWP_SUCCESS)
      error = parse_field(reader, key, value, &fields, rule);
    if (error != SWP_SUCCESS)
      return error;
  }
  if (fields.op == NULL || fields.method == NULL)
    return BROKEN(reader, "a rule needs op= and method=");
  int operation = find_operation(fields.op);
  if (operation < 0)
    return BROKEN(reader, "unknown operation '%s'", fields.op);
  rule->operation = (enum swp_operation)operation;
  for (int i = 0; i < CONDITIONS; i++)
    if (swp_is_collective(rule->operation) && fields.conditions[i] &&
        (i == CONDITION_MMAX || i == CONDITION_MAVG))
      return BROKEN(reader, "%s has no degree; remove the condition %s", fields.op, condition_names[i]);
  if (swp_spec_parse(rule->operation, fields.method, &rule->spec) != SWP_SUCCESS) {
    char why[ERROR_TEXT_BYTES];
    snprintf(why, sizeof why, "%s", swp_error_message());
    return BROKEN(reader, "%s", why);
  }
  rule->unusable = swp_is_off(&rule->spec) ? SWP_WHY_OFF : NULL;
  return SWP_SUCCESS;
}

static int parse_provenance(struct reader *reader, const char *line) {
  line += strspn(line, " \t");
  size_t length = strcspn(line, " \t");
  if (length == 0 || length >= sizeof reader->keys[0] || line[length + strspn(line + length, " \t")] == '\0')
    return BROKEN(reader, "provenance needs a key of at most %zu characters and a text",
                  sizeof reader->keys[0] - 1);
  for (int i = 0; i < reader->nkeys; i++)
    if (strlen(reader->keys[i]) == length && memcmp(reader->keys[i], line, length) == 0)
      return BROKEN(reader, "provenance %s is given twice", reader->keys[i]);
  if (reader->nkeys == PROVENANCE_KEYS)
    return BROKEN(reader, "more than %d provenance lines", PROVENANCE_KEYS);
  memcpy(reader->keys[reader->nkeys++], line, length);
  return SWP_SUCCESS;
}

static int parse_line(struct reader *reader, char *line) {
  line += strspn(line, " \t");
  if (*line == '\0' || *line == '#')
    return SWP_SUCCESS;
  size_t length = strcspn(line, " \t");
  char *rest = line + length + (line[length] != '\0');
  line[length] = '\0';
  if (!reader->versioned) {
    rest += strspn(rest, " \t");
    size_t end = strcspn(rest, " \t");
    if (strcmp(line, VERSION_WORD) != 0)
      return BROKEN(reader, "not a method table: the first line must be 'switchpoint-table 1'");
    if (end != 1 || rest[0] != '1' || rest[1 + strspn(rest + 1, " \t")] != '\0')
      return BROKEN(reader, "version '%.40s' is not supported; this library reads version 1", rest);
    reader->versioned = true;
    return SWP_SUCCESS;
  }
  if (strcmp(line, "rule") == 0)
    return parse_rule(reader, rest);
  if (strcmp(line, "provenance") == 0)
    return parse_provenance(reader, rest);
  if (strcmp(line, "model") == 0)
    return swp_table_model(reader, rest);
  return BROKEN(reader, "expected 'rule', 'model' or 'provenance', found '%.40s'", line);
}

static int parse_lines(struct reader *reader, const char *text, size_t length) {
  char line[LINE_BYTES + 1];
  for (size_t start = 0; start < length;) {
    reader->line++;
    const char *newline = memchr(text + start, '\n', length - start);
    size_t end = newline != NULL ? (size_t)(newline - text) : length, size = end - start;
    if (memchr(text + start, '\0', size) != NULL)
      return BROKEN(reader, "a NUL byte; this is not a text file");
    if (size > LINE_BYTES)
      return BROKEN(reader, "a line of over %d characters", LINE_BYTES);
    memcpy(line, text + start, size);
    if (size > 0 && line[size - 1] == '\r')
      size--;
    line[size] = '\0';
    int error = parse_line(reader, line);
    if (error != SWP_SUCCESS)
      return error;
    start = end + 1;
  }
  reader->line++;
  return reader->versioned ? swp_table_model_end(reader)
                           : BROKEN(reader, "empty: the first line must be 'switchpoint-table 1'");
}

int swp_table_parse(const char *path, const char *text, size_t length, struct swp_table **table) {
  *table = swp_allocate(1, sizeof **table, NULL);
  if (*table == NULL)
    return swp_fail(SWP_ERR_MEMORY, "%s: no memory for a table", path);
  size_t path_length = strlen(path), room = sizeof(*table)->path - 1;
  strcpy((*table)->path, path_length > room ? path + (path_length - room) : path);
  (*table)->hash = swp_text_hash(text);
  struct reader reader = {.table = *table};
  int error = parse_lines(&reader, text, length);
  (*table)->rules = reader.rules.items;
  (*table)->nrules = (int)reader.rules.count;
  if (error != SWP_SUCCESS)
    swp_table_free(table);
  return error;
}

/* Checked before it is opened: opening a FIFO waits for a writer. */
static int open_table(const char *path, FILE **file) {
  struct stat status;
  *file = NULL;
  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    return swp_fail(SWP_ERR_TABLE, "%s: a directory; name the table in it", path);
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    return swp_fail(SWP_ERR_TABLE, "%s: not a regular file; name a method table", path);
  *file = fopen(path, "rb");
  return *file != NULL ? SWP_SUCCESS
                       : swp_fail(SWP_ERR_TABLE, "%s: cannot be read: %s", path, strerror(errno));
}

/* The bytes to parse: all of the file, or what it has up to a line that is refused before others are read:
   for its length, or as the first line of something else. */
static int64_t parsed_length(FILE *file) {
  char line[LINE_BYTES + 2];
  int64_t length = 0;
  bool versioned = false, more = true;
  while (more && length <= INT_MAX && fgets(line, sizeof line, file) != NULL) {
    const char *word = line + strspn(line, " \t\r\n");
    versioned = versioned || strncmp(word, VERSION_WORD, strlen(VERSION_WORD)) == 0;
    more = strchr(line, '\n') != NULL && (versioned || *word == '\0' || *word == '#');
    length = ftell(file);
  }
  return length;
}

int swp_table_text(const char *path, char **text, int64_t *length) {
  FILE *file;
  *text = NULL;
  *length = 0;
  int error = open_table(path, &file);
  if (error != SWP_SUCCESS)
    return error;
  *length = parsed_length(file);
  if (ferror(file) || fseek(file, 0, SEEK_SET) != 0)
    error = swp_fail(SWP_ERR_TABLE, "%s: cannot be read: %s", path, strerror(errno));
  else if (*length > INT_MAX)
    error = swp_fail(SWP_ERR_TABLE, "%s: not a method table: over 2 GiB", path);
  else if ((*text = swp_allocate((size_t)*length + 1, 1, NULL)) == NULL)
    error = swp_fail(SWP_ERR_MEMORY, "%s: no memory for %lld bytes", path, (long long)*length);
  else if (fread(*text, 1, (size_t)*length, file) != (size_t)*length)
    error = swp_fail(SWP_ERR_TABLE, "%s: cannot be read to its end", path);
  fclose(file);
  return error;
}

/* Reads a table on a communicator of the library's own. *table must be NULL before. */
static int share(MPI_Comm comm, const char *path, swp_table **table) {
  int error = SWP_SUCCESS, rank;
  char *text = NULL;
  int64_t length = 0, off[2] = {swp_text_hash(getenv(SWP_OFF)), 0}, most[2];
  MPI_TRY(MPI_Comm_rank(comm, &rank));
  if (table == NULL || path == NULL)
    error = swp_fail(SWP_ERR_ARGUMENT, "swp_table_read: %s is NULL", table == NULL ? "table" : "path");
  else if (rank == 0)
    error = swp_table_text(path, &text, &length);
  if (error == SWP_SUCCESS)
    error = swp_off_check();
  TRY(swp_agree(comm, error));
  off[1] = ~off[0];
  MPI_TRY(MPI_Allreduce(off, most, 2, MPI_INT64_T, MPI_MAX, comm));
  if (most[0] != ~most[1]) {
    error = swp_fail(SWP_ERR_ARGUMENT, "%s differs between ranks", SWP_OFF);
    goto done;
  }
  MPI_TRY(MPI_Bcast(&length, 1, MPI_INT64_T, 0, comm));
  if (rank != 0)
    text = swp_allocate((size_t)length + 1, 1, NULL);
  TRY(swp_agree(comm, text != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "%s: no memory for it", path)));
  MPI_TRY(MPI_Bcast(text, (int)length, MPI_CHAR, 0, comm));
  TRY(swp_agree(comm, swp_table_parse(path, text, (size_t)length, table)));
done:
  if (error != SWP_SUCCESS)
    swp_table_free(table);
  swp_release(text);
  return error;
}

int swp_table_read(MPI_Comm comm, const char *path, swp_table **table) {
  MPI_Comm own;
  if (table != NULL)
    *table = NULL;
  int error = swp_comm_duplicate(comm, &own);
  if (error == SWP_SUCCESS)
    error = share(own, path, table);
  if (own != MPI_COMM_NULL)
    MPI_Comm_free(&own);
  return error;
}

/* Whether a file is not there, or empty, as mktemp leaves it. */
static bool is_still_to_be_written(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 ? S_ISREG(found.st_mode) && found.st_size == 0 : errno == ENOENT;
}

int swp_table_named(MPI_Comm comm, int rank, const char *variable, bool optional, swp_table **table) {
  int error = SWP_SUCCESS, length = 0;
  char path[4096] = "";
  const char *value = getenv(variable);
  *table = NULL;
  if (rank == 0 && value != NULL && !(optional && is_still_to_be_written(value)))
    length = snprintf(path, sizeof path, "%s", value);
  MPI_TRY(MPI_Bcast(&length, 1, MPI_INT, 0, comm));
  if (length == 0)
    return SWP_SUCCESS;
  if (length >= (int)sizeof path)
    return swp_fail(SWP_ERR_TABLE, "%s is over %zu characters", variable, sizeof path - 1);
  MPI_TRY(MPI_Bcast(path, length, MPI_CHAR, 0, comm));
  TRY(share(comm, path, table));
done:
  return error;
}

int swp_table_has(const swp_table *table, enum swp_operation operation) {
  for (int i = 0; table != NULL && i < table->nrules; i++)
    if (table->rules[i].operation == operation && table->rules[i].unusable == NULL)
      return 1;
  return 0;
}

int swp_table_rules(const swp_table *table) {
  return table != NULL ? table->nrules : 0;
}

bool swp_table_is_same(const swp_table *a, const swp_table *b) {
  return a->hash == b->hash && a->nrules == b->nrules;
}

int swp_table_agree(MPI_Comm comm, swp_table *table) {
  int error = SWP_SUCCESS;
  unsigned char *lacked = swp_allocate((size_t)table->nrules + 1, 1, NULL);
  TRY(swp_agree(comm, lacked != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for rules")));
  for (int i = 0; i < table->nrules; i++)
    lacked[i] = swp_absent(&table->rules[i].spec, table->rules[i].operation) != NULL;
  MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, lacked, table->nrules, MPI_UNSIGNED_CHAR, MPI_MAX, comm));
  for (int i = 0; i < table->nrules; i++) {
    struct rule *rule = &table->rules[i];
    const char *own = swp_absent(&rule->spec, rule->operation);
    if (lacked[i] && rule->unusable == NULL)
      rule->unusable = own != NULL ? own : SWP_WHY_LACKED;
  }
done:
  swp_release(lacked);
  return error;
}

void swp_table_forget_model(swp_table *table) {
  table->model = (struct model){0};
}

void swp_table_free(swp_table **table) {
  if (table == NULL || *table == NULL)
    return;
  swp_release((*table)->rules);
  swp_release(*table);
  *table = NULL;
}
