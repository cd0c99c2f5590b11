/* Error codes with a text per thread, and their agreement between ranks. */
#include "error.h"

#include "printable.h"
#include "switchpoint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[ERROR_TEXT_BYTES];
static _Thread_local int mpi_code; /* of the failed MPI call that the message describes */

void swp_explain(const char *format, ...) {
  char text[ERROR_TEXT_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  swp_printable(text, message, sizeof message);
  mpi_code = MPI_SUCCESS;
}

void swp_explain_mpi(int mpi_error, const char *call) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(mpi_error, text, &length);
  for (char *c = text; *c != '\0'; c++)
    if (*c == '\n' || *c == '\r')
      *c = ' '; /* a message is one line */
  swp_explain("%.*s failed: %s", (int)strcspn(call, "("), call, text);
  mpi_code = mpi_error;
}

void swp_explain_again(const char *text, int mpi_error) {
  swp_explain("%s", text);
  mpi_code = mpi_error;
}

const char *swp_error_message(void) {
  return message;
}

int swp_error_mpi(void) {
  return mpi_code;
}

const char *swp_strerror(int error) {
  switch ((enum swp_error)error) {
  case SWP_SUCCESS:
    return "success";
  case SWP_ERR_ARGUMENT:
    return "argument out of range, or different between ranks";
  case SWP_ERR_MEMORY:
    return "out of memory";
  case SWP_ERR_MPI:
    return "an MPI call failed";
  case SWP_ERR_METHOD:
    return "unknown method or malformed method spec";
  case SWP_ERR_NOT_APPLICABLE:
    return "method not applicable to this problem on these ranks";
  case SWP_ERR_MISMATCH:
    return "sends and receives do not match";
  case SWP_ERR_TABLE:
    return "method table cannot be read";
  case SWP_ERR_TOO_LARGE:
    return "too large for MPI's int counts with this method";
  case SWP_ERR_STATE:
    return "call does not fit the operation or state of the plan";
  case SWP_ERR_POISONED:
    return "an earlier execution of this plan failed";
  }
  return "unknown error code";
}

int swp_worst(MPI_Comm comm, int error) {
  int rank, procs;
  const int own_code = error == SWP_ERR_MPI ? mpi_code : MPI_SUCCESS;
  if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS || MPI_Comm_size(comm, &procs) != MPI_SUCCESS)
    return swp_fail(SWP_ERR_MPI, "not a usable communicator");
  /* The worst error wins, and among equal ones that of the lowest rank. */
  int64_t mine = (int64_t)error << 32 | (procs - 1 - rank), worst = mine;
  int mpi_error = MPI_Allreduce(&mine, &worst, 1, MPI_INT64_T, MPI_MAX, comm);
  if (mpi_error != MPI_SUCCESS)
    return swp_fail_mpi(mpi_error, "MPI_Allreduce");
  int agreed = (int)(worst >> 32), first = procs - 1 - (int)(worst & 0xffffffff);
  if (agreed == SWP_SUCCESS)
    return SWP_SUCCESS;
  char text[ERROR_TEXT_BYTES] = "";
  if (rank == first)
    strncpy(text, swp_error_message(), sizeof text - 1);
  mpi_error = MPI_Bcast(text, (int)sizeof text, MPI_CHAR, first, comm);
  if (mpi_error != MPI_SUCCESS)
    return swp_fail_mpi(mpi_error, "MPI_Bcast");
  if (strncmp(text, "rank ", 5) == 0) /* it was agreed on before */
    swp_explain("%s", text);
  else
    swp_explain("rank %d: %.*s", first, ERROR_TEXT_BYTES - 20, text);
  mpi_code = agreed == SWP_ERR_MPI ? own_code : MPI_SUCCESS;
  return agreed;
}

/* FNV-1a. */
int64_t swp_hash(const void *data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; i++)
    hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
  return (int64_t)(hash >> 2);
}

int64_t swp_text_hash(const char *text) {
  return swp_hash(text, text != NULL ? strlen(text) : 0);
}

#define TEXT(number) #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *swp_version(void) {
  return VERSION(SWP_VERSION_MAJOR, SWP_VERSION_MINOR, SWP_VERSION_PATCH);
}
