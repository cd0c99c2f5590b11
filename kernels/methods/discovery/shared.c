/*
 * shared: for ranks of one node. Each rank owns a bulletin in memory that all share, where it writes the size
 * of its message to each rank, and small messages themselves; every rank reads all bulletins. Large messages
 * go by MPI, with receives of the right size. O(P) a call, but no message where there is nothing to send.
 */
#include "formulas.h"
#include "inbox.h"
#include "sharing.h"

#include <string.h>

enum {
  NOTICE_NONE = -1,            /* bytes of a notice: no message */
  NOTICE_BY_MPI = -1,          /* offset of a notice: not on the bulletin */
  BULLETIN_DATA_BYTES = 65536, /* for the small messages of one call */
  DATA_ALIGNMENT = 16          /* small messages of a small job share a cache line with their notices */
};

/* The entry for one rank's message. */
struct notice {
  int32_t bytes, offset;
};

/* A rank has two bulletins, which take turns. It writes the one of call n+2 only when all have begun call
   n+1, which they do when they have read all bulletins of call n. Its model is
   kernels/tests/protocols/bulletins.pml. */
struct bulletin {
  call_number call; /* whose notices these are; written last, read first */
  struct notice notices[];
};

enum { BULLETINS = 2 };

struct state {
  struct share share; /* the two bulletins of each rank */
  int64_t data_offset, bulletin_bytes;
  uint64_t call;
  MPI_Request *requests; /* of large messages, sent and received */
};

static void shared_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_release(state->requests);
  swp_arena_give(plan->topology->arena, &state->share);
}

static struct bulletin *bulletin_of(const struct state *state, int rank, uint64_t call) {
  return (struct bulletin *)(void *)(swp_share_of(&state->share, rank) +
                                     (int64_t)(call % BULLETINS) * state->bulletin_bytes);
}

static int shared_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  struct share share;
  int64_t bytes = 0;
  if (state != NULL) {
    state->requests = swp_plan_allocate(plan, 2 * (int64_t)plan->procs, sizeof *state->requests);
    state->data_offset = swp_round_up(
        (int64_t)(sizeof(struct bulletin) + (size_t)plan->procs * sizeof(struct notice)), DATA_ALIGNMENT);
    state->bulletin_bytes = swp_round_up(state->data_offset + BULLETIN_DATA_BYTES, LINE_BYTES);
    bytes = BULLETINS * state->bulletin_bytes;
  }
  const bool allocated = state != NULL && state->requests != NULL;
  int error = allocated ? SWP_SUCCESS : swp_plan_no_memory(plan);
  error = swp_arena_take(plan->topology->arena, plan->comm, error, bytes, &share);
  if (error != SWP_SUCCESS)
    return error;
  state->share = share;
  state->call = swp_calls_begin;
  plan->account += share.bytes;
  for (uint64_t i = 0; i < BULLETINS; i++)
    swp_reach(&bulletin_of(state, plan->rank, i)->call, state->call);
  return SWP_SUCCESS;
}

/* Writes this rank's bulletin: the notices and, as long as there is room, small messages. */
static void publish(const struct swp_plan *plan, const struct state *state, const struct outbox *outbox) {
  struct bulletin *bulletin = bulletin_of(state, plan->rank, state->call);
  char *data = (char *)bulletin + state->data_offset;
  int64_t used = 0;
  for (int rank = 0; rank < plan->procs; rank++)
    bulletin->notices[rank].bytes = NOTICE_NONE;
  for (int i = 0; i < outbox->nsends; i++) {
    const int64_t bytes = outbox->bytes[i];
    struct notice *notice = &bulletin->notices[outbox->ranks[i]];
    *notice = (struct notice){(int32_t)bytes, NOTICE_BY_MPI};
    if (bytes > SHARING_BYTES || used + bytes > BULLETIN_DATA_BYTES || outbox->ranks[i] == plan->rank)
      continue;
    notice->offset = (int32_t)used;
    if (bytes > 0)
      memcpy(data + used, outbox->data[i], (size_t)bytes);
    used += swp_round_up(bytes, DATA_ALIGNMENT);
  }
  swp_reach(&bulletin->call, state->call);
}

/* After publishing, so that receives are posted meanwhile. */
static int send_large(const struct swp_plan *plan, const struct state *state, const struct outbox *outbox,
                      int *count) {
  const struct bulletin *bulletin = bulletin_of(state, plan->rank, state->call);
  int error = SWP_SUCCESS;
  for (int i = 0; i < outbox->nsends; i++) {
    int rank = outbox->ranks[i];
    if (rank != plan->rank && bulletin->notices[rank].offset == NOTICE_BY_MPI)
      MPI_TRY(MPI_Isend(outbox->data[i], (int)outbox->bytes[i], MPI_BYTE, rank, 0, plan->comm,
                        &state->requests[(*count)++]));
  }
done:
  return error;
}

static int receive_from(struct swp_plan *plan, struct state *state, int source, struct inbox *inbox,
                        int *count) {
  const struct bulletin *bulletin = bulletin_of(state, source, state->call);
  int error = SWP_SUCCESS;
  TRY(swp_await(plan, &bulletin->call, state->call));
  struct notice notice = bulletin->notices[plan->rank];
  if (notice.bytes == NOTICE_NONE)
    return SWP_SUCCESS;
  void *data = swp_inbox_add(inbox, source, notice.bytes);
  if (data == NULL)
    return swp_fail(SWP_ERR_MEMORY, "shared: no memory for %d bytes from rank %d", (int)notice.bytes, source);
  if (notice.offset == NOTICE_BY_MPI)
    MPI_TRY(MPI_Irecv(data, notice.bytes, MPI_BYTE, source, 0, plan->comm, &state->requests[(*count)++]));
  else
    memcpy(data, (const char *)bulletin + state->data_offset + notice.offset, (size_t)notice.bytes);
done:
  return error;
}

static int shared_execute(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox) {
  struct state *state = plan->method_state;
  int error = SWP_SUCCESS, count = 0;
  bool done;
  state->call++;
  publish(plan, state, outbox);
  TRY(send_large(plan, state, outbox, &count));
  for (int source = 0; source < plan->procs; source++)
    if (source != plan->rank)
      TRY(receive_from(plan, state, source, inbox, &count));
  TRY(swp_progress(plan, count, state->requests, true, &done));
done:
  return error;
}

static int shared_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct census census = swp_census(plan, estimate);
  const struct features *features = &plan->features;
  *seconds = census.small->alpha_s;
  if (features->bytes > SHARING_BYTES)
    *seconds += swp_payload_s(plan, estimate->model);
  else if (features->mmax > 0 && features->bytes > 0)
    *seconds += 2 * (double)(features->mmax * features->bytes) * estimate->model->copy_s_per_byte;
  return SWP_SUCCESS;
}

const struct method swp_discovery_shared = {
    .name = "shared",
    .summary = "sizes and small messages in memory that the ranks of one node share; O(P)",
    .source = "the personalized exchange of Hoefler, Siebert, Lumsdaine, PPoPP'10, by loads and stores",
    .applicable = swp_sharing_applicable,
    .plan = shared_plan,
    .free = shared_free,
    .execute = shared_execute,
    .estimate = shared_estimate,
};
