/* A selector, and the parts that plans use. */
#ifndef SWP_SELECTOR_H
#define SWP_SELECTOR_H

#include "choices.h"

/* Choices change between the default and others at some bytes: first from the default, then back, and so on.
 */
struct swp_selector {
  const swp_table *table;
  int nchanges;
  int64_t *changes;
  struct choices *choices;
  struct features features; /* what is the same for all calls */
};

/* Finds the caller's choice among the selector's; false: it is none of them. */
bool swp_choice_match(const struct choices *choices, const struct swp_choice *choice, struct match *match);

#endif
