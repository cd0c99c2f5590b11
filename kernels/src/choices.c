/* The methods that a collective plan may use. */
#include "choices.h"

#include "select.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for so many rules and what follows them. Bytes at which the first choice changes: two for each. */
static int reserve(struct swp_plan *plan, int nrules) {
  struct choices *choices = plan->choices = swp_plan_allocate(plan, 1, sizeof *choices);
  if (choices == NULL)
    return swp_plan_no_memory(plan);
  choices->current = -1;
  choices->list = swp_plan_allocate(plan, nrules + 1, sizeof *choices->list);
  choices->steps = swp_plan_allocate(plan, 2 * (nrules + 1), sizeof *choices->steps);
  return choices->list != NULL && choices->steps != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

static void add(struct choices *choices, const struct spec *spec, const struct range *bytes, int line) {
  struct choice *choice = &choices->list[choices->count];
  *choice = (struct choice){.spec = *spec, .bytes = *bytes, .line = line};
  while (strcmp(choices->list[choice->owner].spec.text, spec->text) != 0)
    choice->owner++;
  choices->count++;
}

static void add_rules(struct swp_plan *plan, const swp_table *table) {
  for (int i = 0; i < table->nrules; i++) {
    const struct rule *rule = &table->rules[i];
    if (swp_rule_is_for(rule, plan->operation, &plan->features))
      add(plan->choices, &rule->spec, &rule->ranges[CONDITION_BYTES], rule->line);
  }
  snprintf(plan->choices->table, sizeof plan->choices->table, "%s", table->path);
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

static int find_by_table(struct swp_plan *plan) {
  int error = SWP_SUCCESS;
  swp_table *own = NULL;
  const swp_table *table = plan->hints.table;
  struct spec fallback;
  if (table == NULL) {
    TRY(swp_environment_table(plan->comm, plan->rank, &own));
    table = own;
  }
  TRY(swp_agree(plan->comm, reserve(plan, table != NULL ? table->nrules : 0)));
  if (table != NULL)
    add_rules(plan, table);
  TRY(swp_spec_parse(plan->operation, swp_default_method(plan->operation), &fallback));
  add(plan->choices, &fallback, &(struct range){0, INFINITY}, 0);
done:
  swp_table_free(&own);
  return error;
}

int swp_choices_find(struct swp_plan *plan, const char *method) {
  int error = SWP_SUCCESS;
  struct spec spec;
  if (method == NULL || strcmp(method, "auto") == 0) {
    TRY(find_by_table(plan));
  } else {
    TRY(swp_spec_parse(plan->operation, method, &spec));
    TRY(swp_agree(plan->comm, reserve(plan, 0)));
    add(plan->choices, &spec, &(struct range){0, INFINITY}, 0);
    plan->choices->by_caller = true;
  }
  make_steps(plan->choices);
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
    if (!holds(&choice->bytes, bytes))
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

void swp_choices_explain(const struct choices *choices, char *text, size_t length) {
  const struct choice *choice = &choices->list[choices->current];
  if (choices->by_caller)
    snprintf(text, length, "caller");
  else if (choice->line > 0)
    snprintf(text, length, "rule %s:%d", choices->table, choice->line);
  else if (choices->table[0] != '\0')
    snprintf(text, length, "default: no rule of %s matches", choices->table);
  else
    snprintf(text, length, "default: no table");
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
  swp_release(choices->list);
  swp_release(choices->steps);
  swp_release(choices);
}
