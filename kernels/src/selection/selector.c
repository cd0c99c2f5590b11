/* Selecting without a plan: a table's rules for one collective on ranks of a known layout. */
#include "selector.h"

#include "collective.h"

static struct features layout_features(enum swp_operation operation, const struct swp_layout *layout) {
  return (struct features){.operation = operation,
                           .procs = layout->procs,
                           .nodes = layout->nodes,
                           .ppn = layout->ppn,
                           .shared_memory = layout->nodes == 1,
                           .alone = layout->alone != 0,
                           .mmax = -1,
                           .mavg = -1};
}

/* The choice is the default by itself, or a rule for it. */
static bool is_default(const struct choices *choices, int index) {
  return choices->list[index].owner == choices->list[choices->count - 1].owner;
}

/* The method as struct swp_choice has it: NULL for the default. */
static const char *method_of(const struct choices *choices, int index) {
  return is_default(choices, index) ? NULL : choices->list[index].spec.text;
}

/* Returns whether a rule is unusable: calls are then left to "vendor", and swp_selector_passed says why. */
static bool is_any_unusable(const struct choices *choices) {
  for (int i = 0; i < choices->count; i++)
    if (choices->list[i].unusable != NULL)
      return true;
  return false;
}

/* The first step begins at 0 bytes, with the default or not. */
static int find_changes(struct swp_selector *selector) {
  const struct choices *choices = selector->choices;
  bool was_default = true;
  selector->changes = swp_allocate((size_t)choices->nsteps, sizeof *selector->changes, NULL);
  if (selector->changes == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory for a selector");
  for (int i = 0; i < choices->nsteps; i++)
    if (is_default(choices, choices->steps[i].first) != was_default) {
      selector->changes[selector->nchanges++] = (int64_t)choices->steps[i].from_bytes;
      was_default = !was_default;
    }
  return SWP_SUCCESS;
}

int swp_selector_create(const swp_table *table, enum swp_operation operation, const struct swp_layout *layout,
                        swp_selector **selector) {
  int error = SWP_SUCCESS;
  if (selector == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_selector_create: the pointer to the selector is NULL");
  *selector = NULL;
  if (!swp_is_collective(operation))
    return swp_fail(SWP_ERR_ARGUMENT, "swp_selector_create: operation %d is not a collective",
                    (int)operation);
  if (layout == NULL || layout->procs < 1 || layout->nodes < 1 || layout->ppn < 1)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "swp_selector_create: layout is NULL, or its procs, nodes or ppn is below 1");
  struct swp_selector *made = swp_allocate(1, sizeof *made, NULL);
  if (made == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory for a selector");
  made->table = table;
  made->features = layout_features(operation, layout);
  TRY(swp_choices_compile(&(struct sources){.table = table}, &made->features, NULL, &made->choices));
  TRY(find_changes(made));
  if (made->nchanges == 0 && !is_any_unusable(made->choices))
    goto done;
  *selector = made;
  return SWP_SUCCESS;
done:
  swp_selector_free(&made);
  return error;
}

int swp_selector_changes(const swp_selector *selector, const int64_t **bytes) {
  *bytes = selector->changes;
  return selector->nchanges;
}

int swp_selector_asks(const swp_selector *selector, int64_t bytes) {
  int passed = 0;
  while (passed < selector->nchanges && selector->changes[passed] <= bytes)
    passed++;
  return passed % 2;
}

/* Sets the features that methods are asked about. False: MPI does not know the operation. */
static bool read_facts(const swp_selector *selector, const struct swp_facts *facts,
                       struct features *features) {
  *features = selector->features;
  features->bytes = facts->bytes;
  features->total_bytes = facts->total_bytes;
  features->most_bytes = facts->most_bytes;
  features->root = facts->root;
  return swp_read_op(facts->op, features) == SWP_SUCCESS;
}

void swp_selector_choose(const swp_selector *selector, const struct swp_facts *facts,
                         struct swp_choice *choice) {
  const struct choices *choices = selector->choices;
  struct features features;
  struct match match = {.passed = -1};
  bool found = read_facts(selector, facts, &features) &&
               swp_choices_first(choices, &features, NULL, &match) == SWP_SUCCESS;
  *choice = (struct swp_choice){.index = found ? match.index : -1, .passed_index = match.passed};
  if (found)
    choice->method = method_of(choices, match.index);
  if (match.passed >= 0) {
    choice->passed = choices->list[match.passed].spec.text;
    choice->why = match.why;
  }
}

const char *swp_selector_find(const swp_selector *selector, const struct swp_facts *facts) {
  struct swp_choice choice;
  swp_selector_choose(selector, facts, &choice);
  return choice.method;
}

const char *swp_selector_passed(const swp_selector *selector, const struct swp_facts *facts,
                                const char **why) {
  struct swp_choice choice;
  swp_selector_choose(selector, facts, &choice);
  *why = choice.why;
  return choice.passed;
}

bool swp_choice_match(const struct choices *choices, const struct swp_choice *choice, struct match *match) {
  if (choice == NULL || choice->index < 0 || choice->index >= choices->count ||
      choice->passed_index >= choices->count || choice->method != method_of(choices, choice->index))
    return false;
  *match = (struct match){choice->index, choice->passed_index, choice->why};
  return true;
}

void swp_selector_free(swp_selector **selector) {
  if (selector == NULL || *selector == NULL)
    return;
  swp_choices_release((*selector)->choices);
  swp_release((*selector)->changes);
  swp_release(*selector);
  *selector = NULL;
}
