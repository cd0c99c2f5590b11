/* Store-and-forward: the schedule that planning makes and execution follows. */
#ifndef SWP_STFW_H
#define SWP_STFW_H

#include "grid.h"
#include "schedule.h"

struct stfw {
  struct grid grid;
  struct schedule schedule; /* a stage a dimension */
};

/* Routes every message of the problem and fills the schedule. Collective; errors are agreed but for those of
   the last stage. */
int swp_stfw_schedule(struct swp_plan *plan, struct stfw *stfw);

#endif
