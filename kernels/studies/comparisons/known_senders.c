/* The lower bound: every rank knows its senders, so none has to be informed. Written as if by hand. */
#include "rival.h"

#include <stdlib.h>
#include <string.h>

static char *received;
static MPI_Request *requests;
static size_t received_bytes;

static void start(const struct workload *workload) {
  const struct lists *sends = &workload->pattern->sends, *recvs = &workload->pattern->recvs;
  received_bytes = (size_t)(recvs->offsets[recvs->n] * workload->payload.item_bytes);
  received = allocate(received_bytes);
  requests = allocate((size_t)(sends->n + recvs->n) * sizeof *requests);
}

static void stop(void) {
  free(received);
  free(requests);
}

static void wipe(void) {
  memset(received, 0, received_bytes);
}

static struct delivery execute(const struct workload *workload, int message_bytes, int variant) {
  (void)variant;
  const struct lists *sends = &workload->pattern->sends, *recvs = &workload->pattern->recvs;
  const MPI_Comm comm = workload->team->comm;
  for (int i = 0; i < recvs->n; i++)
    MPI_Irecv(received + (size_t)i * (size_t)message_bytes, message_bytes, MPI_BYTE, recvs->ranks[i], 0, comm,
              &requests[i]);
  for (int i = 0; i < sends->n; i++)
    MPI_Isend(workload->messages[i], message_bytes, MPI_BYTE, sends->ranks[i], 0, comm,
              &requests[recvs->n + i]);
  MPI_Waitall(recvs->n + sends->n, requests, MPI_STATUSES_IGNORE);
  return (struct delivery){recvs->n, recvs->ranks, received};
}

const struct rival known_senders = {
    .variants = {"known senders"},
    .open = start,
    .close = stop,
    .prepare = wipe,
    .execute = execute,
};
