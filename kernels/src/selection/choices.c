#include "choices.h"

#include "order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct range ANY = {0, INFINITY};

/* Room for this many choices. Bytes at which the first one changes: two for each. */
static int reserve(struct choices **result, int most, int64_t *account) {
  struct choices *choices = *result = swp_allocate(1, sizeof *choices, account);
  if (choices != NULL) {
    choices->list = swp_allocate((size_t)most, sizeof *choices->list, account);
    choices->steps = swp_allocate(2 * (size_t)most, sizeof *choices->steps, account);
  }
  if (choices != NULL && choices->list != NULL && choices->steps != NULL)
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_MEMORY, "no memory for %d rules", most);
}

static struct choice *add(struct choices *choices, enum source source, const struct spec *spec) {
  struct choice *choice = &choices->list[choices->count++];
  *choice = (struct choice){.spec = *spec, .bytes = ANY, .source = source};
  while (strcmp(choices->list[choice->owner].spec.text, spec->text) != 0)
    choice->owner++;
  return choice;
}

/* An unknown value (negative) is only within an unbounded range. */
static bool within(const struct range *range, double value) {
  return value >= range->low && value <= range->high ? true : range->low <= 0 && isinf(range->high);
}

/* Checks all conditions but that on bytes. An unknown number of executions is assumed to be large. */
static bool is_for(const struct rule *rule, const struct features *features) {
  double executions = features->executions > 0 ? (double)features->executions : INFINITY;
  return rule->operation == features->operation && within(&rule->ranges[CONDITION_NODES], features->nodes) &&
         within(&rule->ranges[CONDITION_PPN], features->ppn) &&
         within(&rule->ranges[CONDITION_MMAX], (double)features->mmax) &&
         within(&rule->ranges[CONDITION_MAVG], features->mavg) &&
         within(&rule->ranges[CONDITION_EXECUTIONS], executions);
}

static int count_rules(const swp_table *table) {
  return table != NULL ? table->nrules : 0;
}

static void add_rules(struct choices *choices, const swp_table *table, const struct features *features,
                      char path[sizeof table->path]) {
  for (int i = 0; i < count_rules(table); i++) {
    const struct rule *rule = &table->rules[i];
    if (!is_for(rule, features))
      continue;
    struct choice *choice = add(choices, FROM_RULE, &rule->spec);
    choice->bytes = rule->ranges[CONDITION_BYTES];
    choice->table = path;
    choice->line = rule->line;
    choice->unusable = rule->unusable;
  }
  snprintf(path, sizeof table->path, "%s", table != NULL ? table->path : "");
}

/* The first choice changes where a range begins, and behind its end. */
static void make_steps(struct choices *choices) {
  struct step *steps = choices->steps;
  int n = 0, kept = 0;
  for (int i = 0; i < choices->count; i++) {
    const struct range *range = &choices->list[i].bytes;
    steps[n++].from_bytes = range->low;
    if (!isinf(range->high))
      steps[n++].from_bytes = range->high + 1;
  }
  qsort(steps, (size_t)n, sizeof *steps, swp_by_double);
  for (int i = 0; i < n; i++) {
    int first = 0;
    while (first < choices->count - 1 && (choices->list[first].unusable != NULL ||
                                          !within(&choices->list[first].bytes, steps[i].from_bytes)))
      first++;
    if (kept == 0 || steps[kept - 1].first != first)
      steps[kept++] = (struct step){steps[i].from_bytes, first};
  }
  choices->nsteps = kept;
}

static int add_all(struct choices *choices, const struct sources *sources, const struct features *features) {
  const double bytes = (double)features->bytes;
  struct spec fallback;
  int error = swp_spec_parse(features->operation, swp_shapes[features->operation].default_method, &fallback);
  if (error != SWP_SUCCESS)
    return error;
  add_rules(choices, sources->users, features, choices->tables[0]);
  if (sources->measured != NULL)
    add(choices, FROM_RACE, sources->measured)->bytes = (struct range){bytes, bytes};
  add_rules(choices, sources->table, features, choices->tables[1]);
  if (sources->estimated != NULL)
    add(choices, FROM_MODEL, sources->estimated);
  add(choices, FROM_DEFAULT, &fallback);
  return SWP_SUCCESS;
}

int swp_choices_compile(const struct sources *sources, const struct features *features, int64_t *account,
                        struct choices **result) {
  enum { OTHERS = 3 }; /* a race's, a model's, and the default or the caller's */
  int error = SWP_SUCCESS;
  TRY(reserve(result, OTHERS + count_rules(sources->users) + count_rules(sources->table), account));
  if (sources->caller != NULL)
    add(*result, FROM_CALLER, sources->caller);
  else
    TRY(add_all(*result, sources, features));
  (*result)->hurried = sources->hurried;
  if (sources->evidence != NULL)
    snprintf((*result)->evidence, EVIDENCE_BYTES, "%s", sources->evidence);
  make_steps(*result);
done:
  return error;
}

/* Returns whether processes may differ in it. */
static bool may_be_absent(const struct spec *spec) {
  bool given = false;
  for (int i = 0; i < SPEC_PARAMETERS; i++)
    given = given || spec->arguments[i].given;
  return given && spec->method->absent != NULL;
}

int swp_choices_agree(MPI_Comm comm, const struct choices *choices, enum swp_operation operation,
                      const char **refused) {
  enum { AT_ONCE = 64 };
  int indices[AT_ONCE], absent[AT_ONCE], anywhere[AT_ONCE], error = SWP_SUCCESS;
  for (int i = 0; i < choices->count;) {
    int n = 0;
    for (; i < choices->count && n < AT_ONCE; i++)
      if (choices->list[i].owner == i && may_be_absent(&choices->list[i].spec)) {
        indices[n] = i;
        absent[n++] = swp_absent(&choices->list[i].spec, operation) != NULL;
      }
    if (n > 0)
      MPI_TRY(MPI_Allreduce(absent, anywhere, n, MPI_INT, MPI_MAX, comm));
    for (int k = 0; k < n; k++)
      if (anywhere[k] && !absent[k])
        refused[indices[k]] = SWP_WHY_LACKED;
  }
done:
  return error;
}

void swp_choices_release(struct choices *choices) {
  if (choices == NULL)
    return;
  swp_release(choices->list);
  swp_release(choices->steps);
  swp_release(choices);
}

/* The first choice of the last step that begins at or below this many bytes; the first begins at 0. */
static int first_at(const struct choices *choices, double bytes) {
  int low = 0, high = choices->nsteps;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (choices->steps[middle].from_bytes <= bytes)
      low = middle;
    else
      high = middle;
  }
  return choices->steps[low].first;
}

static const char *why_unusable(const struct choice *choice, const struct features *features,
                                const char *const *refused) {
  if (choice->unusable != NULL)
    return choice->unusable;
  if (refused != NULL && refused[choice->owner] != NULL)
    return refused[choice->owner];
  return swp_not_applicable(&choice->spec, features);
}

/* The first choice whose bytes hold, where it cannot be used; -1: it can. */
static int find_passed(const struct choices *choices, const struct features *features,
                       const char *const *refused, const char **why) {
  int i = 0;
  while (!within(&choices->list[i].bytes, (double)features->bytes)) /* as the last one's are */
    i++;
  *why = why_unusable(&choices->list[i], features, refused);
  return *why != NULL ? i : -1;
}

int swp_choices_first(const struct choices *choices, const struct features *features,
                      const char *const *refused, struct match *match) {
  const double bytes = (double)features->bytes;
  const char *why = NULL;
  match->passed = find_passed(choices, features, refused, &match->why);
  for (int i = first_at(choices, bytes); i < choices->count; i++) {
    if (!within(&choices->list[i].bytes, bytes))
      continue;
    why = why_unusable(&choices->list[i], features, refused);
    match->index = i;
    if (why == NULL)
      return SWP_SUCCESS;
  }
  return swp_fail(SWP_ERR_NOT_APPLICABLE, "%s: %s", choices->list[choices->count - 1].spec.text, why);
}

/* Appends to the text as far as there is room. */
#define APPEND(text, length, ...) snprintf((text) + strlen(text), (length) - strlen(text), __VA_ARGS__)

static void explain_passed(const struct choice *choice, const char *why, char *text, size_t length) {
  if (choice->source == FROM_RULE)
    APPEND(text, length, "; rule %s:%d is passed over: %s: %s", choice->table, choice->line,
           choice->spec.text, why);
  else
    APPEND(text, length, "; %s is passed over: %s", choice->spec.text, why);
}

void swp_choices_explain(const struct choices *choices, const struct match *match, char *text,
                         size_t length) {
  const struct choice *choice = &choices->list[match->index];
  const char *table = choices->tables[1][0] != '\0' ? choices->tables[1] : choices->tables[0];
  text[0] = '\0';
  switch (choice->source) {
  case FROM_CALLER:
    APPEND(text, length, "caller");
    break;
  case FROM_RACE:
  case FROM_MODEL:
    APPEND(text, length, "%s", choices->evidence);
    break;
  case FROM_RULE:
    APPEND(text, length, "rule %s:%d", choice->table, choice->line);
    break;
  case FROM_DEFAULT:
    if (table[0] == '\0')
      APPEND(text, length, "default: no table");
    else
      APPEND(text, length, "default: no %srule of %s matches", match->passed >= 0 ? "other " : "", table);
    break;
  }
  if (choices->hurried)
    APPEND(text, length, "; budget_s is too short to measure");
  if (match->passed >= 0)
    explain_passed(&choices->list[match->passed], match->why, text, length);
}
