/*
 * The bytes of a broadcast's vector as they travel, to be cut anywhere: the buffer itself where they lie so
 * in memory on this rank, and else a packed copy in scratch.
 */
#ifndef SWP_IMAGE_H
#define SWP_IMAGE_H

#include "call.h"

/* For the procedure: it wants what can be packed at once. */
const char *swp_image_applicable(const struct spec *spec, const struct features *features);
int64_t swp_image_scratch_bytes(const struct swp_plan *plan);

/* Gives the bytes, which at the root are those of the buffer. Errors: SWP_ERR_MPI. */
int swp_image_begin(const struct swp_plan *plan, const void *buffer, char **image);

/* Brings them to the buffer. Errors: SWP_ERR_MPI. */
int swp_image_end(const struct swp_plan *plan, const char *image, void *buffer);

#endif
