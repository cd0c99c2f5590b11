/* vendor: the collective of the MPI library, as it chooses to do it, or by the algorithm of its own that is
   named. By its PMPI name, which a preloaded library that calls this one does not see. */
#include "algorithms.h"
#include "call.h"
#include "environment.h"
#include "vendor_bytes.h"

#include <stdio.h>
#include <string.h>

enum { ALGORITHM, ENVIRONMENT };

/* Calls on `comm`, and tells of a failed call as the standard names it. The library's own choice, which may
   take 20 ns, pays for a branch only; what a named algorithm moves, it gets as bytes. */
#define VENDOR(call)                                                                                         \
  do {                                                                                                       \
    const struct algorithm *algorithm_ = plan->method_state;                                                 \
    MPI_Comm comm = plan->comm;                                                                              \
    struct items items_;                                                                                     \
    int mpi_error_, error_;                                                                                  \
    if (algorithm_ == NULL) {                                                                                \
      mpi_error_ = P##call;                                                                                  \
      return mpi_error_ == MPI_SUCCESS ? SWP_SUCCESS : swp_fail_mpi(mpi_error_, #call);                      \
    }                                                                                                        \
    comm = algorithm_->comm;                                                                                 \
    error_ = swp_bytes_begin(plan, &send, &recv, &items_);                                                   \
    if (error_ == SWP_SUCCESS) {                                                                             \
      swp_algorithm_begin(algorithm_);                                                                       \
      mpi_error_ = P##call;                                                                                  \
      swp_algorithm_end(algorithm_);                                                                         \
      error_ = mpi_error_ == MPI_SUCCESS ? SWP_SUCCESS : swp_fail_mpi(mpi_error_, #call);                    \
    }                                                                                                        \
    return swp_bytes_end(plan, &items_, recv, error_);                                                       \
  } while (0)

static int vendor_bcast(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  VENDOR(MPI_Bcast(recv, side->count, side->type, plan->features.root, comm));
}

static int vendor_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(MPI_Gather(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                    plan->features.root, comm));
}

static int vendor_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(MPI_Scatter(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                     plan->features.root, comm));
}

static int vendor_reduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  VENDOR(MPI_Reduce(send, recv, side->count, side->type, plan->call->op, plan->features.root, comm));
}

static int vendor_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  VENDOR(MPI_Allreduce(send, recv, side->count, side->type, plan->call->op, comm));
}

static int vendor_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(
      MPI_Allgather(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type, comm));
}

static int vendor_allgatherv(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  if (plan->procs == 1) /* MPICH 4.0.2 then takes no notice of displs */
    return send == MPI_IN_PLACE ? SWP_SUCCESS
                                : swp_copy(plan, &call->send, send, call->send.count, &call->recv,
                                           swp_item(&call->recv, recv, call->displs[0]), call->recv.count);
  VENDOR(MPI_Allgatherv(send, call->send.count, call->send.type, recv, call->recv_counts, call->displs,
                        call->recv.type, comm));
}

static int vendor_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(
      MPI_Alltoall(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type, comm));
}

static int vendor_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  VENDOR(MPI_Reduce_scatter_block(send, recv, side->count, side->type, plan->call->op, comm));
}

static bool is_named(const struct spec *spec) {
  return spec->arguments[ALGORITHM].given;
}

static const char *moves_applicable(const struct spec *spec, const struct features *features) {
  return is_named(spec) ? swp_total_applicable(spec, features) : NULL;
}

static int64_t moves_scratch_bytes(const struct swp_plan *plan) {
  return is_named(&plan->spec) ? swp_bytes_scratch_bytes(plan) : 0;
}

/*
 * Why an algorithm is never used; NULL: it may be. Both are MPICH's. The variable of `smp` holds for the
 * collectives that it is made of too, and it is no part of itself: told to fail, some ranks do, and others
 * wait for ever. `noncommutative` writes past its memory for types whose data do not begin at 0.
 */
static const char *why_unused(const char *algorithm) {
  if (strcmp(algorithm, "smp") == 0)
    return "it cannot be set without setting its own parts";
  return strcmp(algorithm, "noncommutative") == 0 ? "it is for operations that do not commute" : NULL;
}

static const char *vendor_applicable(const struct spec *spec, const struct features *features) {
  const struct argument *argument = &spec->arguments[ALGORITHM], *environment = &spec->arguments[ENVIRONMENT];
  if (environment->given && argument->given)
    return "an algorithm is set either by the library's variables or by the environment";
  if (environment->given && !swp_environment_has(features->operation, environment->word))
    return "the process was not started with that algorithm in its environment";
  if (!argument->given)
    return NULL;
  if (!features->predefined)
    return "the operation is a program's own, which not every algorithm of a library does right";
  if (!swp_algorithm_known(features->operation, argument->word))
    return "the MPI library has no such algorithm, or Open MPI 4 was started without "
           "OMPI_MCA_coll_tuned_use_dynamic_rules=1";
  if (why_unused(argument->word) != NULL)
    return why_unused(argument->word);
  /* Open MPI's, which elsewhere fails: all others run something else where they cannot do a call. */
  return strcmp(argument->word, "two_proc") != 0 || features->procs == 2 ? NULL : "it is for two processes";
}

/* The library's choice, and then each of its algorithms. */
static bool vendor_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  const char *name = "";
  for (int i = 0; index > 0; i++) {
    name = swp_algorithm_name(operation, i);
    if (name == NULL || procs == 1)
      return false;
    index -= why_unused(name) == NULL;
  }
  snprintf(text, length, "vendor%s%s", name[0] != '\0' ? ":algorithm=" : "", name);
  return true;
}

static int vendor_plan(struct swp_plan *plan) {
  const struct argument *argument = &plan->spec.arguments[ALGORITHM];
  int error = SWP_SUCCESS;
  if (!is_named(&plan->spec))
    return SWP_SUCCESS;
  plan->method_state = swp_plan_allocate(plan, 1, sizeof(struct algorithm));
  error = plan->method_state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
  if (error == SWP_SUCCESS && swp_thread_level() == MPI_THREAD_MULTIPLE)
    error = swp_fail(SWP_ERR_NOT_APPLICABLE,
                     "vendor: the algorithm would hold for other threads too, whose calls are under way");
  TRY(swp_agree(plan->comm, error));
  TRY(swp_algorithm_open(plan->comm, plan->operation, argument->word, plan->method_state));
done:
  return error;
}

static void vendor_free(struct swp_plan *plan) {
  swp_algorithm_close(plan->method_state);
}

const struct method swp_collective_vendor = {
    .name = "vendor",
    .summary = "the collective of the MPI library, as it chooses, or by an algorithm of its own",
    .source = "the MPI library",
    .usage = "algorithm=NAME or environment=NAME",
    .parameters = {[ALGORITHM] = {"algorithm", PARAMETER_WORD, 0, 0, NULL},
                   [ENVIRONMENT] = {"environment", PARAMETER_WORD, 0, 0, NULL}},
    .applicable = vendor_applicable,
    .variant = vendor_variant,
    .plan = vendor_plan,
    .free = vendor_free,
    .procedures =
        {
            [SWP_BCAST] = {vendor_bcast, moves_scratch_bytes, moves_applicable},
            [SWP_GATHER] = {vendor_gather, moves_scratch_bytes, moves_applicable},
            [SWP_SCATTER] = {vendor_scatter, moves_scratch_bytes, moves_applicable},
            [SWP_REDUCE] = {vendor_reduce},
            [SWP_ALLREDUCE] = {vendor_allreduce},
            [SWP_ALLGATHER] = {vendor_allgather, moves_scratch_bytes, moves_applicable},
            [SWP_ALLGATHERV] = {vendor_allgatherv, moves_scratch_bytes, moves_applicable},
            [SWP_ALLTOALL] = {vendor_alltoall, moves_scratch_bytes, moves_applicable},
            [SWP_REDUCE_SCATTER_BLOCK] = {vendor_reduce_scatter_block},
        },
};
