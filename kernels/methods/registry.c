/* The registry: all methods of methods.def, looked up by operation and name. */
#include "error.h"
#include "method.h"

#include <stdio.h>
#include <string.h>

#define METHOD(name) extern const struct method name;
#include "methods.def"
#undef METHOD

static const struct method *const methods[] = {
#define METHOD(name) &name,
#include "methods.def"
#undef METHOD
};

enum { METHODS = sizeof methods / sizeof methods[0] };

/* Returns whether the method has the functions of the operation. */
static bool does(const struct method *method, enum swp_operation operation) {
  if (operation == SWP_EXCHANGE)
    return method->start != NULL;
  if (operation == SWP_DISCOVERY)
    return method->execute != NULL;
  return method->procedures[operation].run != NULL;
}

const char *swp_absent(const struct spec *spec, enum swp_operation operation) {
  return spec->method->absent != NULL ? spec->method->absent(spec, operation) : NULL;
}

/* docs/reference/mpi-faults.md */
static const char *cannot_reduce(const struct method *method, const struct features *features) {
#ifdef OPEN_MPI
  const struct shape *shape = &swp_shapes[features->operation];
  if (features->without_world && shape->reduces && strcmp(method->name, shape->default_method) != 0)
    return "MPI_Reduce_local of Open MPI crashes in a session without MPI_Init";
#else
  (void)method, (void)features;
#endif
  return NULL;
}

const char *swp_not_applicable(const struct spec *spec, const struct features *features) {
  const struct method *method = spec->method;
  const struct procedure *procedure = &method->procedures[features->operation];
  const char *why = cannot_reduce(method, features);
  if (why == NULL && method->applicable != NULL)
    why = method->applicable(spec, features);
  if (why == NULL)
    why = swp_absent(spec, features->operation);
  if (why == NULL && procedure->applicable != NULL)
    why = procedure->applicable(spec, features);
  return why;
}

const struct method *swp_method_find(enum swp_operation operation, const char *name, size_t length) {
  for (int i = 0; i < METHODS; i++) {
    const struct method *method = methods[i];
    if (does(method, operation) && strlen(method->name) == length && memcmp(method->name, name, length) == 0)
      return method;
  }
  return NULL;
}

const struct method *swp_method_at(int index) {
  return index >= 0 && index < METHODS ? methods[index] : NULL;
}

int swp_method_list(int index, struct swp_method_info *info) {
  if (info == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_method_list: info is NULL");
  if (index < 0 || index >= METHODS)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_method_list: no method %d; there are %d", index, METHODS);
  const struct method *method = methods[index];
  unsigned operations = 0;
  for (int i = 0; i < OPERATIONS; i++)
    operations |= (unsigned)does(method, (enum swp_operation)i) << i;
  *info = (struct swp_method_info){operations, method->name, method->usage != NULL ? method->usage : "",
                                   method->summary, method->source};
  return SWP_SUCCESS;
}

bool swp_method_variant(const struct method *method, enum swp_operation operation, int index, int procs,
                        char *text, size_t length) {
  if (!does(method, operation))
    return false;
  if (method->variant != NULL)
    return method->variant(operation, index, procs, text, length);
  snprintf(text, length, "%s", method->name);
  return index == 0;
}

int swp_method_specs(enum swp_operation operation, const char *name, int procs, char *specs, size_t length) {
  if (name == NULL || specs == NULL || length == 0 || procs < 1)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "swp_method_specs: name and specs must not be NULL, length and procs must be at least 1");
  if (swp_operation_name((int)operation) == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_method_specs: no operation %d", (int)operation);
  const struct method *method = swp_method_find(operation, name, strlen(name));
  if (method == NULL)
    return swp_fail(SWP_ERR_METHOD, "swp_method_specs: unknown %s method '%s'; swpbench list shows all",
                    swp_shapes[operation].name, name);
  char text[SPEC_BYTES];
  size_t used = 0;
  specs[0] = '\0';
  for (int index = 0; swp_method_variant(method, operation, index, procs, text, sizeof text); index++) {
    const char *space = used > 0 ? " " : "";
    if (strlen(space) + strlen(text) >= length - used)
      return swp_fail(SWP_ERR_ARGUMENT, "swp_method_specs: the specs of '%s' need more than %zu bytes", name,
                      length);
    used += (size_t)snprintf(specs + used, length - used, "%s%s", space, text);
  }
  return SWP_SUCCESS;
}
