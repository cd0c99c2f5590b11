/* Functions that discovery methods that forward share: parcels in letters between known partners. */
#include "relay.h"

#include "probing.h"

#include <limits.h>
#include <string.h>

/* What is in front of the data of each parcel. */
struct header {
  int32_t source, destination;
  int64_t bytes;
};

enum {
  PARCEL_ALIGNMENT = 8,
  FAILURE_BYTES = 1, /* a letter of this length is the error of its sender */
  TURNS = 2,
  FIRST_TAG = BULLETIN_TAG + 1
};

int swp_relay_plan(struct swp_plan *plan, struct relay *relay, int most_partners) {
  relay->letters = swp_plan_allocate(plan, most_partners, sizeof *relay->letters);
  relay->requests = swp_plan_allocate(plan, most_partners, sizeof *relay->requests);
  relay->received = swp_inbox_create();
  relay->outgoing = swp_inbox_create();
  bool allocated =
      relay->letters != NULL && relay->requests != NULL && relay->received != NULL && relay->outgoing != NULL;
  return allocated ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

void swp_relay_free(struct relay *relay) {
  swp_release(relay->held);
  swp_release(relay->letters);
  swp_release(relay->requests);
  swp_inbox_destroy(relay->received);
  swp_inbox_destroy(relay->outgoing);
}

/* The first failure of a call is the one that is reported. */
static void no_memory(const struct swp_plan *plan, struct relay *relay, int64_t bytes) {
  if (relay->failure == SWP_SUCCESS)
    relay->failure =
        swp_fail(SWP_ERR_MEMORY, "%s: no memory for %lld bytes", plan->spec.text, (long long)bytes);
}

static bool grow(struct relay *relay) {
  int64_t capacity = relay->capacity > 0 ? 2 * relay->capacity : 16;
  struct parcel *held = swp_allocate((size_t)capacity, sizeof *held, NULL);
  if (held == NULL)
    return false;
  if (relay->nheld > 0)
    memcpy(held, relay->held, (size_t)relay->nheld * sizeof *held);
  swp_release(relay->held);
  relay->held = held;
  relay->capacity = capacity;
  return true;
}

static void hold(const struct swp_plan *plan, struct relay *relay, struct parcel parcel) {
  if (relay->nheld < relay->capacity || grow(relay))
    relay->held[relay->nheld++] = parcel;
  else
    no_memory(plan, relay, (relay->capacity + 1) * (int64_t)sizeof parcel);
}

void swp_relay_begin(struct swp_plan *plan, struct relay *relay, const struct outbox *outbox) {
  relay->nheld = 0;
  relay->failure = SWP_SUCCESS;
  swp_inbox_empty(relay->received);
  for (int i = 0; i < outbox->nsends; i++)
    if (outbox->ranks[i] != plan->rank)
      hold(plan, relay,
           (struct parcel){plan->rank, outbox->ranks[i], outbox->bytes[i], outbox->data[i], STAYS});
}

static int64_t packed_bytes(int64_t bytes) {
  return (int64_t)sizeof(struct header) + swp_round_up(bytes, PARCEL_ALIGNMENT);
}

/* Room for a letter of the size that is known; NULL sets the call's failure. */
static void *make_letter(const struct swp_plan *plan, struct relay *relay, int64_t bytes) {
  void *data = NULL;
  if (bytes <= INT_MAX)
    data = swp_inbox_add(relay->outgoing, plan->rank, bytes);
  else if (relay->failure == SWP_SUCCESS)
    relay->failure =
        swp_fail(SWP_ERR_MEMORY, "%s: a rank has %lld bytes to forward to another; at most %d are possible",
                 plan->spec.text, (long long)bytes, INT_MAX);
  if (data == NULL)
    no_memory(plan, relay, bytes);
  return data;
}

/* Writes a parcel at the end of a letter. What pads its data is not read, but is sent. */
static void append(struct letter *letter, const struct parcel *parcel) {
  char *to = (char *)letter->data + letter->bytes;
  int64_t whole = packed_bytes(parcel->bytes);
  struct header header = {parcel->source, parcel->destination, parcel->bytes};
  memset(to + whole - PARCEL_ALIGNMENT, 0, PARCEL_ALIGNMENT);
  memcpy(to, &header, sizeof header);
  if (parcel->bytes > 0)
    memcpy(to + sizeof header, parcel->data, (size_t)parcel->bytes);
  letter->bytes += whole;
}

static void write_letters(const struct swp_plan *plan, struct relay *relay, int npartners) {
  for (int64_t i = 0; i < relay->nheld; i++)
    if (relay->held[i].next != STAYS)
      relay->letters[relay->held[i].next].bytes += packed_bytes(relay->held[i].bytes);
  for (int i = 0; i < npartners; i++) {
    struct letter *letter = &relay->letters[i];
    letter->data = make_letter(plan, relay, letter->bytes);
    if (letter->data == NULL)
      return;
    letter->bytes = 0;
  }
  int64_t kept = 0;
  for (int64_t i = 0; i < relay->nheld; i++) {
    if (relay->held[i].next == STAYS)
      relay->held[kept++] = relay->held[i];
    else
      append(&relay->letters[relay->held[i].next], &relay->held[i]);
  }
  relay->nheld = kept;
}

void swp_relay_pack(struct swp_plan *plan, struct relay *relay, int npartners) {
  swp_inbox_empty(relay->outgoing);
  for (int i = 0; i < npartners; i++)
    relay->letters[i] = (struct letter){0, NULL};
  if (relay->failure == SWP_SUCCESS)
    write_letters(plan, relay, npartners);
  relay->failure_letter = (char)relay->failure;
  for (int i = 0; i < npartners && relay->failure != SWP_SUCCESS; i++)
    relay->letters[i] = (struct letter){FAILURE_BYTES, &relay->failure_letter};
}

void swp_relay_open(struct swp_plan *plan, struct relay *relay, int from, const void *letter, int64_t bytes) {
  const char *at = letter;
  struct header header;
  if (bytes == FAILURE_BYTES) {
    if (relay->failure == SWP_SUCCESS)
      relay->failure =
          swp_fail((unsigned char)*at, "%s: rank %d, which forwards messages to this one, failed: %s",
                   plan->spec.text, from, swp_strerror(*at));
    return;
  }
  for (const char *end = at + bytes; at < end; at += packed_bytes(header.bytes)) {
    memcpy(&header, at, sizeof header);
    hold(plan, relay,
         (struct parcel){header.source, header.destination, header.bytes, at + sizeof header, STAYS});
  }
}

static int receive_letter(struct swp_plan *plan, struct relay *relay, int tag) {
  int error = SWP_SUCCESS, found = 0, bytes;
  MPI_Status status;
  void *data = NULL;
  MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, tag, plan->comm, &found, &status));
  while (!found) {
    swp_plan_relax(plan);
    MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, tag, plan->comm, &found, &status));
  }
  MPI_TRY(MPI_Get_count(&status, MPI_BYTE, &bytes));
  if (relay->failure == SWP_SUCCESS)
    data = swp_inbox_add(relay->received, status.MPI_SOURCE, bytes);
  if (data == NULL) {
    no_memory(plan, relay, bytes);
    return swp_probing_discard(plan, &status);
  }
  MPI_TRY(MPI_Recv(data, bytes, MPI_BYTE, status.MPI_SOURCE, tag, plan->comm, MPI_STATUS_IGNORE));
  swp_relay_open(plan, relay, status.MPI_SOURCE, data, bytes);
done:
  return error;
}

/* A partner is at most one call ahead, as it waits for this rank in the same stage of each: two tags are
   enough for a wildcard probe. */
int swp_relay_stage(struct swp_plan *plan, struct relay *relay, int stage, int npartners,
                    const int *partners) {
  int error = SWP_SUCCESS, tag = FIRST_TAG + TURNS * stage + relay->turn;
  bool done;
  swp_relay_pack(plan, relay, npartners);
  for (int i = 0; i < npartners; i++) {
    const struct letter *letter = &relay->letters[i];
    MPI_TRY(MPI_Isend(letter->data, (int)letter->bytes, MPI_BYTE, partners[i], tag, plan->comm,
                      &relay->requests[i]));
  }
  for (int i = 0; i < npartners; i++)
    TRY(receive_letter(plan, relay, tag));
  TRY(swp_progress(plan, npartners, relay->requests, true, &done));
done:
  return error;
}

int swp_relay_deliver(struct swp_plan *plan, struct relay *relay, struct inbox *inbox) {
  for (int64_t i = 0; i < relay->nheld && relay->failure == SWP_SUCCESS; i++) {
    const struct parcel *parcel = &relay->held[i];
    void *data = swp_inbox_add(inbox, parcel->source, parcel->bytes);
    if (data == NULL)
      no_memory(plan, relay, parcel->bytes);
    else if (parcel->bytes > 0)
      memcpy(data, parcel->data, (size_t)parcel->bytes);
  }
  relay->turn = (relay->turn + 1) % TURNS;
  return relay->failure;
}
