/* chain: from each rank to the next, in segments: while one is sent on, the next one is received. */
#include "call.h"
#include "textbook.h"

#include <stdio.h>

enum { SEGMENT_BYTES = 65536 };

static int segment_bytes(const struct spec *spec) {
  return (int)spec->arguments[0].value;
}

static bool chain_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  static const int worth_trying[] = {8192, 32768, 131072};
  (void)operation, (void)procs;
  if (index >= (int)(sizeof worth_trying / sizeof worth_trying[0]))
    return false;
  snprintf(text, length, "chain:segment=%d", worth_trying[index]);
  return true;
}

/* The segment that begins at `from`, when there is one and the rank is not at the chain's end. */
static int begin(const struct swp_plan *plan, char *image, int64_t from, bool sends, MPI_Request *request) {
  int64_t left = plan->features.total_bytes - from, most = segment_bytes(&plan->spec);
  int bytes = (int)(left < most ? left : most), procs = plan->procs, error = SWP_SUCCESS;
  int peer = (plan->rank + (sends ? 1 : procs - 1)) % procs;
  *request = MPI_REQUEST_NULL;
  if (left <= 0 || (sends ? peer : plan->rank) == plan->features.root)
    return SWP_SUCCESS;
  if (sends)
    MPI_TRY(MPI_Isend(image + from, bytes, MPI_PACKED, peer, COLLECTIVE_TAG, plan->comm, request));
  else
    MPI_TRY(MPI_Irecv(image + from, bytes, MPI_PACKED, peer, COLLECTIVE_TAG, plan->comm, request));
done:
  return error;
}

static int chain_bcast(struct swp_plan *plan, const void *send, void *recv) {
  MPI_Request requests[2];
  int64_t segment = segment_bytes(&plan->spec);
  int error = SWP_SUCCESS;
  char *image;
  (void)send;
  TRY(swp_image_begin(plan, recv, &image));
  TRY(begin(plan, image, 0, false, &requests[0]));
  TRY(swp_complete(plan, 1, requests));
  for (int64_t from = 0; from < plan->features.total_bytes; from += segment) {
    TRY(begin(plan, image, from + segment, false, &requests[0]));
    TRY(begin(plan, image, from, true, &requests[1]));
    TRY(swp_complete(plan, 2, requests));
  }
  TRY(swp_image_end(plan, image, recv));
done:
  return error;
}

static int chain_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  *seconds = swp_textbook_chain_s(&group, (double)plan->features.bytes, segment_bytes(estimate->spec));
  return SWP_SUCCESS;
}

const struct method swp_collective_chain = {
    .name = "chain",
    .summary = "from each rank to the next, pipelined in segments",
    .source = "Worringen, Pipelining and overlapping for MPI collective operations, 2003",
    .usage = "segment=BYTES (16 to 1073741824; 65536 when not given)",
    .parameters = {{.name = "segment",
                    .type = PARAMETER_INTEGER,
                    .low = 16,
                    .high = 1 << 30,
                    .otherwise = SEGMENT_BYTES}},
    .variant = chain_variant,
    .estimate = chain_estimate,
    .procedures =
        {
            [SWP_BCAST] = {chain_bcast, swp_image_scratch_bytes, swp_image_applicable},
        },
};
