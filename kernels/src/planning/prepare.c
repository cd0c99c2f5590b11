#include "prepare.h"

#include <stdio.h>
#include <string.h>

enum { WHY_BYTES = 160 };

/* The state of a method, by the choice that owns it. */
struct prepared {
  bool done;
  void *state; /* the method's */
  char arrangement[ARRANGEMENT_BYTES];
  char why[WHY_BYTES]; /* it could not be prepared */
};

int swp_prepare_begin(struct collective_plan *collective, const struct choices *choices) {
  struct swp_plan *plan = &collective->plan;
  collective->choices = choices;
  collective->match = (struct match){.index = -1, .passed = -1};
  collective->prepared = swp_plan_allocate(plan, choices->count, sizeof *collective->prepared);
  collective->refused = swp_plan_allocate(plan, choices->count, sizeof *collective->refused);
  if (collective->prepared != NULL && collective->refused != NULL)
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_MEMORY, "no memory for %d rules", choices->count);
}

static int owner_of(const struct collective_plan *collective, int index) {
  return collective->choices->list[index].owner;
}

/* Sets the members of the plan that methods see. */
static void load(struct collective_plan *collective, int index) {
  const struct prepared *prepared = &collective->prepared[owner_of(collective, index)];
  struct swp_plan *plan = &collective->plan;
  plan->spec = collective->choices->list[index].spec;
  plan->method_state = prepared->state;
  plan->prepared = prepared->done;
  memcpy(plan->arrangement, prepared->arrangement, sizeof plan->arrangement);
  collective->procedure = &plan->spec.method->procedures[plan->operation];
}

static int prepare(struct collective_plan *collective, struct prepared *prepared) {
  struct swp_plan *plan = &collective->plan;
  if (prepared->done || plan->spec.method->plan == NULL)
    return SWP_SUCCESS;
  const int64_t account = plan->account;
  int error = swp_plan_prepare(plan);
  if (error != SWP_SUCCESS) {
    swp_plan_unprepare(plan);
    plan->account = account;
  }
  prepared->state = plan->method_state;
  prepared->done = plan->prepared;
  memcpy(prepared->arrangement, plan->arrangement, sizeof prepared->arrangement);
  return error;
}

static int use(struct collective_plan *collective, const struct match *match) {
  if (match->index == collective->match.index) {
    collective->match = *match;
    return SWP_SUCCESS;
  }
  load(collective, match->index);
  int error = prepare(collective, &collective->prepared[owner_of(collective, match->index)]);
  if (error == SWP_SUCCESS)
    collective->match = *match;
  else if (collective->match.index >= 0)
    load(collective, collective->match.index);
  return error;
}

static void refuse(struct collective_plan *collective, int owner) {
  struct prepared *prepared = &collective->prepared[owner];
  snprintf(prepared->why, sizeof prepared->why, "%s", swp_error_message());
  collective->refused[owner] = prepared->why;
}

int swp_prepare_match(struct collective_plan *collective, const struct features *features,
                      const struct match *match) {
  struct match next = *match;
  int error = SWP_SUCCESS;
  if (collective->refused[owner_of(collective, next.index)] != NULL)
    return swp_prepare_choice(collective, features);
  while (error == SWP_SUCCESS) {
    error = use(collective, &next);
    if (error == SWP_SUCCESS ||
        next.index == collective->choices->count - 1) /* the default, or the caller's */
      break;
    refuse(collective, owner_of(collective, next.index));
    error = swp_choices_first(collective->choices, features, collective->refused, &next);
  }
  return error;
}

int swp_prepare_choice(struct collective_plan *collective, const struct features *features) {
  struct match match;
  int error = swp_choices_first(collective->choices, features, collective->refused, &match);
  return error == SWP_SUCCESS ? swp_prepare_match(collective, features, &match) : error;
}

void swp_prepare_end(struct collective_plan *collective) {
  for (int i = 0; collective->prepared != NULL && i < collective->choices->count; i++)
    if (collective->prepared[i].done) {
      load(collective, i);
      swp_plan_unprepare(&collective->plan);
    }
  collective->plan.prepared = false;
  swp_release(collective->prepared);
  swp_release(collective->refused);
  swp_choices_release(collective->own_choices);
}
