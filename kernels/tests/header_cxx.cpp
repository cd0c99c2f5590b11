// The public header in C++: it compiles on its own, and what it declares links.
#include "switchpoint.h"

int main() {
  swp_hints hints = SWP_HINTS_DEFAULT;
  swp_exchange problem = {};
  swp_plan *plan = nullptr;
  return hints.degree == -1 && problem.nsends == 0 && swp_plan_free(&plan) == SWP_SUCCESS ? 0 : 1;
}
