/* Environment variables that choose the MPI library's algorithms. */
#define _POSIX_C_SOURCE 200809L
#include "environment.h"

#include "error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLE_BYTES = 64 };

/* In the order in which they are looked for: Intel MPI is made of MPICH. */
static const struct library {
  const char *version; /* what the text of its version begins with */
  const char *variable;
  bool upper;
  const char *also, *also_value; /* what makes the library look at it */
} libraries[] = {
    {"Intel(R) MPI", "I_MPI_ADJUST_%s", true, NULL, NULL},
    {"MPICH", "MPIR_CVAR_%s_INTRA_ALGORITHM", true, "MPIR_CVAR_DEVICE_COLLECTIVES", "none"},
    {"Open MPI", "OMPI_MCA_coll_tuned_%s_algorithm", false, "OMPI_MCA_coll_tuned_use_dynamic_rules", "1"},
};

enum { LIBRARIES = sizeof libraries / sizeof libraries[0] };

static const struct library *this_library(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  for (int i = 0; i < LIBRARIES; i++)
    if (strncmp(version, libraries[i].version, strlen(libraries[i].version)) == 0)
      return &libraries[i];
  return NULL;
}

static void name_variable(const struct library *library, enum swp_operation operation,
                          char text[VARIABLE_BYTES]) {
  char word[VARIABLE_BYTES / 2];
  snprintf(word, sizeof word, "%s", swp_operation_names[operation]);
  for (char *p = word; library->upper && *p; p++)
    *p = (char)toupper((unsigned char)*p);
  snprintf(text, VARIABLE_BYTES, library->variable, word);
}

bool swp_environment_has(enum swp_operation operation, const char *name) {
  const struct library *library = this_library();
  char variable[VARIABLE_BYTES];
  if (library == NULL)
    return false;
  name_variable(library, operation, variable);
  const char *value = getenv(variable);
  return value != NULL && strcmp(value, name) == 0;
}

int swp_environment_set(enum swp_operation operation, const char *name) {
  const struct library *library = this_library();
  char variable[VARIABLE_BYTES];
  if (name == NULL || operation < SWP_BCAST || swp_operation_name((int)operation) == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_environment_set: a collective and a name must be given");
  if (library == NULL)
    return swp_fail(SWP_ERR_NOT_APPLICABLE,
                    "swp_environment_set: how this MPI library is told of algorithms is not known");
  name_variable(library, operation, variable);
  setenv(variable, name, 1);
  if (library->also != NULL)
    setenv(library->also, library->also_value, 1);
  return SWP_SUCCESS;
}
