/*
 * How much communication hides behind computation: R. Nishtala, "Architectural Probes for Measuring
 * Communication Overlap Potential". A kernel is one file, overlap_<name>.c.
 */
#ifndef STUDIES_OVERLAP_H
#define STUDIES_OVERLAP_H

#include "clock.h"
#include "options.h"

/* The parts of a rank's time. */
enum overlap_part { COMPUTATION, INITIATION, WAIT, BARRIER, OVERLAP_PARTS };

struct stopwatch {
  int64_t last_ns;
  int64_t spent_ns[OVERLAP_PARTS];
};

/* Adds the time since the last call to `part`. */
static inline void lap(struct stopwatch *watch, enum overlap_part part) {
  const int64_t now_ns = clock_ns();
  watch->spent_ns[part] += now_ns - watch->last_ns;
  watch->last_ns = now_ns;
}

enum overlap_transfer { BY_ISEND = 1, BY_PUT = 2, BY_GET = 4 };

enum { OVERLAP_SPEC_MAX = 64 };

/* A family of methods of a kernel. */
struct overlap_family {
  const char *name;
  int transfers;         /* mask */
  const char *parameter; /* NULL: none */
  int64_t first, factor; /* without a value: first, first * factor, ... below the most there can be, or 1 */
  const char *summary;
};

struct overlap_method {
  char spec[OVERLAP_SPEC_MAX];
  const struct overlap_family *family;
  int64_t value; /* of the parameter */
  enum overlap_transfer by;
};

/* An amount of computation, of one rank. */
struct overlap_work {
  int64_t flops;
  void *state; /* the kernel's; NULL: no computation */
};

struct overlap_kernel;

struct overlap {
  const struct overlap_kernel *kernel;
  const struct team *team;
  int64_t values[PATTERN_PARAMETERS]; /* in the order of the kernel's parameters */
  uint64_t seed, repetition;
  int64_t full_flops; /* of full rows */
  bool puts;          /* whether some method does */
  void *state;        /* the kernel's */
};

struct overlap_kernel {
  const char *name;
  const char *summary;
  /* The reason why it cannot compute in this build, NULL if it can. */
  const char *(*without)(void);
  struct pattern_parameter parameters[PATTERN_PARAMETERS];
  const struct overlap_family *families; /* the last one has no name */
  /* The most that the parameter of a family may be, on this many ranks. */
  int64_t (*most)(const struct overlap *overlap);
  /* Sets full_flops and makes the buffers. Collective. 0, or -1 with failure_text() set; free must be called
     in both cases. */
  int (*create)(struct overlap *overlap);
  void (*free)(struct overlap *overlap);
  /* Returns computation of that many flops, or of the next possible number below. Local. */
  void (*work_create)(struct overlap *overlap, int64_t flops, struct overlap_work *work);
  void (*work_free)(struct overlap_work *work);
  /* Messages to other ranks of one rank, and bytes of the longest. */
  void (*measure)(const struct overlap *overlap, const struct overlap_method *method, int64_t *messages,
                  int64_t *message_bytes);
  /* Makes the data of the next execution and overwrites the last one's results. Local. */
  void (*prepare)(struct overlap *overlap);
  /* One execution, until all ranks have all; or without communication. Collective. */
  void (*run)(struct overlap *overlap, const struct overlap_method *method, const struct overlap_work *work,
              bool communicates, struct stopwatch *watch);
  /* Verifies the results of the last execution, which communicated. Collective. 0, or -1 with failure_text()
     set on some rank. */
  int (*verify)(struct overlap *overlap, const struct overlap_work *work);
};

/*
 * Reads the methods of a kernel, separated by spaces or ';'; the caller frees them. 0, or -1 with
 * failure_text() set. Local.
 */
int overlap_methods(const struct overlap *overlap, const char *text, struct overlap_method **methods,
                    int *count);

/* Prints the kernels and their methods, for the help. */
void overlap_help(void);

/* swpbench overlap, of a kernel with parameters such as "ft:rows=8", and amounts of computation; NULL: from
   none to the maximum. Collective. 0, or -1 on every rank after the failure was printed. */
int overlap(const struct team *team, const struct options *options, const char *pattern,
            const char *computation);

#endif
