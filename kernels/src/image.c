/* The bytes of a broadcast's vector as they travel. */
#include "image.h"

#include <limits.h>

const char *swp_image_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
  return features->total_bytes <= INT_MAX ? NULL : "the vector is over 2 GiB - 1";
}

int64_t swp_image_scratch_bytes(const struct swp_plan *plan) {
  return plan->call->recv.dense ? 0 : plan->features.total_bytes;
}

int swp_image_begin(const struct swp_plan *plan, const void *buffer, char **image) {
  const struct side *side = &plan->call->recv;
  *image = side->dense ? (char *)buffer : plan->call->scratch;
  if (side->dense || plan->rank != plan->features.root)
    return SWP_SUCCESS;
  return swp_pack(plan, side, buffer, side->count, *image);
}

int swp_image_end(const struct swp_plan *plan, const char *image, void *buffer) {
  const struct side *side = &plan->call->recv;
  if (side->dense || plan->rank == plan->features.root)
    return SWP_SUCCESS;
  return swp_unpack(plan, side, image, side->count, buffer);
}
