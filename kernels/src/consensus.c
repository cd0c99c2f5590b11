/* Nonblocking consensus (Hoefler, Siebert, Lumsdaine, PPoPP'10). */
#include "consensus.h"

const char *const swp_consensus_barriers[] = {
    [BARRIER_MPI] = "ibarrier", [BARRIER_DISSEMINATION] = "dissemination", NULL};

enum consensus_barrier swp_consensus_barrier(const struct argument *argument) {
  return SWP_SIMULATED ? BARRIER_DISSEMINATION : (enum consensus_barrier)argument->value;
}

const char *swp_consensus_applicable(const struct argument *argument) {
  const bool wrong = SWP_SIMULATED && argument->given && argument->value == BARRIER_MPI;
  return wrong ? "SimGrid's MPI_Ibarrier waits for rank 0 only" : NULL;
}

/* In the round of distance d, rank r hears from r − d and tells r + d. */
static int start_round(struct swp_plan *plan, struct consensus *consensus) {
  int procs = plan->procs, error = SWP_SUCCESS;
  int to = (plan->rank + consensus->distance) % procs,
      from = (plan->rank - consensus->distance + procs) % procs;
  MPI_TRY(MPI_Irecv(NULL, 0, MPI_BYTE, from, CONTROL_TAG, plan->comm, &consensus->requests[0]));
  MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, to, CONTROL_TAG, plan->comm, &consensus->requests[1]));
done:
  return error;
}

static int enter_barrier(struct swp_plan *plan, struct consensus *consensus) {
  int error = SWP_SUCCESS;
  consensus->entered = true;
  consensus->requests[0] = consensus->requests[1] = MPI_REQUEST_NULL;
  consensus->distance = 1;
  if (consensus->barrier == BARRIER_MPI)
    MPI_TRY(MPI_Ibarrier(plan->comm, &consensus->requests[0]));
  else if (plan->procs > 1)
    TRY(start_round(plan, consensus));
done:
  return error;
}

static int test_barrier(struct swp_plan *plan, struct consensus *consensus, bool *complete) {
  int error = SWP_SUCCESS;
  for (;;) {
    TRY(swp_progress(plan, 2, consensus->requests, false, complete));
    if (!*complete || consensus->barrier == BARRIER_MPI || 2 * (int64_t)consensus->distance >= plan->procs)
      break;
    consensus->distance *= 2;
    TRY(start_round(plan, consensus));
  }
done:
  return error;
}

int swp_consensus(struct swp_plan *plan, struct consensus *consensus, const struct outbox *outbox,
                  struct inbox *inbox) {
  int error = SWP_SUCCESS;
  bool received, sent, complete = false;
  consensus->entered = false;
  TRY(swp_probing_send(plan, &consensus->probing, outbox, true));
  while (!complete) {
    TRY(swp_probing_receive(plan, &consensus->probing, inbox, false, &received));
    if (received)
      continue;
    if (consensus->entered) {
      TRY(test_barrier(plan, consensus, &complete));
    } else {
      TRY(swp_progress(plan, consensus->probing.count, consensus->probing.requests, false, &sent));
      if (sent)
        TRY(enter_barrier(plan, consensus));
    }
    if (!complete)
      swp_plan_relax(plan);
  }
  TRY(swp_probing_finish(plan, &consensus->probing, inbox, 0));
done:
  return error;
}

void swp_consensus_free(struct consensus *consensus) {
  swp_probing_free(&consensus->probing);
}
