/* Algorithms of the MPI library, by its control variables and by its environment. */
#define _POSIX_C_SOURCE 200809L
#include "algorithms.h"

#include "allocate.h"
#include "error.h"
#include "variables.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 16384, VARIABLE_BYTES = 80 };

/* The name of an operation's variable, of VARIABLE_BYTES; upper: in capitals. */
static void variable_name(const char *format, bool upper, enum swp_operation operation, char *text) {
  char word[VARIABLE_BYTES / 2];
  snprintf(word, sizeof word, "%s", swp_shapes[operation].name);
  for (char *p = word; upper && *p; p++)
    *p = (char)toupper((unsigned char)*p);
  snprintf(text, VARIABLE_BYTES, format, word);
}

/* How a family of libraries names the variable of an operation. */
static const struct family {
  const char *format;
  bool upper;
  bool by_call;
  const char *enabled_by;  /* a variable that must be true; NULL: none */
  const char *component;   /* the one that has the algorithms; NULL: there are none */
  const char *bypassed_by; /* otherwise makes other code run, on some nodes and after some calls */
  int bypass_off;
} families[] = {
    {MPICH_ALGORITHM, true, true, NULL, NULL, MPICH_BYPASS, 1},
    {OPENMPI_ALGORITHM, false, false, OPENMPI_SWITCH, "tuned", NULL, 0},
};

enum { FAMILIES = sizeof families / sizeof families[0] };

#define ON(operation) (1U << (operation))

/* Components of Open MPI, each chosen as a whole. `han`, which 5 uses by default, only by the environment:
   with 5.0.11 communicators that were made for it crash when they are freed. */
static const struct component {
  const char *name;
  unsigned operations;
  bool at_start; /* only by the environment */
} components[] = {
    {"han",
     ON(SWP_BCAST) | ON(SWP_GATHER) | ON(SWP_SCATTER) | ON(SWP_REDUCE) | ON(SWP_ALLREDUCE) |
         ON(SWP_ALLGATHER),
     .at_start = true},
    {"adapt", ON(SWP_BCAST) | ON(SWP_REDUCE), false},
    {"sm", ON(SWP_BCAST) | ON(SWP_REDUCE) | ON(SWP_ALLREDUCE) | ON(SWP_BARRIER), false},
    {"xhc", ON(SWP_BCAST) | ON(SWP_REDUCE) | ON(SWP_ALLREDUCE) | ON(SWP_BARRIER), false},
    {"acoll",
     ON(SWP_BCAST) | ON(SWP_GATHER) | ON(SWP_REDUCE) | ON(SWP_ALLREDUCE) | ON(SWP_ALLGATHER) |
         ON(SWP_ALLTOALL) | ON(SWP_BARRIER),
     false},
    {"ucc", ~0U, false},
};

enum {
  COMPONENTS = sizeof components / sizeof components[0],
  FIRST = 99 /* before all but what users put at 100 */
};

struct name {
  char text[ALGORITHM_BYTES];
  int value;             /* of the operation's variable */
  const char *component; /* that runs it; NULL: there are none */
};

/* The library's algorithms for one operation. */
struct variable {
  bool known;
  struct array names; /* kept for ever; empty: none can be set */
  const struct family *family;
  int index;
};

static struct variable variables[OPERATIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct name *name_at(const struct variable *variable, int index) {
  return index >= 0 && index < variable->names.count ? (const struct name *)variable->names.items + index
                                                     : NULL;
}

/* A longer name than that of a parameter no spec can have. */
static void add_name(struct variable *variable, const char *text, size_t length, int value,
                     const char *component) {
  if (length == 0 || length >= ALGORITHM_BYTES)
    return;
  struct name *name = swp_array_add(&variable->names, sizeof *name, NULL);
  if (name == NULL)
    return;
  memcpy(name->text, text, length);
  name->value = value;
  name->component = component;
}

/* Value 0 stands for the library's own choice. */
static void read_enumeration(struct variable *variable, MPI_T_enum enumeration) {
  int items, value;
  char text[ALGORITHM_BYTES];
  int length = (int)sizeof text;
  if (MPI_T_enum_get_info(enumeration, &items, text, &length) != MPI_SUCCESS)
    return;
  for (int i = 0; i < items; i++) {
    length = (int)sizeof text;
    if (MPI_T_enum_get_item(enumeration, i, &value, text, &length) == MPI_SUCCESS && value != 0)
      add_name(variable, text, strlen(text), value, variable->family->component);
  }
}

static bool in_name(char c) {
  return islower((unsigned char)c) || isdigit((unsigned char)c) || c == '_';
}

/*
 * MPICH names the values, in order, only in the description: "NAME - what it is", one per line. Version 4.0
 * has lost the ends of the lines, so a name may directly follow the last word of the line before.
 */
static void read_description(struct variable *variable, const char *text) {
  static const char *const ends[] = {"algorithm", "ree", "llgather", "ing"}; /* small letters of the words */
  int value = 0;
  for (const char *dash = strstr(text, " - "); dash != NULL; dash = strstr(dash + 1, " - ")) {
    const char *end = dash, *begin;
    while (end > text && end[-1] == ' ')
      end--;
    for (begin = end; begin > text && in_name(begin[-1]);)
      begin--;
    bool in_word = begin > text && isupper((unsigned char)begin[-1]);
    for (int i = 0; i < (int)(sizeof ends / sizeof ends[0]); i++) {
      size_t length = strlen(ends[i]);
      if ((in_word || i == 0) && (size_t)(end - begin) > length && memcmp(begin, ends[i], length) == 0) {
        begin += length;
        break;
      }
    }
    if (value > 0)
      add_name(variable, begin, (size_t)(end - begin), value, NULL);
    value++;
  }
}

static int find(const char *name, int *verbosity_scope, MPI_T_enum *enumeration, char *text, int *index) {
  char found[TEXT_BYTES];
  int name_length = (int)sizeof found, text_length = TEXT_BYTES, verbosity, binding;
  MPI_Datatype type;
  int error = MPI_T_cvar_get_index(name, index);
  if (error == MPI_SUCCESS)
    error = MPI_T_cvar_get_info(*index, found, &name_length, &verbosity, &type, enumeration, text,
                                &text_length, &binding, verbosity_scope);
  return error;
}

static bool is_writable(int scope) {
  return scope != MPI_T_SCOPE_CONSTANT && scope != MPI_T_SCOPE_READONLY;
}

static int access_variable(int index, void *value, bool write) {
  MPI_T_cvar_handle handle;
  int count, error = MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
  if (error != MPI_SUCCESS)
    return error;
  error = write ? MPI_T_cvar_write(handle, value) : MPI_T_cvar_read(handle, value);
  MPI_T_cvar_handle_free(&handle);
  return error;
}

/* Whether the family's algorithms can be used: its switch is on, or can be turned on. */
static bool can_enable(const struct family *family) {
  char text[TEXT_BYTES], on = 0;
  int index, scope;
  MPI_T_enum enumeration;
  if (family->enabled_by == NULL)
    return true;
  if (find(family->enabled_by, &scope, &enumeration, text, &index) != MPI_SUCCESS)
    return false;
  return is_writable(scope) || (access_variable(index, &on, false) == MPI_SUCCESS && on);
}

/* The variable of a component's priority; whether there is one that can be written. */
static bool find_priority(const char *component, int *index) {
  char name[VARIABLE_BYTES], text[TEXT_BYTES];
  int scope;
  MPI_T_enum enumeration;
  if (component == NULL)
    return false;
  snprintf(name, sizeof name, OPENMPI_PRIORITY, component);
  return find(name, &scope, &enumeration, text, index) == MPI_SUCCESS && is_writable(scope);
}

static void add_components(struct variable *variable, enum swp_operation operation) {
  for (int i = 0, index; i < COMPONENTS; i++) {
    const char *name = components[i].name;
    if (!components[i].at_start && (components[i].operations & ON(operation)) != 0 &&
        find_priority(name, &index))
      add_name(variable, name, strlen(name), 0, name);
  }
}

static void read_variable(enum swp_operation operation, struct variable *variable) {
  for (int i = 0; i < FAMILIES && variable->names.count == 0; i++) {
    const struct family *family = &families[i];
    char name[VARIABLE_BYTES], text[TEXT_BYTES];
    int scope;
    MPI_T_enum enumeration;
    variable_name(family->format, family->upper, operation, name);
    if (find(name, &scope, &enumeration, text, &variable->index) != MPI_SUCCESS || !is_writable(scope) ||
        !can_enable(family))
      continue;
    variable->family = family;
    if (enumeration != MPI_T_ENUM_NULL)
      read_enumeration(variable, enumeration);
    else
      read_description(variable, text);
    if (family->component != NULL && variable->names.count > 0)
      add_components(variable, operation);
  }
}

int swp_thread_level(void) {
  int initialized = 0, level = MPI_THREAD_MULTIPLE;
  MPI_Initialized(&initialized);
  if (initialized)
    MPI_Query_thread(&level);
  return level;
}

/* The library's names stay what they are, so they are read once. The interface is never finalised: MPICH
   4.0.2 would lose its variables with that, and crash when they are asked for again. It is initialised with
   MPI's thread level, because Open MPI 4 reports the level requested here from then on. */
static const struct variable *known_variable(enum swp_operation operation) {
  struct variable *variable = &variables[operation];
  int provided;
  pthread_mutex_lock(&lock);
  if (!variable->known && MPI_T_init_thread(swp_thread_level(), &provided) == MPI_SUCCESS) {
    read_variable(operation, variable);
    variable->known = true;
  }
  pthread_mutex_unlock(&lock);
  return variable;
}

const char *swp_algorithm_name(enum swp_operation operation, int index) {
  const struct variable *variable = known_variable(operation);
  const struct name *name = name_at(variable, index);
  return name != NULL ? name->text : NULL;
}

static const struct name *find_name(const struct variable *variable, const char *text) {
  const struct name *name;
  for (int i = 0; (name = name_at(variable, i)) != NULL; i++)
    if (strcmp(name->text, text) == 0)
      return name;
  return NULL;
}

bool swp_algorithm_known(enum swp_operation operation, const char *name) {
  return find_name(known_variable(operation), name) != NULL;
}

static int fail(const char *what) {
  return swp_fail(SWP_ERR_MPI, "the MPI library's control variables: %s failed", what);
}

static int add_setting(struct algorithm *algorithm, int index, int value) {
  struct setting *setting = &algorithm->settings[algorithm->nsettings];
  int count;
  setting->value = value;
  if (MPI_T_cvar_handle_alloc(index, NULL, &setting->handle, &count) != MPI_SUCCESS)
    return fail("MPI_T_cvar_handle_alloc");
  algorithm->nsettings++;
  if (MPI_T_cvar_read(setting->handle, &setting->own_value) != MPI_SUCCESS)
    return fail("MPI_T_cvar_read");
  return SWP_SUCCESS;
}

static int prepare_calls(const struct variable *variable, int value, struct algorithm *algorithm) {
  int index, error = add_setting(algorithm, variable->index, value);
  const char *bypassed_by = variable->family->bypassed_by;
  if (error == SWP_SUCCESS && MPI_T_cvar_get_index(bypassed_by, &index) == MPI_SUCCESS)
    error = add_setting(algorithm, index, variable->family->bypass_off);
  return error;
}

union value {
  int number;
  bool flag;
};

/* A variable that is set while a communicator is made. */
struct temporary {
  int index;
  union value value, own;
  bool set;
};

static int set(struct temporary *temporary) {
  if (access_variable(temporary->index, &temporary->own, false) != MPI_SUCCESS)
    return fail("MPI_T_cvar_read");
  temporary->set = access_variable(temporary->index, &temporary->value, true) == MPI_SUCCESS;
  return temporary->set ? SWP_SUCCESS : fail("MPI_T_cvar_write");
}

/* Makes the communicator while the algorithm's component comes first and is told which to run. */
static int prepare_communicator(const struct variable *variable, const struct name *name, MPI_Comm comm,
                                struct algorithm *algorithm) {
  enum { MOST = 3 };
  struct temporary temporaries[MOST];
  int count = 0, error = SWP_SUCCESS, index, scope;
  char text[TEXT_BYTES];
  MPI_T_enum enumeration;
  if (find_priority(name->component, &index))
    temporaries[count++] = (struct temporary){.index = index, .value.number = FIRST};
  if (find(variable->family->enabled_by, &scope, &enumeration, text, &index) == MPI_SUCCESS &&
      is_writable(scope))
    temporaries[count++] = (struct temporary){.index = index, .value.flag = true};
  temporaries[count++] = (struct temporary){.index = variable->index, .value.number = name->value};
  for (int i = 0; i < count && error == SWP_SUCCESS; i++)
    error = set(&temporaries[i]);
  error = swp_agree(comm, error);
  if (error == SWP_SUCCESS) {
    int mpi_error = MPI_Comm_dup(comm, &algorithm->comm);
    algorithm->owns_comm = mpi_error == MPI_SUCCESS;
    error = algorithm->owns_comm ? SWP_SUCCESS : swp_fail_mpi(mpi_error, "MPI_Comm_dup");
  }
  for (int i = 0; i < count; i++)
    if (temporaries[i].set)
      access_variable(temporaries[i].index, &temporaries[i].own, true);
  return error;
}

int swp_algorithm_open(MPI_Comm comm, enum swp_operation operation, const char *name,
                       struct algorithm *algorithm) {
  int error = SWP_SUCCESS;
  *algorithm = (struct algorithm){.comm = comm};
  const struct variable *variable = known_variable(operation);
  const struct name *known = find_name(variable, name);
  if (known == NULL)
    error = swp_fail(SWP_ERR_NOT_APPLICABLE, "vendor: the MPI library has no %s algorithm %s that can be set",
                     swp_shapes[operation].name, name);
  TRY(swp_agree(comm, error));
  if (variable->family->by_call)
    error = prepare_calls(variable, known->value, algorithm);
  else
    error = prepare_communicator(variable, known, comm, algorithm);
  error = swp_agree(comm, error);
done:
  return error;
}

void swp_algorithm_begin(const struct algorithm *algorithm) {
  for (int i = 0; i < algorithm->nsettings; i++) {
    struct setting setting = algorithm->settings[i];
    MPI_T_cvar_write(setting.handle, &setting.value);
  }
}

void swp_algorithm_end(const struct algorithm *algorithm) {
  for (int i = 0; i < algorithm->nsettings; i++) {
    struct setting setting = algorithm->settings[i];
    MPI_T_cvar_write(setting.handle, &setting.own_value);
  }
}

void swp_algorithm_close(struct algorithm *algorithm) {
  for (int i = 0; i < algorithm->nsettings; i++)
    MPI_T_cvar_handle_free(&algorithm->settings[i].handle);
  if (algorithm->owns_comm)
    MPI_Comm_free(&algorithm->comm);
}

/* ---- The environment ---- */

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

#define HAS_PARTS (ON(SWP_BCAST) | ON(SWP_REDUCE) | ON(SWP_ALLREDUCE))

/* A variable of the environment, and the value that makes the library run an algorithm; "": it is not set. */
struct wanted {
  char variable[VARIABLE_BYTES], value[ALGORITHM_BYTES];
};

/* Whether the text begins with a dash and the part; its value, which is empty otherwise. */
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

/* Whether the text is that of parts of `han`. */
static bool find_parts(enum swp_operation operation, const char *text, struct wanted *wanted) {
  for (int i = 0; i < PARTS; i++) {
    variable_name(han_parts[i].variable, false, operation, wanted[i].variable);
    if (find_part(&han_parts[i], text, wanted[i].value))
      text += 1 + strcspn(text + 1, "-");
  }
  return *text == '\0';
}

/* The number of variables. */
static int find_wanted(const struct library *library, enum swp_operation operation, const char *name,
                       struct wanted wanted[WANTED]) {
  for (int i = 0; library->priority != NULL && i < COMPONENTS; i++) {
    const char *component = components[i].name, *rest = name + strcspn(name, "-");
    bool parted = strcmp(component, "han") == 0 && (HAS_PARTS & ON(operation)) != 0;
    if (strncmp(component, name, (size_t)(rest - name)) == 0 && component[rest - name] == '\0' &&
        (components[i].operations & ON(operation)) != 0 &&
        (parted ? find_parts(operation, rest, wanted + 1) : *rest == '\0')) {
      snprintf(wanted->variable, sizeof wanted->variable, library->priority, component);
      snprintf(wanted->value, sizeof wanted->value, "%d", FIRST);
      return parted ? WANTED : 1;
    }
  }
  variable_name(library->variable, library->upper, operation, wanted->variable);
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
  if (name == NULL || *name == '\0' || strlen(name) >= ALGORITHM_BYTES || operation < SWP_BCAST ||
      swp_operation_name((int)operation) == NULL)
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
