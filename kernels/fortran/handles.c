/*
 * What the Fortran module leaves to C: it converts MPI's handles, knows C's MPI_IN_PLACE and MPI_BOTTOM,
 * finds out how arrays lie in memory, keeps the messages of the module's own errors, and ends the job where
 * the program does not look at an error.
 */
#include "switchpoint.h"

#include <ISO_Fortran_binding.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char
    refusal[256]; /* the module's own message; empty if the last error is the library's */

/* Remembers a message and returns SWP_ERR_ARGUMENT. */
int swp_fortran_refuse(const char *text) {
  snprintf(refusal, sizeof refusal, "%s", text);
  return SWP_ERR_ARGUMENT;
}

/* Forgets the module's own message: the library has a newer one. */
void swp_fortran_forget(void) {
  refusal[0] = '\0';
}

const char *swp_fortran_message(void) {
  return refusal[0] != '\0' ? refusal : swp_error_message();
}

int swp_fortran_error_mpi(void) {
  return refusal[0] != '\0' ? MPI_SUCCESS : swp_error_mpi();
}

void swp_fortran_abort(int error) {
  fprintf(stderr, "switchpoint: %s: %s\n", swp_strerror(error), swp_fortran_message());
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

void *swp_fortran_in_place(void) {
  return MPI_IN_PLACE;
}

void *swp_fortran_bottom(void) {
  return MPI_BOTTOM;
}

/* Returns whether an array's elements lie one behind the other. is_contiguous of compilers also compares
   strides that lead to no element: in dimensions of one element, and in arrays of none. */
int swp_fortran_is_contiguous(const CFI_cdesc_t *array) {
  CFI_index_t dense = (CFI_index_t)array->elem_len;
  bool contiguous = true;
  for (int i = 0; i < array->rank; i++) {
    const CFI_dim_t *dim = &array->dim[i];
    if (dim->extent == 0)
      return true;
    contiguous = contiguous && (dim->extent == 1 || dim->sm == dense);
    dense *= dim->extent;
  }
  return contiguous;
}

int swp_fortran_table_read(MPI_Fint comm, const char *path, swp_table **table) {
  return swp_table_read(MPI_Comm_f2c(comm), path, table);
}

int swp_fortran_exchange_plan(MPI_Fint comm, const struct swp_exchange *problem, const char *method,
                              const struct swp_hints *hints, swp_plan **plan) {
  return swp_exchange_plan(MPI_Comm_f2c(comm), problem, method, hints, plan);
}

int swp_fortran_fields_plan(MPI_Fint comm, const struct swp_exchange *problem, int nfields,
                            const int64_t *field_bytes, const char *method, const struct swp_hints *hints,
                            swp_plan **plan) {
  return swp_fields_plan(MPI_Comm_f2c(comm), problem, nfields, field_bytes, method, hints, plan);
}

int swp_fortran_discovery_plan(MPI_Fint comm, const char *method, const struct swp_hints *hints,
                               swp_plan **plan) {
  return swp_discovery_plan(MPI_Comm_f2c(comm), method, hints, plan);
}

/* struct swp_collective with Fortran's handles, and the lengths of its arrays. */
struct fortran_collective {
  int operation;
  int send_count, recv_count;
  MPI_Fint send_type, recv_type, op;
  int root;
  int nrecv_counts, ndispls, nsend_counts, nsend_displs;
  const int *recv_counts, *displs, *send_counts, *send_displs;
};

/* A list that is too short for so many ranks is an error on all of them, if the operation reads it. */
static struct swp_collective convert(const struct fortran_collective *problem, int procs) {
  const bool received = problem->nrecv_counts >= procs && problem->ndispls >= procs;
  const bool sent = problem->nsend_counts >= procs && problem->nsend_displs >= procs;
  return (struct swp_collective){
      .operation = (enum swp_operation)problem->operation,
      .send_count = problem->send_count,
      .send_type = MPI_Type_f2c(problem->send_type),
      .recv_count = problem->recv_count,
      .recv_type = MPI_Type_f2c(problem->recv_type),
      .recv_counts = received ? problem->recv_counts : NULL,
      .displs = problem->displs,
      .send_counts = sent ? problem->send_counts : NULL,
      .send_displs = problem->send_displs,
      .op = MPI_Op_f2c(problem->op),
      .root = problem->root,
  };
}

int swp_fortran_collective_plan(MPI_Fint handle, const struct fortran_collective *problem, const char *method,
                                const struct swp_hints *hints, swp_plan **plan) {
  MPI_Comm comm = MPI_Comm_f2c(handle);
  int procs = 0;
  if (comm != MPI_COMM_NULL)
    MPI_Comm_size(comm, &procs);
  struct swp_collective converted = convert(problem, procs);
  return swp_collective_plan(comm, &converted, method, hints, plan);
}

int swp_fortran_collective_set(swp_plan *plan, const struct fortran_collective *problem) {
  struct swp_statistics statistics = {.procs = 0};
  if (plan != NULL)
    swp_plan_statistics(plan, &statistics, NULL);
  struct swp_collective converted = convert(problem, statistics.procs);
  return swp_collective_set(plan, &converted);
}
