/* Selecting without a plan: a table's rules for one collective on ranks of a known layout. */
#include "choices.h"
#include "collective.h"

/* Choices change between the default and others at some bytes: first from the default, then back, and so on.
 */
struct swp_selector {
  int nchanges;
  int64_t *changes;
  struct choices *choices;
  struct features features; /* what is the same for all calls */
};

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
    return swp_fail(SWP_ERR_ARGUMENT, "swp_selector_create: the place for the selector is NULL");
  *selector = NULL;
  if (layout == NULL || layout->procs < 1 || !swp_is_collective(operation) || (int)operation >= OPERATIONS)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_selector_create: no layout, or operation %d is no collective",
                    (int)operation);
  struct swp_selector *made = swp_allocate(1, sizeof *made, NULL);
  if (made == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory for a selector");
  made->features = layout_features(operation, layout);
  TRY(swp_choices_compile(&(struct sources){.table = table}, &made->features, NULL, &made->choices));
  TRY(find_changes(made));
  if (made->nchanges == 0)
    goto done;
  *selector = made;
  return SWP_SUCCESS;
done:
  swp_selector_free(&made);
  return error;
}

HOT int swp_selector_asks(const swp_selector *selector, int64_t bytes) {
  int passed = 0, behind = selector->nchanges;
  while (passed < behind) { /* as many changes are at or below so many bytes */
    int middle = (passed + behind) / 2;
    if (selector->changes[middle] <= bytes)
      passed = middle + 1;
    else
      behind = middle;
  }
  return passed % 2;
}

/* What methods are asked about. False: MPI does not know the operation. */
static bool read_facts(const swp_selector *selector, const struct swp_facts *facts,
                       struct features *features) {
  *features = selector->features;
  features->bytes = facts->bytes;
  features->total_bytes = facts->total_bytes;
  features->most_bytes = facts->most_bytes;
  features->root = facts->root;
  return swp_collective_read_op(facts->op, features) == SWP_SUCCESS;
}

const char *swp_selector_find(const swp_selector *selector, const struct swp_facts *facts) {
  const struct choices *choices = selector->choices;
  struct features features;
  int index;
  if (!read_facts(selector, facts, &features))
    return NULL;
  if (swp_choices_search(choices, &features, &index) != SWP_SUCCESS || is_default(choices, index))
    return NULL;
  return choices->list[choices->list[index].owner].spec.text;
}

const char *swp_selector_passed(const swp_selector *selector, const struct swp_facts *facts,
                                const char **why) {
  struct features features;
  if (!read_facts(selector, facts, &features))
    return NULL;
  const struct choice *passed = swp_choices_passed(selector->choices, &features, why);
  return passed != NULL ? passed->spec.text : NULL;
}

void swp_selector_free(swp_selector **selector) {
  if (selector == NULL || *selector == NULL)
    return;
  swp_choices_release((*selector)->choices);
  swp_release((*selector)->changes);
  swp_release(*selector);
  *selector = NULL;
}
