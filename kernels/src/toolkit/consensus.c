/* Nonblocking consensus (Hoefler, Siebert, Lumsdaine, PPoPP'10). */
#include "consensus.h"

const char *const swp_consensus_barriers[] = {
    [BARRIER_MPI] = "ibarrier", [BARRIER_DISSEMINATION] = "dissemination", NULL};

void swp_consensus_plan(const struct swp_plan *plan, struct consensus *consensus) {
  consensus->barrier = plan->features.early_ibarrier ? BARRIER_DISSEMINATION
                                                     : (enum consensus_barrier)plan->spec.arguments[0].value;
}

const char *swp_consensus_applicable(const struct spec *spec, const struct features *features) {
  const struct argument *barrier = &spec->arguments[0];
  const bool wrong = features->early_ibarrier && barrier->given && barrier->value == BARRIER_MPI;
  return wrong ? "MPI_Ibarrier of this library completes before all ranks have called it" : NULL;
}

/* In the round of distance d of the dissemination barrier, rank r receives from r − d and sends to r + d. */
static int start_round(struct swp_plan *plan, int distance, MPI_Request requests[2]) {
  int procs = plan->procs, error = SWP_SUCCESS;
  int to = (int)(((int64_t)plan->rank + distance) % procs), from = (plan->rank - distance + procs) % procs;
  MPI_TRY(MPI_Irecv(NULL, 0, MPI_BYTE, from, CONTROL_TAG, plan->comm, &requests[0]));
  MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, to, CONTROL_TAG, plan->comm, &requests[1]));
done:
  return error;
}

/* A barrier of messages; meanwhile another makes its progress. */
static int meet(struct swp_plan *plan) {
  int error = SWP_SUCCESS;
  bool complete;
  for (int64_t distance = 1; distance < plan->procs; distance *= 2) {
    MPI_Request requests[2];
    TRY(start_round(plan, (int)distance, requests));
    TRY(swp_progress(plan, 2, requests, true, &complete));
  }
done:
  return error;
}

/* The last rank calls it when all others have, and have seen whether theirs is complete. */
int swp_consensus_examine(struct swp_plan *plan) {
  int error = SWP_SUCCESS, early = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const bool last = plan->rank == plan->procs - 1;
  bool complete;
  if (plan->procs > 1 && plan->topology->ibarrier == IBARRIER_UNKNOWN) {
    if (!last)
      MPI_TRY(MPI_Ibarrier(plan->comm, &request));
    TRY(meet(plan));
    TRY(meet(plan)); /* so that a premature completion has had time to show */
    if (!last)
      MPI_TRY(MPI_Test(&request, &early, MPI_STATUS_IGNORE));
    TRY(meet(plan));
    if (last)
      MPI_TRY(MPI_Ibarrier(plan->comm, &request));
    TRY(swp_progress(plan, 1, &request, true, &complete));
    MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, &early, 1, MPI_INT, MPI_MAX, plan->comm));
    plan->topology->ibarrier = early ? IBARRIER_EARLY : IBARRIER_RIGHT;
  }
  plan->features.early_ibarrier = plan->topology->ibarrier == IBARRIER_EARLY;
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
    TRY(start_round(plan, consensus->distance, consensus->requests));
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
    TRY(start_round(plan, consensus->distance, consensus->requests));
  }
done:
  return error;
}

int swp_consensus(struct swp_plan *plan, struct consensus *consensus, const struct outbox *outbox,
                  struct inbox *inbox) {
  int error = SWP_SUCCESS;
  bool received, sent, complete = false;
  consensus->entered = false;
  TRY(swp_probing_send(plan, &consensus->probing, outbox, ANY_BYTES, true));
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
