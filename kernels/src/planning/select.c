#include "select.h"

#include "estimate.h"
#include "off.h"
#include "race.h"
#include "user_table.h"

#include <stdio.h>
#include <string.h>

static int reserve(const struct choices *choices, const char ***refused) {
  *refused = swp_allocate((size_t)choices->count, sizeof **refused, NULL);
  return *refused != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for %d rules", choices->count);
}

/* The first choice; *source says where it comes from. Agreed. */
static int first_choice(struct swp_plan *plan, const struct sources *sources, struct spec *spec,
                        enum source *source) {
  struct choices *choices = NULL;
  const char **refused = NULL;
  struct match match;
  int error = swp_choices_compile(sources, &plan->features, NULL, &choices);
  if (error == SWP_SUCCESS)
    error = reserve(choices, &refused);
  TRY(swp_agree(plan->comm, error));
  TRY(swp_choices_agree(plan->comm, choices, plan->operation, refused));
  TRY(swp_choices_first(choices, &plan->features, refused, &match));
  *spec = choices->list[match.index].spec;
  *source = choices->list[match.index].source;
  swp_choices_explain(choices, &match, plan->chosen_by, sizeof plan->chosen_by);
done:
  swp_choices_release(choices);
  swp_release(refused);
  return error;
}

int swp_select_first(struct swp_plan *plan, const struct sources *sources, struct spec *spec) {
  struct sources all = *sources;
  struct spec estimated;
  char evidence[EVIDENCE_BYTES];
  enum source source;
  bool found = false;
  int error = first_choice(plan, sources, spec, &source);
  if (error != SWP_SUCCESS || source != FROM_DEFAULT || sources->table == NULL)
    return error;
  TRY(swp_estimate_method(plan, sources->table, &estimated, evidence, &found));
  if (!found)
    return SWP_SUCCESS;
  all.estimated = &estimated;
  all.evidence = evidence;
  TRY(first_choice(plan, &all, spec, &source));
done:
  return error;
}

/* No method is faster where nothing is sent. */
static int wants_race(struct swp_plan *plan, const swp_table *users, bool *wanted) {
  struct spec spec;
  enum source source = FROM_DEFAULT;
  const bool is_empty = swp_is_collective(plan->operation) && plan->features.total_bytes == 0;
  *wanted = (plan->hints.flags & SWP_MEASURE) != 0 && !is_empty;
  if (!*wanted || users == NULL)
    return SWP_SUCCESS;
  int error = first_choice(plan, &(struct sources){.users = users}, &spec, &source);
  *wanted = source != FROM_RULE;
  return error;
}

/* Races, and appends the result to the user's table. *found is false when the budget was too short. */
static int race(struct swp_plan *plan, struct selection *selection, bool *found) {
  int error = SWP_SUCCESS;
  bool remembers;
  struct outcome outcome = {0};
  *found = false;
  TRY(swp_remember_possible(plan, &remembers));
  TRY(swp_race(plan, &outcome));
  *found = outcome.decided;
  if (!*found)
    goto done;
  selection->found = *swp_outcome_for(&outcome, plan->hints.executions);
  snprintf(selection->evidence, sizeof selection->evidence, "%s", outcome.evidence);
  if (remembers)
    TRY(swp_remember(plan, &outcome));
done:
  swp_outcome_release(&outcome);
  return error;
}

static int select_auto(struct swp_plan *plan, struct selection *selection) {
  struct sources *sources = &selection->sources;
  int error = SWP_SUCCESS;
  bool races, measured = false;
  TRY(swp_table_named(plan->comm, plan->rank, SWP_USER_TABLE, true, &selection->users));
  TRY(wants_race(plan, selection->users, &races));
  if (races)
    TRY(race(plan, selection, &measured));
  if (plan->hints.table == NULL)
    TRY(swp_table_named(plan->comm, plan->rank, "SWITCHPOINT_TABLE", false, &selection->own));
  sources->users = selection->users;
  sources->table = plan->hints.table != NULL ? plan->hints.table : selection->own;
  sources->hurried = races && !measured;
  if (measured) {
    sources->measured = &selection->found;
    sources->evidence = selection->evidence;
  }
done:
  return error;
}

int swp_select(struct swp_plan *plan, const char *method, struct selection *selection) {
  *selection = (struct selection){.users = NULL};
  if (method == NULL || strcmp(method, "auto") == 0)
    return select_auto(plan, selection);
  int error = swp_spec_parse(plan->operation, method, &selection->found);
  if (error == SWP_SUCCESS)
    error = swp_off_refuse(&selection->found);
  selection->sources.caller = &selection->found;
  return error;
}

void swp_select_end(struct selection *selection) {
  swp_table_free(&selection->users);
  swp_table_free(&selection->own);
}
