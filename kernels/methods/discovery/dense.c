/*
 * dense: every rank sends one message to every other, an empty one where it has none, so that all know how
 * many to expect: a single round, without a consensus. O(P) messages a call. It is the one-stage form of a
 * store-and-forward discovery (topology T_1 of Selvitopi and Aykanat, SC'19).
 */
#include "formulas.h"
#include "inbox.h"
#include "plan.h"

/* The tag shows whether there is a message, as a message may have zero bytes. */
enum { TAG_NOTHING, TAG_MESSAGE };

/* Two communicators take turns: a fast rank's next call must not match a slow rank's wildcard probe. */
enum { TURNS = 2 };

struct state {
  MPI_Comm comms[TURNS]; /* the plan's, and one more */
  int turn;
  bool *sends_to; /* per rank, during a call */
  MPI_Request *requests;
};

static void dense_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_release(state->sends_to);
  swp_release(state->requests);
  if (state->comms[1] != MPI_COMM_NULL)
    MPI_Comm_free(&state->comms[1]);
}

static int dense_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  int error = SWP_SUCCESS;
  if (state != NULL) {
    state->comms[0] = plan->comm;
    state->comms[1] = MPI_COMM_NULL;
    state->sends_to = swp_plan_allocate(plan, plan->procs, sizeof *state->sends_to);
    state->requests = swp_plan_allocate(plan, plan->procs, sizeof *state->requests);
  }
  bool allocated = state != NULL && state->sends_to != NULL && state->requests != NULL;
  TRY(swp_agree(plan->comm, allocated ? SWP_SUCCESS : swp_plan_no_memory(plan)));
  MPI_TRY(MPI_Comm_dup(plan->comm, &state->comms[1])); /* error handler included */
done:
  return error;
}

/* Messages first, as they take longer; then empty ones to all others, beginning with the next rank. */
static int send_all(struct swp_plan *plan, struct state *state, MPI_Comm comm, const struct outbox *outbox,
                    int *count) {
  int error = SWP_SUCCESS;
  for (int i = 0; i < outbox->nsends; i++) {
    int rank = outbox->ranks[i];
    if (rank == plan->rank)
      continue;
    state->sends_to[rank] = true;
    MPI_TRY(MPI_Isend(outbox->data[i], (int)outbox->bytes[i], MPI_BYTE, rank, TAG_MESSAGE, comm,
                      &state->requests[(*count)++]));
  }
  for (int distance = 1; distance < plan->procs; distance++) {
    int rank = (plan->rank + distance) % plan->procs;
    if (!state->sends_to[rank])
      MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, rank, TAG_NOTHING, comm, &state->requests[(*count)++]));
  }
  for (int i = 0; i < outbox->nsends; i++)
    state->sends_to[outbox->ranks[i]] = false;
done:
  return error;
}

static int receive_one(struct swp_plan *plan, MPI_Comm comm, struct inbox *inbox) {
  int error = SWP_SUCCESS, found = 0, bytes;
  MPI_Status status;
  void *data = NULL;
  MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status));
  while (!found) {
    swp_plan_relax(plan);
    MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status));
  }
  MPI_TRY(MPI_Get_count(&status, MPI_BYTE, &bytes));
  if (status.MPI_TAG == TAG_MESSAGE) {
    data = swp_inbox_add(inbox, status.MPI_SOURCE, bytes);
    if (data == NULL)
      return swp_fail(SWP_ERR_MEMORY, "dense: no memory for %d bytes from rank %d", bytes, status.MPI_SOURCE);
  }
  MPI_TRY(MPI_Recv(data, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE));
done:
  return error;
}

static int dense_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  MPI_Comm comm = state->comms[state->turn];
  int error = SWP_SUCCESS, count = 0;
  bool done;
  TRY(send_all(plan, state, comm, outbox, &count));
  for (int received = 1; received < plan->procs; received++)
    TRY(receive_one(plan, comm, inbox));
  TRY(swp_progress(plan, count, state->requests, true, &done));
  state->turn = (state->turn + 1) % TURNS;
done:
  return error;
}

static int dense_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  const double each = census.small->step_s + census.small->receive_s;
  const int64_t degree = census.degree > 0 ? census.degree : 0, empty = census.procs - 1 - degree;
  if (degree > 0)
    *seconds = swp_probed_s(plan, estimate->model) + (double)empty * each;
  else
    *seconds = empty > 0 ? census.small->alpha_s + (double)(empty - 1) * each : 0;
  return SWP_SUCCESS;
}

const struct method swp_discovery_dense = {
    .name = "dense",
    .summary = "one message to every rank, empty ones included; O(P) messages",
    .source = "one-stage store and forward; topology T_1 of Selvitopi, Aykanat, SC'19",
    .plan = dense_plan,
    .free = dense_free,
    .execute = dense_execute,
    .estimate = dense_estimate,
};
