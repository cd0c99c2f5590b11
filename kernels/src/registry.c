/* The registry: all methods of methods.def, looked up by kind and name. */
#include "error.h"
#include "method.h"

#include <string.h>

const char *const swp_kind_names[KINDS] = {"exchange", "discovery"};

#define METHOD(name) extern const struct method name;
#include "methods.def"
#undef METHOD

static const struct method *const methods[] = {
#define METHOD(name) &name,
#include "methods.def"
#undef METHOD
};

enum { METHODS = sizeof methods / sizeof methods[0] };

const struct method *swp_method_find(enum swp_kind kind, const char *name, size_t length) {
  for (int i = 0; i < METHODS; i++) {
    const struct method *method = methods[i];
    if (method->kind == kind && strlen(method->name) == length && memcmp(method->name, name, length) == 0)
      return method;
  }
  return NULL;
}

int swp_method_list(int index, struct swp_method_info *info) {
  if (info == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_method_list: info is NULL");
  if (index < 0 || index >= METHODS)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_method_list: no method %d; there are %d", index, METHODS);
  const struct method *method = methods[index];
  *info =
      (struct swp_method_info){method->kind, method->name, method->usage, method->summary, method->source};
  return SWP_SUCCESS;
}

int swp_method_specs(enum swp_kind kind, const char *name, int procs, char *specs, size_t length) {
  if (name == NULL || specs == NULL || length == 0 || procs < 1)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_method_specs: name and specs must be given, procs be at least 1");
  const struct method *method = swp_method_find(kind, name, strlen(name));
  if (method == NULL)
    return swp_fail(SWP_ERR_METHOD, "swp_method_specs: unknown method '%s'; swpbench list shows all", name);
  size_t used = 0;
  specs[0] = '\0';
  for (int index = 0;; index++) {
    char text[SPEC_BYTES];
    if (method->variant != NULL) {
      if (!method->variant(index, procs, text, sizeof text))
        break;
    } else if (index == 0) {
      strcpy(text, name);
    } else {
      break;
    }
    size_t needed = strlen(text) + (used > 0) + 1;
    if (needed > length - used)
      return swp_fail(SWP_ERR_ARGUMENT, "swp_method_specs: the specs of '%s' need more than %zu bytes", name,
                      length);
    if (used > 0)
      specs[used++] = ' ';
    strcpy(specs + used, text);
    used += strlen(text);
  }
  return SWP_SUCCESS;
}
