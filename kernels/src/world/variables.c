/* Names of variables, and the components of Open MPI. */
#include "variables.h"

#include "operations.h"

#include <stdio.h>

void swp_variable_name(const char *format, bool upper, enum swp_operation operation, char *text) {
  char word[VARIABLE_BYTES / 2];
  snprintf(word, sizeof word, "%s", swp_shapes[operation].name);
  for (char *p = word; upper && *p; p++)
    *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p); /* in any locale */
  snprintf(text, VARIABLE_BYTES, format, word);
}

#define BCAST SWP_BIT(SWP_BCAST)
#define GATHER SWP_BIT(SWP_GATHER)
#define SCATTER SWP_BIT(SWP_SCATTER)
#define REDUCE SWP_BIT(SWP_REDUCE)
#define ALLREDUCE SWP_BIT(SWP_ALLREDUCE)
#define ALLGATHER SWP_BIT(SWP_ALLGATHER)
#define ALLTOALL SWP_BIT(SWP_ALLTOALL)
#define BARRIER SWP_BIT(SWP_BARRIER)

/* `han`, which 5 uses by default, only by the environment: with 5.0.11 communicators that were made for it
   crash when they are freed. */
const struct component swp_components[] = {
    {"han", BCAST | GATHER | SCATTER | REDUCE | ALLREDUCE | ALLGATHER, BCAST | REDUCE | ALLREDUCE, true},
    {"adapt", BCAST | REDUCE, 0, false},
    {"sm", BCAST | REDUCE | ALLREDUCE | BARRIER, 0, false},
    {"xhc", BCAST | REDUCE | ALLREDUCE | BARRIER, 0, false},
    {"acoll", BCAST | GATHER | REDUCE | ALLREDUCE | ALLGATHER | ALLTOALL | BARRIER, 0, false},
    {"ucc", ~0U, 0, false},
    {NULL, 0, 0, false},
};
