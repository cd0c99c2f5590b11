/* Messages to receivers that do not expect them, in memory that the ranks share. */
#include "bulletins.h"

#include "probing.h"

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

struct bulletin {
  call_number call; /* whose notices these are; written last, read first */
  struct notice notices[];
};

enum { BULLETINS = 2 };

static struct bulletin *bulletin_of(const struct bulletins *bulletins, int sharer, uint64_t call) {
  return (struct bulletin *)(void *)(swp_share_of(&bulletins->share, sharer) +
                                     (int64_t)(call % BULLETINS) * bulletins->bulletin_bytes);
}

static struct bulletin *own_bulletin(const struct swp_plan *plan, const struct bulletins *bulletins) {
  return bulletin_of(bulletins, swp_sharer_of(plan, &bulletins->sharers, plan->rank), bulletins->call);
}

int swp_bulletins_take(struct swp_plan *plan, bool on_node, MPI_Comm comm, int error,
                       struct bulletins *bulletins) {
  const struct sharers sharers = swp_sharers(plan, on_node);
  const int64_t heads_bytes =
      (int64_t)(sizeof(struct bulletin) + (size_t)sharers.count * sizeof(struct notice));
  const int64_t data_offset = swp_round_up(heads_bytes, DATA_ALIGNMENT);
  const int64_t bulletin_bytes = swp_round_up(data_offset + BULLETIN_DATA_BYTES, LINE_BYTES);
  if (error == SWP_SUCCESS) {
    *bulletins = (struct bulletins){.sharers = sharers,
                                    .data_offset = data_offset,
                                    .bulletin_bytes = bulletin_bytes,
                                    .call = swp_calls_begin};
    bulletins->requests = swp_plan_allocate(plan, 2 * (int64_t)sharers.count, sizeof *bulletins->requests);
    if (bulletins->requests == NULL)
      error = swp_plan_no_memory(plan);
  }
  struct share *share = error == SWP_SUCCESS ? &bulletins->share : NULL;
  TRY(swp_sharing_take(plan, sharers.arena, comm, error, BULLETINS * bulletin_bytes, share));
  for (uint64_t i = 0; i < BULLETINS; i++, bulletins->call++)
    swp_reach(&own_bulletin(plan, bulletins)->call, swp_calls_begin);
  bulletins->call = swp_calls_begin;
done:
  return error;
}

void swp_bulletins_give(struct bulletins *bulletins) {
  if (bulletins == NULL)
    return;
  swp_release(bulletins->requests);
  swp_arena_give(bulletins->sharers.arena, &bulletins->share);
}

/* Writes this rank's bulletin: the notices and, as long as there is room, small messages. */
static void publish(const struct swp_plan *plan, const struct bulletins *bulletins,
                    const struct outbox *outbox) {
  struct bulletin *bulletin = own_bulletin(plan, bulletins);
  char *data = (char *)bulletin + bulletins->data_offset;
  int64_t used = 0;
  for (int sharer = 0; sharer < bulletins->sharers.count; sharer++)
    bulletin->notices[sharer].bytes = NOTICE_NONE;
  for (int i = 0; i < outbox->nsends; i++) {
    const int64_t bytes = outbox->bytes[i];
    struct notice *notice = &bulletin->notices[swp_sharer_of(plan, &bulletins->sharers, outbox->ranks[i])];
    *notice = (struct notice){(int32_t)bytes, NOTICE_BY_MPI};
    if (bytes > SHARING_BYTES || used + bytes > BULLETIN_DATA_BYTES || outbox->ranks[i] == plan->rank)
      continue;
    notice->offset = (int32_t)used;
    if (bytes > 0)
      memcpy(data + used, outbox->data[i], (size_t)bytes);
    used += swp_round_up(bytes, DATA_ALIGNMENT);
  }
  swp_reach(&bulletin->call, bulletins->call);
}

/* Call it after publishing, so that receives are posted meanwhile. */
static int send_large(const struct swp_plan *plan, const struct bulletins *bulletins,
                      const struct outbox *outbox, int *count) {
  const struct bulletin *bulletin = own_bulletin(plan, bulletins);
  int error = SWP_SUCCESS;
  for (int i = 0; i < outbox->nsends; i++) {
    const int rank = outbox->ranks[i];
    const struct notice *notice = &bulletin->notices[swp_sharer_of(plan, &bulletins->sharers, rank)];
    if (rank != plan->rank && notice->offset == NOTICE_BY_MPI)
      MPI_TRY(MPI_Isend(outbox->data[i], (int)outbox->bytes[i], MPI_BYTE, rank, BULLETIN_TAG, plan->comm,
                        &bulletins->requests[(*count)++]));
  }
done:
  return error;
}

/* A message that MPI sends is taken even without memory for it, as its sender waits. */
static int take_message(struct swp_plan *plan, const struct bulletins *bulletins, int source,
                        struct notice notice, void *data, int *count) {
  int error = SWP_SUCCESS;
  MPI_Status status;
  if (data != NULL) {
    MPI_TRY(MPI_Irecv(data, notice.bytes, MPI_BYTE, source, BULLETIN_TAG, plan->comm,
                      &bulletins->requests[(*count)++]));
  } else {
    MPI_TRY(MPI_Probe(source, BULLETIN_TAG, plan->comm, &status));
    TRY(swp_probing_discard(plan, &status));
  }
done:
  return error;
}

static int receive_from(struct swp_plan *plan, const struct bulletins *bulletins, int sharer,
                        struct inbox *inbox, int *count, int *failure) {
  const struct bulletin *bulletin = bulletin_of(bulletins, sharer, bulletins->call);
  const int source = swp_sharer_rank(plan, &bulletins->sharers, sharer);
  int error = SWP_SUCCESS;
  TRY(swp_await(plan, &bulletin->call, bulletins->call));
  const struct notice notice = bulletin->notices[swp_sharer_of(plan, &bulletins->sharers, plan->rank)];
  if (notice.bytes == NOTICE_NONE)
    return SWP_SUCCESS;
  void *data = swp_inbox_add(inbox, source, notice.bytes);
  if (data == NULL)
    *failure = swp_fail(SWP_ERR_MEMORY, "%s: no memory for %d bytes from rank %d", plan->spec.text,
                        (int)notice.bytes, source);
  if (notice.offset == NOTICE_BY_MPI)
    TRY(take_message(plan, bulletins, source, notice, data, count));
  else if (data != NULL)
    memcpy(data, (const char *)bulletin + bulletins->data_offset + notice.offset, (size_t)notice.bytes);
done:
  return error;
}

int swp_bulletins_exchange(struct swp_plan *plan, struct bulletins *bulletins, const struct outbox *outbox,
                           struct inbox *inbox) {
  int error = SWP_SUCCESS, failure = SWP_SUCCESS, count = 0;
  bool done;
  bulletins->call++;
  publish(plan, bulletins, outbox);
  TRY(send_large(plan, bulletins, outbox, &count));
  for (int sharer = 0; sharer < bulletins->sharers.count; sharer++)
    if (sharer != swp_sharer_of(plan, &bulletins->sharers, plan->rank))
      TRY(receive_from(plan, bulletins, sharer, inbox, &count, &failure));
  TRY(swp_progress(plan, count, bulletins->requests, true, &done));
  error = failure;
done:
  return error;
}
