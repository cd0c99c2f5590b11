/* Messages to receivers that do not expect them, by one-sided communication. */
#include "puts.h"

#include "sharing.h"

#include <stddef.h>
#include <string.h>

struct slip {
  uint64_t call; /* that it was put in */
  int64_t bytes; /* of the message */
  char data[SLIP_DATA_BYTES];
};

/* A slip of call n is put anew in call n + 2: by the fence of call n + 1 its receiver has read it. So one
   fence a call ends its puts, and begins the next. */
enum { TURNS = 2 };

static struct slip *slips_of(const struct swp_plan *plan, const struct puts *puts) {
  return puts->slips + (int64_t)(puts->call % TURNS) * plan->procs;
}

int swp_puts_plan(struct swp_plan *plan, int error, struct puts *puts) {
  const int64_t bytes = TURNS * plan->procs * (int64_t)sizeof(struct slip);
  if (error == SWP_SUCCESS) {
    puts->sent = swp_plan_allocate(plan, plan->procs, sizeof *puts->sent);
    if (puts->sent == NULL || swp_probing_reserve(plan, &puts->probing, plan->procs) != SWP_SUCCESS)
      error = swp_plan_no_memory(plan);
  }
  TRY(swp_agree(plan->comm, error));
  TRY(swp_window_make(plan, bytes, sizeof(struct slip), &puts->slips, &puts->window));
  plan->account += bytes;
  puts->call = swp_calls_begin;
  for (int64_t i = 0; i < TURNS * (int64_t)plan->procs; i++)
    puts->slips[i].call = puts->call;
  MPI_TRY(MPI_Win_fence(MPI_MODE_NOPRECEDE, puts->window));
done:
  return error;
}

void swp_puts_free(struct puts *puts) {
  if (puts->window != MPI_WIN_NULL)
    MPI_Win_fence(MPI_MODE_NOSUCCEED, puts->window);
  swp_window_free(&puts->window);
  swp_release(puts->sent);
  swp_probing_free(&puts->probing);
}

static int put_all(const struct swp_plan *plan, struct puts *puts, const struct outbox *outbox) {
  const MPI_Aint place = (MPI_Aint)(slips_of(plan, puts) - puts->slips) + plan->rank;
  int error = SWP_SUCCESS;
  for (int i = 0; i < outbox->nsends; i++) {
    const int64_t bytes = outbox->bytes[i], short_bytes = bytes <= SLIP_DATA_BYTES ? bytes : 0;
    const int length = (int)offsetof(struct slip, data) + (int)short_bytes;
    struct slip *slip = &puts->sent[i];
    if (outbox->ranks[i] == plan->rank)
      continue;
    slip->call = puts->call;
    slip->bytes = bytes;
    if (short_bytes > 0)
      memcpy(slip->data, outbox->data[i], (size_t)short_bytes);
    MPI_TRY(MPI_Put(slip, length, MPI_BYTE, outbox->ranks[i], place, length, MPI_BYTE, puts->window));
  }
done:
  return error;
}

/* Returns the number of longer messages, which are still to be received. */
static int read_slips(const struct swp_plan *plan, struct puts *puts, struct inbox *inbox) {
  const struct slip *slips = slips_of(plan, puts);
  int longer = 0;
  for (int source = 0; source < plan->procs; source++) {
    const struct slip *slip = &slips[source];
    if (slip->call != puts->call)
      continue;
    if (slip->bytes > SLIP_DATA_BYTES) {
      longer++;
      continue;
    }
    void *data = swp_inbox_add(inbox, source, slip->bytes);
    if (data == NULL)
      puts->probing.failure = swp_fail(SWP_ERR_MEMORY, "%s: no memory for %d bytes from rank %d",
                                       plan->spec.text, (int)slip->bytes, source);
    else
      memcpy(data, slip->data, (size_t)slip->bytes);
  }
  return longer;
}

int swp_puts_exchange(struct swp_plan *plan, struct puts *puts, const struct outbox *outbox,
                      struct inbox *inbox) {
  int error = SWP_SUCCESS;
  puts->call++;
  TRY(put_all(plan, puts, outbox));
  TRY(swp_probing_send(plan, &puts->probing, outbox, SLIP_DATA_BYTES, false));
  MPI_TRY(MPI_Win_fence(0, puts->window));
  TRY(swp_probing_finish(plan, &puts->probing, inbox, read_slips(plan, puts, inbox)));
done:
  return error;
}
