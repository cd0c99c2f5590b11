/*
 * The memory that this process can still take before the machine, or a control group that it is in, as of a
 * container or a batch job, ends processes. Linux only.
 */
#ifndef SWP_MEMORY_LEFT_H
#define SWP_MEMORY_LEFT_H

#include <stdint.h>

/* The bytes left; what is not there does not limit them. Negative: not known, as descriptors or memory to
   read it ran out. Local; needs no MPI. */
int64_t swp_memory_left(void);

/* What comes before /proc and /sys: "". Tests set it. */
extern const char *swp_memory_root;

#endif
