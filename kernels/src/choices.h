/*
 * The methods that a collective plan may use: that of a race for the very bytes of the race, the rules of the
 * user's table and of another for its operation and layout by priority, and the default behind them; or the
 * caller's method alone. Choosing is a binary search, without communication.
 */
#ifndef SWP_CHOICES_H
#define SWP_CHOICES_H

#include "plan.h"
#include "table.h"

enum { WHY_BYTES = 160 };

struct choice {
  struct spec spec;
  struct range bytes;
  const char *table; /* of the rule: its path; NULL: it is none */
  int line;
  int owner; /* the first choice with this spec, which has what follows for all of them */
  bool prepared;
  bool refused;        /* it could not be prepared */
  char why[WHY_BYTES]; /* then */
  void *state;         /* of the method */
  char layout[LAYOUT_BYTES];
};

/* From so many bytes on, the first choice that may apply. */
struct step {
  double from_bytes;
  int first;
};

struct choices {
  int count, nsteps;
  int current; /* -1 before the first */
  struct choice *list;
  struct step *steps;
  char tables[2][192]; /* paths: of the user's table, and of the other; "" without one */
  bool by_caller;
  bool measured; /* the first choice is that of a race, which plan->chosen_by tells about */
  bool hurried;  /* a race was wanted, and its budget too short */
};

/* Where choices come from, by priority; each may be NULL. */
struct sources {
  const struct spec *measured; /* for the bytes of the features */
  const swp_table *users, *table;
};

/* What the sources have for the features' operation, layout and executions, and the default. Local.
   swp_choices_release is due in any case. Errors: SWP_ERR_MEMORY. */
int swp_choices_compile(const struct sources *sources, const struct features *features, int64_t *account,
                        struct choices **choices);

/* Of which no method has prepared anything. NULL is allowed. */
void swp_choices_release(struct choices *choices);

/* Finds the choices for plan->operation on plan->features. Collective; hints and method as planned. Errors,
   agreed: SWP_ERR_METHOD, _TABLE, _MEMORY, _MPI. */
int swp_choices_find(struct swp_plan *plan, const char *method);

/* The choice for these features. Errors, the same on every rank: SWP_ERR_NOT_APPLICABLE. */
int swp_choices_search(const struct choices *choices, const struct features *features, int *index);

/* Makes it the plan's method. Collective when it has something to prepare and did not yet. On an error,
   agreed, the method stays as it was. */
int swp_choices_use(struct swp_plan *plan, int index);

/* Searches and uses; a selected method that cannot be prepared is passed over from then on. Errors of both.
 */
int swp_choices_take(struct swp_plan *plan, const struct features *features);

/* The choice whose bytes hold first for these features, where its method is passed over, and why; NULL where
   it is chosen. */
const struct choice *swp_choices_passed(const struct choices *choices, const struct features *features,
                                        const char **why);

/* What the current choice was made by, for people, and which rule was passed over. `length` is at least 1. */
void swp_choices_explain(const struct swp_plan *plan, char *text, size_t length);

/* Frees what the methods prepared, too. */
void swp_choices_free(struct swp_plan *plan);

#endif
