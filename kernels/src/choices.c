/* The methods that a collective plan may use. */
#include "choices.h"

#include "off.h"
#include "remember.h"
#include "select.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for so many rules and what follows them. Bytes at which the first choice changes: two for each. */
static int reserve(struct choices **result, int nrules, int64_t *account) {
  struct choices *choices = *result = swp_allocate(1, sizeof *choices, account);
  if (choices != NULL) {
    choices->current = -1;
    choices->list = swp_allocate((size_t)nrules + 1, sizeof *choices->list, account);
    choices->steps = swp_allocate(2 * ((size_t)nrules + 1), sizeof *choices->steps, account);
  }
  if (choices != NULL && choices->list != NULL && choices->steps != NULL)
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_MEMORY, "no memory for %d rules", nrules);
}

static struct choice *add(struct choices *choices, const struct spec *spec, const struct range *bytes) {
  struct choice *choice = &choices->list[choices->count];
  *choice = (struct choice){.spec = *spec, .bytes = *bytes};
  while (strcmp(choices->list[choice->owner].spec.text, spec->text) != 0)
    choice->owner++;
  choices->count++;
  return choice;
}

static int count_rules(const swp_table *table) {
  return table != NULL ? table->nrules : 0;
}

/* The table may be freed afterwards. */
static void add_rules(struct choices *choices, const swp_table *table, const struct features *features,
                      char path[sizeof table->path]) {
  for (int i = 0; i < count_rules(table); i++) {
    const struct rule *rule = &table->rules[i];
    if (!swp_rule_is_for(rule, features))
      continue;
    struct choice *choice = add(choices, &rule->spec, &rule->ranges[CONDITION_BYTES]);
    choice->table = path;
    choice->line = rule->line;
  }
  snprintf(path, sizeof table->path, "%s", table != NULL ? table->path : "");
}

static int by_bytes(const void *a, const void *b) {
  double x = ((const struct step *)a)->from_bytes, y = ((const struct step *)b)->from_bytes;
  return (x > y) - (x < y);
}

static bool holds(const struct range *range, double bytes) {
  return bytes >= range->low && bytes <= range->high;
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
  qsort(steps, (size_t)n, sizeof *steps, by_bytes);
  for (int i = 0; i < n; i++) {
    int first = 0;
    while (first < choices->count - 1 && !holds(&choices->list[first].bytes, steps[i].from_bytes))
      first++;
    if (kept == 0 || steps[kept - 1].first != first)
      steps[kept++] = (struct step){steps[i].from_bytes, first};
  }
  choices->nsteps = kept;
}

int swp_choices_compile(const struct sources *sources, const struct features *features, int64_t *account,
                        struct choices **result) {
  int error = SWP_SUCCESS;
  struct spec fallback;
  const struct range here = {(double)features->bytes, (double)features->bytes};
  TRY(reserve(result, 1 + count_rules(sources->users) + count_rules(sources->table), account));
  struct choices *choices = *result;
  choices->measured = sources->measured != NULL;
  if (choices->measured)
    add(choices, sources->measured, &here);
  add_rules(choices, sources->users, features, choices->tables[0]);
  add_rules(choices, sources->table, features, choices->tables[1]);
  TRY(swp_spec_parse(features->operation, swp_default_method(features->operation), &fallback));
  add(choices, &fallback, &(struct range){0, INFINITY});
  make_steps(choices);
done:
  return error;
}

/* Of nothing, no method is faster. */
static bool wants_race(const struct swp_plan *plan, const swp_table *users) {
  return (plan->hints.flags & SWP_MEASURE) != 0 && plan->features.total_bytes > 0 &&
         (users == NULL || swp_rule_find(users, &plan->features, NULL, NULL) == NULL);
}

static int find_auto(struct swp_plan *plan) {
  int error = SWP_SUCCESS;
  bool measured = false;
  swp_table *users = NULL, *own = NULL;
  TRY(swp_environment_table(plan->comm, plan->rank, SWP_USER_TABLE, true, &users));
  const bool races = wants_race(plan, users);
  if (races)
    TRY(swp_select_by_race(plan, &measured));
  if (plan->hints.table == NULL)
    TRY(swp_environment_table(plan->comm, plan->rank, "SWITCHPOINT_TABLE", false, &own));
  const struct sources sources = {.measured = measured ? &plan->spec : NULL,
                                  .users = users,
                                  .table = plan->hints.table != NULL ? plan->hints.table : own};
  TRY(swp_agree(plan->comm, swp_choices_compile(&sources, &plan->features, &plan->account, &plan->choices)));
  plan->choices->hurried = races && !measured;
done:
  swp_table_free(&users);
  swp_table_free(&own);
  return error;
}

int swp_choices_find(struct swp_plan *plan, const char *method) {
  int error = SWP_SUCCESS;
  struct spec spec;
  if (method == NULL || strcmp(method, "auto") == 0) {
    TRY(find_auto(plan));
  } else {
    TRY(swp_spec_parse(plan->operation, method, &spec));
    TRY(swp_off_refuse(&spec));
    TRY(swp_agree(plan->comm, reserve(&plan->choices, 0, &plan->account)));
    add(plan->choices, &spec, &(struct range){0, INFINITY});
    plan->choices->by_caller = true;
    make_steps(plan->choices);
  }
done:
  return error;
}

/* The last step that begins at or below so many bytes; the first begins at 0. */
static int first_choice(const struct choices *choices, double bytes) {
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

int swp_choices_search(const struct choices *choices, const struct features *features, int *index) {
  double bytes = (double)features->bytes;
  const char *why = NULL;
  for (int i = first_choice(choices, bytes); i < choices->count; i++) {
    const struct choice *choice = &choices->list[i];
    if (!holds(&choice->bytes, bytes) || choices->list[choice->owner].refused)
      continue;
    why = swp_not_applicable(&choice->spec, features);
    if (why == NULL) {
      *index = i;
      return SWP_SUCCESS;
    }
  }
  return swp_fail(SWP_ERR_NOT_APPLICABLE, "%s: %s", choices->list[choices->count - 1].spec.text, why);
}

/* What methods see. */
static void load(struct swp_plan *plan, int index) {
  const struct choice *choice = &plan->choices->list[index];
  plan->spec = choice->spec;
  plan->method_state = plan->choices->list[choice->owner].state;
  memcpy(plan->layout, plan->choices->list[choice->owner].layout, sizeof plan->layout);
  plan->procedure = &plan->spec.method->procedures[plan->operation];
}

static void unprepare(struct swp_plan *plan, struct choice *choice) {
  if (choice->state != NULL && choice->spec.method->free != NULL)
    choice->spec.method->free(plan);
  swp_release(choice->state);
  choice->state = NULL;
}

static int prepare(struct swp_plan *plan, struct choice *owner) {
  if (owner->prepared || owner->spec.method->plan == NULL)
    return SWP_SUCCESS;
  plan->method_state = NULL;
  int error = swp_agree(plan->comm, owner->spec.method->plan(plan));
  owner->state = plan->method_state;
  memcpy(owner->layout, plan->layout, sizeof owner->layout);
  owner->prepared = error == SWP_SUCCESS;
  if (error != SWP_SUCCESS)
    unprepare(plan, owner);
  return error;
}

int swp_choices_use(struct swp_plan *plan, int index) {
  struct choices *choices = plan->choices;
  if (index == choices->current)
    return SWP_SUCCESS;
  load(plan, index);
  int error = prepare(plan, &choices->list[choices->list[index].owner]);
  if (error == SWP_SUCCESS)
    choices->current = index;
  else if (choices->current >= 0)
    load(plan, choices->current);
  else
    plan->method_state = NULL;
  return error;
}

static void refuse(struct choice *owner) {
  owner->refused = true;
  snprintf(owner->why, sizeof owner->why, "%s", swp_error_message());
}

int swp_choices_take(struct swp_plan *plan, const struct features *features) {
  struct choices *choices = plan->choices;
  int index, error = swp_choices_search(choices, features, &index);
  while (error == SWP_SUCCESS) {
    error = swp_choices_use(plan, index);
    if (error == SWP_SUCCESS || index == choices->count - 1) /* the default, or the caller's */
      break;
    refuse(&choices->list[choices->list[index].owner]);
    error = swp_choices_search(choices, features, &index);
  }
  return error;
}

const struct choice *swp_choices_passed(const struct choices *choices, const struct features *features,
                                        const char **why) {
  int i = first_choice(choices, (double)features->bytes);
  const struct choice *choice = &choices->list[i], *owner = &choices->list[choice->owner];
  *why = owner->refused ? owner->why : swp_not_applicable(&choice->spec, features);
  return *why != NULL ? choice : NULL;
}

static void explain_passed(const struct choice *choice, const char *why, char *text, size_t length) {
  if (choice->table != NULL)
    snprintf(text, length, "; rule %s:%d is passed over: %s: %s", choice->table, choice->line,
             choice->spec.text, why);
  else
    snprintf(text, length, "; %s is passed over: %s", choice->spec.text, why);
}

void swp_choices_explain(const struct swp_plan *plan, char *text, size_t length) {
  const struct choices *choices = plan->choices;
  const struct choice *choice = &choices->list[choices->current];
  const char *hurried = choices->hurried ? "; budget_s is too short to measure" : "", *why;
  const struct choice *passed = swp_choices_passed(choices, &plan->features, &why);
  if (choices->by_caller)
    snprintf(text, length, "caller");
  else if (choices->measured && choices->current == 0)
    snprintf(text, length, "%s", plan->chosen_by);
  else if (choice->table != NULL)
    snprintf(text, length, "rule %s:%d%s", choice->table, choice->line, hurried);
  else if (choices->tables[1][0] != '\0')
    snprintf(text, length, "default: no %srule of %s matches%s", passed != NULL ? "other " : "",
             choices->tables[1], hurried);
  else
    snprintf(text, length, "default: no table%s", hurried);
  if (passed != NULL)
    explain_passed(passed, why, text + strlen(text), length - strlen(text));
}

void swp_choices_release(struct choices *choices) {
  if (choices == NULL)
    return;
  swp_release(choices->list);
  swp_release(choices->steps);
  swp_release(choices);
}

void swp_choices_free(struct swp_plan *plan) {
  struct choices *choices = plan->choices;
  if (choices == NULL)
    return;
  for (int i = 0; i < choices->count; i++) {
    if (choices->list[i].state == NULL)
      continue;
    load(plan, i);
    unprepare(plan, &choices->list[i]);
  }
  plan->method_state = NULL;
  swp_choices_release(choices);
}
