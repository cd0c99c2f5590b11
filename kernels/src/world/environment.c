/* Algorithms of the MPI library, by the environment of a process. */
#define _POSIX_C_SOURCE 200809L
#include "environment.h"

#include "error.h"
#include "operations.h"
#include "variables.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which they are looked for: Intel MPI is made of MPICH. */
static const struct library {
  const char *version; /* what the text of its version begins with */
  const char *variable;
  bool upper;
  const char *also, *also_value; /* a variable that the library needs too, and its value */
  const char *priority;          /* the variable of a component's; NULL: there are none */
} libraries[] = {
    {"Intel(R) MPI", INTEL_ALGORITHM, true, NULL, NULL, NULL},
    {"MPICH", MPICH_ALGORITHM, true, MPICH_BYPASS, "none", NULL},
    {"Open MPI", OPENMPI_PREFIX OPENMPI_ALGORITHM, false, OPENMPI_PREFIX OPENMPI_SWITCH, "1",
     OPENMPI_PREFIX OPENMPI_PRIORITY},
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

/*
 * What `han` does bcast, reduce and allreduce with: the words of its names, in this order, each after a dash,
 * and none twice: "han-sm-adapt-16384". Both versions take numbers of components; by names, 5 takes one that
 * it does not have.
 */
static const struct part {
  const char *word; /* NULL: the bytes of a segment */
  const char *variable;
} han_parts[] = {
    {"sm", OPENMPI_PREFIX OPENMPI_HAN "low_module"},   /* within nodes, instead of tuned */
    {"adapt", OPENMPI_PREFIX OPENMPI_HAN "up_module"}, /* between nodes, instead of libnbc */
    {NULL, OPENMPI_PREFIX OPENMPI_HAN "segsize"},
};

enum { PARTS = sizeof han_parts / sizeof han_parts[0], WANTED = 1 + PARTS };

/* A variable of the environment, and the value that makes the library run an algorithm; "": it is not set. */
struct wanted {
  char variable[VARIABLE_BYTES], value[ALGORITHM_BYTES];
};

/* Returns whether the text begins with a dash and the part; sets its value, which is empty otherwise. */
static bool find_part(const struct part *part, const char *text, char *value) {
  const char *word = text + 1;
  size_t length = *text == '-' ? strcspn(word, "-") : 0;
  bool found = part->word != NULL ? length == strlen(part->word) && memcmp(word, part->word, length) == 0
                                  : length > 0 && *word != '0' && strspn(word, "0123456789") == length;
  if (found && part->word == NULL)
    snprintf(value, ALGORITHM_BYTES, "%.*s", (int)length, word);
  else
    snprintf(value, ALGORITHM_BYTES, "%s", found ? "1" : "");
  return found;
}

/* Returns whether the text is that of parts of `han`. */
static bool find_parts(enum swp_operation operation, const char *text, struct wanted *wanted) {
  for (int i = 0; i < PARTS; i++) {
    swp_variable_name(han_parts[i].variable, false, operation, wanted[i].variable);
    if (find_part(&han_parts[i], text, wanted[i].value))
      text += 1 + strcspn(text + 1, "-");
  }
  return *text == '\0';
}

/* The number of variables. */
static int find_wanted(const struct library *library, enum swp_operation operation, const char *name,
                       struct wanted wanted[WANTED]) {
  const char *rest = name + strcspn(name, "-");
  size_t length = (size_t)(rest - name);
  for (const struct component *its = swp_components; library->priority != NULL && its->name != NULL; its++) {
    bool in_parts = (its->in_parts & SWP_BIT(operation)) != 0;
    if ((its->operations & SWP_BIT(operation)) != 0 && strlen(its->name) == length &&
        memcmp(its->name, name, length) == 0 &&
        (in_parts ? find_parts(operation, rest, wanted + 1) : *rest == '\0')) {
      snprintf(wanted->variable, sizeof wanted->variable, library->priority, its->name);
      snprintf(wanted->value, sizeof wanted->value, "%d", FIRST_PRIORITY);
      return in_parts ? WANTED : 1;
    }
  }
  swp_variable_name(library->variable, library->upper, operation, wanted->variable);
  snprintf(wanted->value, sizeof wanted->value, "%s", name);
  return 1;
}

bool swp_environment_has(enum swp_operation operation, const char *name) {
  const struct library *library = this_library();
  struct wanted wanted[WANTED];
  if (library == NULL)
    return false;
  int count = find_wanted(library, operation, name, wanted);
  for (int i = 0; i < count; i++) {
    const char *value = getenv(wanted[i].variable);
    if (strcmp(value != NULL ? value : "", wanted[i].value) != 0)
      return false;
  }
  return true;
}

int swp_environment_set(enum swp_operation operation, const char *name) {
  const struct library *library = this_library();
  struct wanted wanted[WANTED];
  if (name == NULL || *name == '\0' || strlen(name) >= ALGORITHM_BYTES || !swp_is_collective(operation))
    return swp_fail(
        SWP_ERR_ARGUMENT,
        "swp_environment_set: the operation must be a collective and name have 1 to 63 characters");
  if (library == NULL)
    return swp_fail(
        SWP_ERR_NOT_APPLICABLE,
        "swp_environment_set: the variables that set this MPI library's algorithms are not known");
  int count = find_wanted(library, operation, name, wanted);
  for (int i = 0; i < count; i++)
    if (wanted[i].value[0] != '\0')
      setenv(wanted[i].variable, wanted[i].value, 1);
    else
      unsetenv(wanted[i].variable);
  if (library->also != NULL)
    setenv(library->also, library->also_value, 1);
  return SWP_SUCCESS;
}

void swp_environment_allow(void) {
  setenv(OPENMPI_PREFIX OPENMPI_SWITCH, "1", 0);
}
