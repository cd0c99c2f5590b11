#include "methods.h"

#include "error.h"
#include "team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SEPARATORS[] = " ;";
static const char ALONE[] = "vendor:environment=";

enum { SPECS_MAX = 1 << 16 };

struct expansion {
  enum swp_operation operation;
  int procs;
  struct method *methods;
  int count;
};

static int add(struct expansion *expansion, const char *spec, bool applicable) {
  if (strlen(spec) >= METHOD_SPEC_MAX)
    return failure_set("--methods: \"%.40s...\" is too long for a method", spec);
  for (int i = 0; i < expansion->count; i++)
    if (strcmp(expansion->methods[i].spec, spec) == 0)
      return 0;
  const size_t room = ((size_t)expansion->count + 1) * sizeof *expansion->methods;
  expansion->methods = reallocate(expansion->methods, room);
  struct method *method = &expansion->methods[expansion->count++];
  snprintf(method->spec, sizeof method->spec, "%s", spec);
  method->applicable = applicable;
  return 0;
}

/* Adds all specs of a family; the family itself, marked, when there are none. */
static int add_family(struct expansion *expansion, const char *name) {
  char *specs = allocate(SPECS_MAX);
  specs[0] = '\0';
  int status = 0;
  const int error = swp_method_specs(expansion->operation, name, expansion->procs, specs, SPECS_MAX);
  if (error)
    status = failure_set("--methods \"%s\": %s", name, swp_error_message());
  else if (*specs == '\0')
    status = add(expansion, name, false);
  char *rest = specs;
  for (char *spec; status == 0 && (spec = strtok_r(rest, SEPARATORS, &rest));)
    status = add(expansion, spec, true);
  free(specs);
  return status;
}

static int add_all(struct expansion *expansion) {
  struct swp_method_info info;
  for (int i = 0; swp_method_list(i, &info) == SWP_SUCCESS; i++)
    if (info.operations >> expansion->operation & 1 && add_family(expansion, info.name))
      return -1;
  return 0;
}

static int add_word(struct expansion *expansion, char *word) {
  const size_t last = strlen(word) - 1;
  if (strcmp(word, "all") == 0)
    return add_all(expansion);
  if (last > 0 && word[last] == ':') { /* the method without parameters, not its family */
    word[last] = '\0';
    return add(expansion, word, true);
  }
  if (strcmp(word, "auto") == 0 || strchr(word, ':'))
    return add(expansion, word, true);
  return add_family(expansion, word);
}

bool methods_is_by_environment(const char *spec) {
  return strncmp(spec, ALONE, sizeof ALONE - 1) == 0;
}

/* Such a method changes the library's function itself, so others in its launch could not be compared with
   it. */
static int check_alone(const struct expansion *expansion) {
  for (int i = 0; i < expansion->count; i++)
    if (expansion->count > 1 && methods_is_by_environment(expansion->methods[i].spec))
      return failure_set("--methods: %s applies to the whole launch; give it alone",
                         expansion->methods[i].spec);
  return 0;
}

void methods_set_environment(enum swp_operation operation, const char *text) {
  if (methods_is_by_environment(text) && strpbrk(text, SEPARATORS) == NULL)
    swp_environment_set(operation, text + sizeof ALONE - 1);
}

int methods_expand(enum swp_operation operation, const char *text, int procs, struct method **methods,
                   int *count) {
  struct expansion expansion = {operation, procs, NULL, 0};
  char *copy = allocate(strlen(text) + 1);
  strcpy(copy, text);
  int status = 0;
  char *rest = copy;
  for (char *word; status == 0 && (word = strtok_r(rest, SEPARATORS, &rest));)
    status = add_word(&expansion, word);
  free(copy);
  if (status == 0 && expansion.count == 0)
    status = failure_set("--methods \"%s\" names no method", text);
  if (status == 0)
    status = check_alone(&expansion);
  *methods = expansion.methods;
  *count = expansion.count;
  return status;
}
