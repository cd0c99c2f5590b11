/* Error codes with a text per thread; after an agreement, every rank continues in the same way. */
#ifndef SWP_ERROR_H
#define SWP_ERROR_H

#include "switchpoint.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define ERROR_TEXT_BYTES 512

/* Remembers a text for swp_error_message(); the second, that of a failed MPI call, with MPI's own. */
void swp_explain(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));
void swp_explain_mpi(int mpi_error, const char *call) __attribute__((cold));

/* Remembers the text of an earlier failure, with the code of its MPI error or MPI_SUCCESS. */
void swp_explain_again(const char *text, int mpi_error) __attribute__((cold));

/* Remembers the text, and is `error`. Here and not in error.c, as the next two, so that compilers and
   analyzers, which see one file at a time, tell a failure from a success. */
#define swp_fail(error, ...) (swp_explain(__VA_ARGS__), (error))

/* The same for a failed MPI call. */
static inline int swp_fail_mpi(int mpi_error, const char *call) {
  swp_explain_mpi(mpi_error, call);
  return SWP_ERR_MPI;
}

/* Returns the worst error of all ranks, with the text of the first rank that has it. Collective on comm. */
int swp_worst(MPI_Comm comm, int error);

static inline int swp_agree(MPI_Comm comm, int error) {
  const int worst = swp_worst(comm, error);
  return worst != SWP_SUCCESS ? worst : error; /* which is a success, too */
}

/* A nonnegative hash, which ranks compare where their data must be equal. */
int64_t swp_hash(const void *data, size_t bytes);

/* The hash of a text; NULL is as "". */
int64_t swp_text_hash(const char *text);

/* Leaves the enclosing function through its label `done` with `error` set when an MPI call fails. */
#define MPI_TRY(call)                                                                                        \
  do {                                                                                                       \
    int mpi_error_ = (call);                                                                                 \
    if (mpi_error_ != MPI_SUCCESS) {                                                                         \
      error = swp_fail_mpi(mpi_error_, #call);                                                               \
      goto done;                                                                                             \
    }                                                                                                        \
  } while (0)

/* The same for a call that returns an enum swp_error. */
#define TRY(call)                                                                                            \
  do {                                                                                                       \
    error = (call);                                                                                          \
    if (error != SWP_SUCCESS)                                                                                \
      goto done;                                                                                             \
  } while (0)

#endif
