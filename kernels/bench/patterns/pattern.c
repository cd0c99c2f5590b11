#include "pattern.h"

#include "error.h"
#include "matrix.h"
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN(name) extern const struct pattern_family pattern_##name;
#include "families.def"
#undef PATTERN

#define PATTERN(name) &pattern_##name,
static const struct pattern_family *const families[] = {
#include "families.def"
    NULL};
#undef PATTERN

enum { DIGITS_MOST = 19, PATTERN_LONGEST = 301 };

static const char CONTIGUOUS[] = "contiguous";

/* Reads "name=value" of the given length into its place in values. */
static int parse_parameter(const struct pattern_parameter *parameters, int count, const char *text,
                           int length, int64_t *values, bool *given) {
  const char *equals = memchr(text, '=', (size_t)length);
  for (int i = 0; equals && i < count && parameters[i].name; i++) {
    const struct pattern_parameter *parameter = &parameters[i];
    if (strlen(parameter->name) != (size_t)(equals - text) ||
        strncmp(parameter->name, text, (size_t)(equals - text)) != 0)
      continue;
    const char *const number = equals + 1;
    const size_t digits = strspn(number, "0123456789");
    errno = 0;
    values[i] = strtoll(number, NULL, 10);
    if (number + digits != text + length || digits == 0 || digits > DIGITS_MOST || errno ||
        values[i] < parameter->least || values[i] > parameter->most)
      return failure_set("%s must be an integer from %lld to %lld", parameter->name,
                         (long long)parameter->least, (long long)parameter->most);
    if (given[i])
      return failure_set("%s is given twice", parameter->name);
    given[i] = true;
    return 0;
  }
  return failure_set("\"%.*s\" is not a parameter here; see swpbench --help", length, text);
}

int parameters_parse(const char *text, const struct pattern_parameter *parameters, int count,
                     int64_t *values) {
  bool given[PARAMETERS_MOST] = {false};
  for (int i = 0; i < count; i++)
    values[i] = parameters[i].standard;
  while (text) {
    const int length = (int)strcspn(text, ",");
    if (parse_parameter(parameters, count, text, length, values, given))
      return -1;
    text = text[length] == ',' ? text + length + 1 : NULL;
  }
  return 0;
}

/* Reads "FILE" or "FILE,part=PART". */
static int parse_file(const char *text, struct pattern_spec *spec) {
  static const char MARK[] = ",part=";
  const char *mark = strstr(text, MARK);
  const char *part = mark ? mark + strlen(MARK) : CONTIGUOUS;
  const size_t length = mark ? (size_t)(mark - text) : strlen(text);
  if (length == 0)
    return failure_set("this pattern needs a file: %s:FILE", spec->family->name);
  if (*part == '\0' || strstr(part, MARK))
    return failure_set("write part=contiguous, part=strided or part=FILE, once");
  if (length >= sizeof spec->file || strlen(part) >= sizeof spec->part)
    return failure_set("a file name has more than %d characters", PATTERN_PATH_MAX - 1);
  memcpy(spec->file, text, length);
  memcpy(spec->part, part, strlen(part));
  char printed[PATTERN_LONGEST + 2];
  pattern_print(spec, printed, sizeof printed);
  if (!name_usable(printed, PATTERN_LONGEST, "<>"))
    return failure_set(
        "without directories a pattern has at most %d bytes, and no <, > or control character: "
        "rename the file",
        PATTERN_LONGEST);
  return 0;
}

int pattern_parse(const char *text, struct pattern_spec *spec) {
  const size_t length = strcspn(text, ":");
  const char *rest = text[length] == ':' ? text + length + 1 : NULL;
  *spec = (struct pattern_spec){0};
  for (int i = 0; families[i] && !spec->family; i++)
    if (strlen(families[i]->name) == length && strncmp(families[i]->name, text, length) == 0)
      spec->family = families[i];
  if (!spec->family)
    return failure_set("unknown pattern; see swpbench --help");
  if (spec->family->from_file)
    return parse_file(rest ? rest : "", spec);
  if (parameters_parse(rest, spec->family->parameters, PATTERN_PARAMETERS, spec->values))
    return -1;
  return spec->family->check ? spec->family->check(spec) : 0;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void pattern_print(const struct pattern_spec *spec, char *text, size_t length) {
  if (spec->family->from_file) {
    const bool contiguous = strcmp(spec->part, CONTIGUOUS) == 0;
    snprintf(text, length, "%s:%s%s%s", spec->family->name, base_name(spec->file),
             contiguous ? "" : ",part=", contiguous ? "" : base_name(spec->part));
    return;
  }
  size_t used = (size_t)snprintf(text, length, "%s", spec->family->name);
  for (int i = 0; i < PATTERN_PARAMETERS && spec->family->parameters[i].name && used < length; i++)
    used += (size_t)snprintf(text + used, length - used, "%c%s=%lld", i ? ',' : ':',
                             spec->family->parameters[i].name, (long long)spec->values[i]);
}

void patterns_help(void) {
  printf("\npatterns of run and soak:\n");
  for (int i = 0; families[i]; i++) {
    char text[256];
    struct pattern_spec spec = {.family = families[i], .file = "FILE", .part = "PART"};
    for (int p = 0; p < PATTERN_PARAMETERS; p++)
      spec.values[p] = spec.family->parameters[p].standard;
    pattern_print(&spec, text, sizeof text);
    printf("  %-34s %s\n", text, spec.family->summary);
  }
}

int pattern_generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  *pattern = (struct pattern){0};
  return spec->family->generate(team, spec, pattern);
}

void pattern_free(struct pattern *pattern) {
  lists_free(&pattern->sends);
  lists_free(&pattern->recvs);
  if (pattern->matrix)
    matrix_free(pattern->matrix);
  free(pattern->matrix);
  free(pattern->halo_columns);
}

void pattern_measure(const struct team *team, const struct pattern *pattern,
                     struct pattern_features *features) {
  const int64_t messages = pattern->sends.n;
  const int64_t items = pattern->sends.offsets[pattern->sends.n];
  int64_t sums[2] = {messages, items};
  int64_t most[3] = {messages, items, 0};
  for (int i = 0; i < pattern->sends.n; i++) {
    const int64_t length = pattern->sends.offsets[i + 1] - pattern->sends.offsets[i];
    if (length > most[2])
      most[2] = length;
  }
  team_allreduce(team, sums, 2, MPI_INT64_T, MPI_SUM);
  team_allreduce(team, most, 3, MPI_INT64_T, MPI_MAX);
  *features = (struct pattern_features){sums[0], most[0], sums[1], most[1], most[2]};
}
