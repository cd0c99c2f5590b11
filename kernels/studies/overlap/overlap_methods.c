#include "overlap.h"

#include "error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SEPARATORS[] = " ;";

static const struct {
  const char *name;
  enum overlap_transfer by;
} transfers[] = {{"isend", BY_ISEND}, {"put", BY_PUT}, {"get", BY_GET}};

enum { NTRANSFERS = sizeof transfers / sizeof transfers[0] };

struct list {
  struct overlap_method *methods;
  int count;
};

static void add(struct list *list, const struct overlap_family *family, int64_t value, int transfer) {
  struct overlap_method method = {.family = family, .value = value, .by = transfers[transfer].by};
  const char *by = transfers[transfer].name;
  if (family->parameter)
    snprintf(method.spec, sizeof method.spec, "%s:%s=%lld,by=%s", family->name, family->parameter,
             (long long)value, by);
  else
    snprintf(method.spec, sizeof method.spec, "%s:by=%s", family->name, by);
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->methods[i].spec, method.spec) == 0)
      return;
  list->methods = reallocate(list->methods, ((size_t)list->count + 1) * sizeof *list->methods);
  list->methods[list->count++] = method;
}

/* Adds a method with the value or, without one (0), with those worth trying. */
static void add_values(struct list *list, const struct overlap_family *family, int64_t value, int by,
                       int64_t most) {
  for (int transfer = 0; transfer < NTRANSFERS; transfer++) {
    if (!(transfers[transfer].by & by))
      continue;
    if (value || !family->parameter)
      add(list, family, value, transfer);
    for (int64_t each = family->first; !value && family->parameter && (each < most || each == 1);
         each *= family->factor)
      add(list, family, each, transfer);
  }
}

/* Reads "by=put" or "<parameter>=<number>". */
static int read_parameter(const struct overlap_family *family, const char *text, int length, int64_t most,
                          int64_t *value, int *by) {
  const char *equals = memchr(text, '=', (size_t)length);
  const int name = equals ? (int)(equals - text) : length;
  if (equals && name == 2 && strncmp(text, "by", 2) == 0)
    for (int i = 0; i < NTRANSFERS; i++)
      if (transfers[i].by & family->transfers && (int)strlen(transfers[i].name) == length - name - 1 &&
          strncmp(transfers[i].name, equals + 1, (size_t)(length - name - 1)) == 0) {
        *by = transfers[i].by;
        return 0;
      }
  if (equals && family->parameter && (int)strlen(family->parameter) == name &&
      strncmp(family->parameter, text, (size_t)name) == 0) {
    char *end;
    *value = strtoll(equals + 1, &end, 10);
    if (end == text + length && *value >= 1 && *value <= most)
      return 0;
    return failure_set("%s must be an integer from 1 to %lld here", family->parameter, (long long)most);
  }
  return failure_set("\"%.*s\" is not a parameter of %s", length, text, family->name);
}

static int read_method(const struct overlap *overlap, const char *word, int length, struct list *list) {
  const int name = (int)strcspn(word, ": ;");
  const bool all = name == 3 && length == 3 && strncmp(word, "all", 3) == 0;
  const int64_t most = overlap->kernel->most(overlap);
  bool found = false;
  for (const struct overlap_family *family = overlap->kernel->families; family->name; family++) {
    if (!all && ((int)strlen(family->name) != name || strncmp(family->name, word, (size_t)name) != 0))
      continue;
    int by = family->transfers;
    int64_t value = 0;
    for (int at = name; at < length;) {
      const char *text = word + ++at; /* behind ':' or ',' */
      const int part = (int)strcspn(text, ", ;");
      if (read_parameter(family, text, part, most, &value, &by))
        return -1;
      at += part;
    }
    add_values(list, family, value, by, most);
    found = true;
  }
  return found ? 0 : failure_set("\"%.*s\" is not a method of %s", length, word, overlap->kernel->name);
}

int overlap_methods(const struct overlap *overlap, const char *text, struct overlap_method **methods,
                    int *count) {
  struct list list = {0};
  int status = 0;
  for (const char *word = text + strspn(text, SEPARATORS); status == 0 && *word;) {
    const int length = (int)strcspn(word, SEPARATORS);
    status = read_method(overlap, word, length, &list);
    word += length;
    word += strspn(word, SEPARATORS);
  }
  if (status)
    failure_place("--methods");
  else if (list.count == 0)
    status = failure_set("--methods names no method");
  *methods = list.methods;
  *count = list.count;
  return status;
}
