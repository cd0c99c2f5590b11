/* Method specs: "name:key=value,key=value". */
#include "error.h"
#include "method.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Reads a decimal integer of at most 18 digits; NULL when there is none. */
static const char *read_integer(const char *text, long *value) {
  const char *p = text;
  *value = 0;
  while (isdigit((unsigned char)*p) && p - text < 18)
    *value = *value * 10 + (*p++ - '0');
  return p == text || isdigit((unsigned char)*p) ? NULL : p;
}

static const char *read_sizes(const struct parameter *parameter, const char *text,
                              struct argument *argument) {
  for (;;) {
    long size;
    const char *end = read_integer(text, &size);
    if (end == NULL || argument->value == GRID_DIMS || size < parameter->low || size > parameter->high)
      return NULL;
    argument->sizes[argument->value++] = (int)size;
    if (*end != 'x')
      return end;
    text = end + 1;
  }
}

static const char *read_choice(const struct parameter *parameter, const char *text,
                               struct argument *argument) {
  size_t length = strcspn(text, ",");
  for (int i = 0; parameter->choices[i] != NULL; i++)
    if (strlen(parameter->choices[i]) == length && memcmp(parameter->choices[i], text, length) == 0) {
      argument->value = i;
      return text + length;
    }
  return NULL;
}

static const char *read_word(const char *text, struct argument *argument) {
  size_t length = strcspn(text, ",");
  if (length == 0 || length >= sizeof argument->word)
    return NULL;
  for (size_t i = 0; i < length; i++)
    if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
      return NULL;
  memcpy(argument->word, text, length); /* of a zeroed spec */
  return text + length;
}

/* Reads one value; returns its end, or NULL if it is malformed or out of range. */
static const char *read_value(const struct parameter *parameter, const char *text,
                              struct argument *argument) {
  switch (parameter->type) {
  case PARAMETER_GRID:
    return read_sizes(parameter, text, argument);
  case PARAMETER_CHOICE:
    return read_choice(parameter, text, argument);
  case PARAMETER_WORD:
    return read_word(text, argument);
  case PARAMETER_INTEGER:
    break;
  }
  const char *end = read_integer(text, &argument->value);
  return end != NULL && argument->value >= parameter->low && argument->value <= parameter->high ? end : NULL;
}

/* Writes one value; returns its end. */
static char *write_value(const struct parameter *parameter, const struct argument *argument, char *text,
                         const char *end) {
  size_t room = (size_t)(end - text);
  switch (parameter->type) {
  case PARAMETER_CHOICE:
    return text + snprintf(text, room, "%s", parameter->choices[argument->value]);
  case PARAMETER_WORD:
    return text + snprintf(text, room, "%s", argument->word);
  case PARAMETER_INTEGER:
    return text + snprintf(text, room, "%ld", argument->value);
  case PARAMETER_GRID:
    break;
  }
  for (int i = 0; i < argument->value; i++)
    text += snprintf(text, (size_t)(end - text), "%s%d", i > 0 ? "x" : "", argument->sizes[i]);
  return text;
}

/* Canonical text: the parameters that were given, in the method's order. The input's length bounds it. */
static void write_spec(struct spec *spec) {
  const char *end = spec->text + sizeof spec->text;
  char *text = spec->text + snprintf(spec->text, sizeof spec->text, "%s", spec->method->name);
  char separator = ':';
  for (int i = 0; spec->method->parameters[i].name != NULL; i++) {
    const struct parameter *parameter = &spec->method->parameters[i];
    if (!spec->arguments[i].given)
      continue;
    text += snprintf(text, (size_t)(end - text), "%c%s=", separator, parameter->name);
    text = write_value(parameter, &spec->arguments[i], text, end);
    separator = ',';
  }
}

static int find_parameter(const struct method *method, const char *name, size_t length) {
  for (int i = 0; method->parameters[i].name != NULL; i++)
    if (strlen(method->parameters[i].name) == length && memcmp(method->parameters[i].name, name, length) == 0)
      return i;
  return -1;
}

int swp_spec_parse(enum swp_operation operation, const char *text, struct spec *spec) {
  memset(spec, 0, sizeof *spec);
  if (strlen(text) >= SPEC_BYTES)
    return swp_fail(SWP_ERR_METHOD, "method spec of over %d characters: '%.40s…'", SPEC_BYTES - 1, text);
  size_t length = strcspn(text, ":");
  spec->method = swp_method_find(operation, text, length);
  if (spec->method == NULL)
    return swp_fail(SWP_ERR_METHOD, "unknown %s method '%.*s'; swpbench list shows all",
                    swp_shapes[operation].name, (int)length, text);
  for (int i = 0; spec->method->parameters[i].name != NULL; i++)
    spec->arguments[i].value = spec->method->parameters[i].otherwise;
  const char *p = text + length;
  while (*p != '\0') {
    const char *name = ++p;
    length = strcspn(name, "=,");
    int index = find_parameter(spec->method, name, length);
    if (index < 0 && spec->method->usage == NULL)
      return swp_fail(SWP_ERR_METHOD, "method spec '%s': %s takes no parameters", text, spec->method->name);
    if (index < 0 || name[length] != '=')
      return swp_fail(SWP_ERR_METHOD, "method spec '%s': no %s '%.*s'; %s takes '%s'", text,
                      index < 0 ? "parameter" : "value for", (int)length, name, spec->method->name,
                      spec->method->usage);
    struct argument *argument = &spec->arguments[index];
    if (argument->given)
      return swp_fail(SWP_ERR_METHOD, "method spec '%s': '%.*s' is given twice", text, (int)length, name);
    argument->given = true;
    p = read_value(&spec->method->parameters[index], name + length + 1, argument);
    if (p == NULL || (*p != '\0' && *p != ','))
      return swp_fail(SWP_ERR_METHOD, "method spec '%s': malformed value of '%.*s'; %s takes '%s'", text,
                      (int)length, name, spec->method->name, spec->method->usage);
  }
  write_spec(spec);
  return SWP_SUCCESS;
}
