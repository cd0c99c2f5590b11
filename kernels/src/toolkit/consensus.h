/*
 * Nonblocking consensus (Hoefler, Siebert, Lumsdaine, PPoPP'10). By synchronous sends a rank knows when all
 * its messages have been received; it then enters a nonblocking barrier, and receives until that completes.
 */
#ifndef SWP_CONSENSUS_H
#define SWP_CONSENSUS_H

#include "probing.h"

/* barrier=ibarrier|dissemination: the second is our own, for libraries whose MPI_Ibarrier is wrong or slow.
   The values of the parameter, NULL-terminated. */
enum consensus_barrier { BARRIER_MPI, BARRIER_DISSEMINATION };
extern const char *const swp_consensus_barriers[];

/* Tests once per communicator whether MPI_Ibarrier completes before all ranks have called it, as SimGrid's
   does, and sets the plan's features. Collective on plan->comm. Errors: SWP_ERR_MPI. */
int swp_consensus_examine(struct swp_plan *plan);

/* The parameter, the first one of the methods that have it, and why its barrier cannot be used, or NULL. */
#define CONSENSUS_USAGE "barrier=ibarrier|dissemination"
#define CONSENSUS_PARAMETER {.name = "barrier", .type = PARAMETER_CHOICE, .choices = swp_consensus_barriers}
const char *swp_consensus_applicable(const struct spec *spec, const struct features *features);

/* Zeroed; swp_consensus_plan sets what barrier the plan's parameter asks for. */
struct consensus {
  struct probing probing;
  enum consensus_barrier barrier;
  bool entered;
  int distance;            /* of the round under way, of ours */
  MPI_Request requests[2]; /* the barrier's: Ibarrier, or receive and send of the round */
};

/* Sends the messages in the outbox and receives those sent to this rank. Collective. Errors: SWP_ERR_MEMORY,
   after which all ranks have gone through it nevertheless if there was room for the sends; SWP_ERR_MPI. */
int swp_consensus(struct swp_plan *plan, struct consensus *consensus, const struct outbox *outbox,
                  struct inbox *inbox);

void swp_consensus_plan(const struct swp_plan *plan, struct consensus *consensus);

#endif
