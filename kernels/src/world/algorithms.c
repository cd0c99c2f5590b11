/* Algorithms of the MPI library, by its control variables. */
#include "algorithms.h"

#include "allocate.h"
#include "error.h"
#include "variables.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 16384 };

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

/* Returns whether the family's algorithms can be used: its switch is on, or can be turned on. */
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
  int index;
  for (const struct component *its = swp_components; its->name != NULL; its++)
    if (!its->at_start && (its->operations & SWP_BIT(operation)) != 0 && find_priority(its->name, &index))
      add_name(variable, its->name, strlen(its->name), 0, its->name);
}

static void read_variable(enum swp_operation operation, struct variable *variable) {
  for (int i = 0; i < FAMILIES && variable->names.count == 0; i++) {
    const struct family *family = &families[i];
    char name[VARIABLE_BYTES], text[TEXT_BYTES];
    int scope;
    MPI_T_enum enumeration;
    swp_variable_name(family->format, family->upper, operation, name);
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
    temporaries[count++] = (struct temporary){.index = index, .value.number = FIRST_PRIORITY};
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
