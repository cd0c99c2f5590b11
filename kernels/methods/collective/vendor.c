/* vendor: the MPI library's collective, with the algorithm that it chooses or a named one of its own. It is
   called by its PMPI name, so a preloaded library that calls this one does not intercept it. */
#include "algorithms.h"
#include "blocks.h"
#include "collective.h"
#include "environment.h"
#include "textbook.h"
#include "variables.h"

#include <stdio.h>
#include <string.h>

enum { ALGORITHM, ENVIRONMENT };
_Static_assert(WORD_BYTES >= (int)ALGORITHM_BYTES, "a spec has room for the names of algorithms");

/* ---- Bytes ---- */

/*
 * Turns a call that moves items into one that moves bytes, the same on every rank: algorithms of MPI
 * libraries cut and forward data by one rank's type, and are wrong if types differ between ranks. `struct
 * items` keeps the original call.
 */
struct items {
  struct call call;
  void *recv;
};

static bool is_packed(const struct side *side) {
  return side->type != MPI_DATATYPE_NULL && !side->dense;
}

static int64_t send_items(const struct swp_plan *plan) {
  bool all = plan->operation == SWP_SCATTER || plan->operation == SWP_ALLTOALL;
  return (int64_t)call_of(plan)->send.count * (all ? plan->procs : 1);
}

static int64_t recv_items(const struct swp_plan *plan, const struct side *side) {
  bool one = plan->operation == SWP_BCAST || plan->operation == SWP_SCATTER;
  return (int64_t)side->count * (one ? 1 : plan->procs);
}

/* ---- Scratch: counts and places of listed blocks, the bytes of recv, the bytes of send ---- */

enum { LISTS = 4 }; /* of an alltoallv: counts and places of recv, and then of send */

static int64_t counts_bytes(const struct swp_plan *plan) {
  return swp_is_listed(plan->operation) ? LISTS * (int64_t)plan->procs * (int64_t)sizeof(int) : 0;
}

/* Listed blocks are bytes in a buffer where they lie in a row. */
static bool is_recv_packed(const struct swp_plan *plan) {
  if (swp_is_listed(plan->operation))
    return swp_find_row(call_of(plan), plan->procs) < 0;
  return is_packed(&call_of(plan)->recv);
}

static int64_t find_sent_row(const struct swp_plan *plan) {
  const struct call *call = call_of(plan);
  return swp_find_row_of(&call->send, call->send_counts, call->send_displs, plan->procs);
}

static bool is_send_packed(const struct swp_plan *plan) {
  return call_of(plan)->send_counts != NULL ? find_sent_row(plan) < 0 : is_packed(&call_of(plan)->send);
}

static int64_t recv_bytes(const struct swp_plan *plan) {
  if (!is_recv_packed(plan) || (plan->operation == SWP_SCATTER && !swp_is_block(plan, &call_of(plan)->recv)))
    return 0; /* what is no block is not received: the call is made in place */
  return swp_is_listed(plan->operation)
             ? plan->features.total_bytes
             : recv_items(plan, &call_of(plan)->recv) * call_of(plan)->recv.item_bytes;
}

static int64_t send_bytes(const struct swp_plan *plan) {
  const bool is_listed = call_of(plan)->send_counts != NULL;
  if (!is_send_packed(plan) || (!is_listed && !swp_is_block(plan, &call_of(plan)->send)))
    return 0; /* what is no block is not sent: the call is made in place */
  return is_listed ? plan->features.total_bytes : send_items(plan) * call_of(plan)->send.item_bytes;
}

/* Room for what does not lie in memory as bytes, and for the counts of listed blocks. */
static int64_t bytes_scratch_bytes(const struct swp_plan *plan) {
  return counts_bytes(plan) + recv_bytes(plan) + send_bytes(plan);
}

/* ---- To bytes ---- */

/* The items that a collective reads from recv: the vector of a bcast, and in place the rank's block, or all
   blocks. */
static int pack_recv(const struct swp_plan *plan, const void *send, void *recv, char *bytes,
                     int64_t own_place) {
  const struct side *side = &call_of(plan)->recv;
  const struct blocks blocks = swp_blocks_of_ranks(plan, recv);
  if (plan->operation == SWP_BCAST)
    return plan->rank == plan->features.root ? swp_pack(plan, side, recv, side->count, bytes) : SWP_SUCCESS;
  if (send != MPI_IN_PLACE)
    return SWP_SUCCESS;
  if (plan->operation == SWP_ALLTOALL)
    return swp_pack(plan, side, recv, recv_items(plan, side), bytes);
  if (plan->operation == SWP_ALLTOALLV)
    return swp_blocks_pack(plan, &blocks, side, bytes);
  return swp_pack_own(plan, send, recv, bytes + own_place);
}

static void count_blocks(const struct swp_plan *plan, const struct side *side, const int *items,
                         int *counts) {
  int *places = counts + plan->procs, at = 0;
  for (int i = 0; i < plan->procs; i++) {
    counts[i] = (int)(items[i] * side->item_bytes);
    places[i] = at;
    at += counts[i];
  }
}

static struct side bytes_side(int64_t bytes) {
  return (struct side){
      .count = (int)bytes, .type = MPI_BYTE, .item_bytes = 1, .extent = 1, .span = 1, .dense = true};
}

/* Replaces send, and its counts in the call, by bytes. */
static int begin_send(struct swp_plan *plan, const void **send, char *image, int *counts) {
  struct call *call = &collective_plan_of(plan)->call;
  const bool listed = call->send_counts != NULL;
  int error = SWP_SUCCESS;
  if (is_send_packed(plan)) {
    const struct blocks blocks = swp_blocks_sent(plan, *send, NULL);
    TRY(listed ? swp_blocks_pack(plan, &blocks, &call->send, image)
               : swp_pack(plan, &call->send, *send, send_items(plan), image));
    *send = image;
  } else if (listed) {
    *send = swp_item(&call->send, *send, find_sent_row(plan));
  }
  if (listed) {
    count_blocks(plan, &call->send, call->send_counts, counts);
    call->send_counts = counts;
    call->send_displs = counts + plan->procs;
  }
done:
  return error;
}

/* Replaces the plan's call and the buffers by those of bytes; a reduction stays unchanged. */
static int bytes_begin(struct swp_plan *plan, const void **send, void **recv, struct items *items) {
  struct call *call = &collective_plan_of(plan)->call;
  bool listed = swp_is_listed(plan->operation);
  int *counts = (int *)(void *)scratch_of(plan), error = SWP_SUCCESS;
  char *recv_image = scratch_of(plan) + counts_bytes(plan), *send_image = recv_image + recv_bytes(plan);
  int64_t own_bytes = plan->features.bytes, own_place = plan->rank * plan->features.bytes;
  if (swp_shapes[plan->operation].reduces)
    return SWP_SUCCESS;
  *items = (struct items){*call, *recv};
  if (listed) {
    count_blocks(plan, &call->recv, call->recv_counts, counts);
    own_bytes = counts[plan->rank];
    own_place = counts[plan->procs + plan->rank];
  }
  if (*recv != MPI_IN_PLACE && is_recv_packed(plan)) {
    TRY(pack_recv(plan, *send, *recv, recv_image, own_place));
    *recv = recv_image;
  } else if (listed) {
    *recv = swp_item(&call->recv, *recv, swp_find_row(call, plan->procs));
  }
  if (*send != MPI_IN_PLACE)
    TRY(begin_send(plan, send, send_image, counts + 2 * (int64_t)plan->procs));
  call->send = call->recv = bytes_side(own_bytes);
  call->recv_counts = listed ? counts : NULL;
  call->displs = listed ? counts + plan->procs : NULL;
done:
  return error;
}

/* ---- To items ---- */

/* Restores the call, and copies the bytes to the items unless the call failed. Returns the error. */
static int bytes_end(struct swp_plan *plan, const struct items *items, const void *bytes, int error) {
  struct call *call = &collective_plan_of(plan)->call;
  const struct side *side = &call->recv;
  if (swp_shapes[plan->operation].reduces)
    return error;
  *call = items->call;
  bool is_source = plan->operation == SWP_BCAST && plan->rank == plan->features.root;
  /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): bytes_begin set it */
  if (error != SWP_SUCCESS || items->recv == MPI_IN_PLACE || !is_recv_packed(plan) || is_source)
    return error;
  if (!swp_is_listed(plan->operation))
    return swp_unpack(plan, side, bytes, recv_items(plan, side), items->recv);
  const struct blocks blocks = swp_blocks_of_ranks(plan, items->recv);
  return swp_blocks_unpack(plan, &blocks, side, bytes);
}

/* ---- The calls ---- */

/* Calls on `comm`, and reports a failed call by its standard name. The library's own choice, which may take
   20 ns, costs only a branch more; a named algorithm gets its data as bytes. */
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
    error_ = bytes_begin(plan, &send, &recv, &items_);                                                       \
    if (error_ == SWP_SUCCESS) {                                                                             \
      swp_algorithm_begin(algorithm_);                                                                       \
      mpi_error_ = P##call;                                                                                  \
      swp_algorithm_end(algorithm_);                                                                         \
      error_ = mpi_error_ == MPI_SUCCESS ? SWP_SUCCESS : swp_fail_mpi(mpi_error_, #call);                    \
    }                                                                                                        \
    return bytes_end(plan, &items_, recv, error_);                                                           \
  } while (0)

static int vendor_bcast(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  VENDOR(MPI_Bcast(recv, side->count, side->type, plan->features.root, comm));
}

static int vendor_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  VENDOR(MPI_Gather(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                    plan->features.root, comm));
}

static int vendor_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  VENDOR(MPI_Scatter(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                     plan->features.root, comm));
}

static int vendor_reduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  VENDOR(MPI_Reduce(send, recv, side->count, side->type, call_of(plan)->op, plan->features.root, comm));
}

static int vendor_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  VENDOR(MPI_Allreduce(send, recv, side->count, side->type, call_of(plan)->op, comm));
}

static int vendor_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  VENDOR(
      MPI_Allgather(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type, comm));
}

static int vendor_allgatherv(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  if (plan->procs == 1) /* MPICH 4.0.2 then ignores displs */
    return send == MPI_IN_PLACE ? SWP_SUCCESS
                                : swp_copy(plan, &call->send, send, call->send.count, &call->recv,
                                           swp_item(&call->recv, recv, call->displs[0]), call->recv.count);
  VENDOR(MPI_Allgatherv(send, call->send.count, call->send.type, recv, call->recv_counts, call->displs,
                        call->recv.type, comm));
}

static int vendor_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  VENDOR(
      MPI_Alltoall(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type, comm));
}

static int vendor_alltoallv(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = call_of(plan);
  VENDOR(MPI_Alltoallv(send, call->send_counts, call->send_displs, call->send.type, recv, call->recv_counts,
                       call->displs, call->recv.type, comm));
}

static int vendor_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &call_of(plan)->recv;
  VENDOR(MPI_Reduce_scatter_block(send, recv, side->count, side->type, call_of(plan)->op, comm));
}

static int vendor_barrier(struct swp_plan *plan, const void *send, void *recv) {
  VENDOR(MPI_Barrier(comm));
}

static bool is_named(const struct spec *spec) {
  return spec->arguments[ALGORITHM].given;
}

static const char *moves_applicable(const struct spec *spec, const struct features *features) {
  return is_named(spec) ? swp_total_applicable(spec, features) : NULL;
}

static int64_t moves_scratch_bytes(const struct swp_plan *plan) {
  return is_named(&plan->spec) ? bytes_scratch_bytes(plan) : 0;
}

/*
 * Why an algorithm is not used on so many processes; NULL: it may be. Open MPI's `two_proc` fails, where all
 * others run another algorithm if they cannot do a call. MPICH's `smp` has a variable that also applies to
 * the collectives that it is made of, and it cannot contain itself: set to fail, some ranks do, and others
 * wait for ever. MPICH's `noncommutative` writes past its memory for types whose data do not begin at 0.
 */
static const char *why_unused(const char *algorithm, int procs) {
  if (strcmp(algorithm, "two_proc") == 0 && procs != 2)
    return "it is only for two processes";
  if (strcmp(algorithm, "smp") == 0)
    return "it cannot be set without setting its own parts";
  return strcmp(algorithm, "noncommutative") == 0 ? "it is only for operations that do not commute" : NULL;
}

static const char *vendor_applicable(const struct spec *spec, const struct features *features) {
  const struct argument *argument = &spec->arguments[ALGORITHM], *environment = &spec->arguments[ENVIRONMENT];
  if (environment->given && argument->given)
    return "an algorithm is set either by the library's variables or by the environment";
  if (!argument->given)
    return NULL;
  if (!features->predefined)
    return "the operation or its type is user-defined, which not every algorithm of a library handles "
           "correctly";
  return why_unused(argument->word, features->procs);
}

static const char *vendor_absent(const struct spec *spec, enum swp_operation operation) {
  const struct argument *argument = &spec->arguments[ALGORITHM], *environment = &spec->arguments[ENVIRONMENT];
  if (environment->given && !swp_environment_has(operation, environment->word))
    return "the process was not started with that algorithm in its environment";
  if (argument->given && !swp_algorithm_known(operation, argument->word))
    return "the MPI library has no such algorithm, or Open MPI 4 was started "
           "without " OPENMPI_PREFIX OPENMPI_SWITCH "=1";
  return NULL;
}

/* The library's choice, and then each of its algorithms. */
static bool vendor_variant(enum swp_operation operation, int index, int procs, char *text, size_t length) {
  const char *name = "";
  for (int i = 0; index > 0; i++) {
    name = swp_algorithm_name(operation, i);
    if (name == NULL || procs == 1)
      return false;
    index -= why_unused(name, procs) == NULL;
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
    error =
        swp_fail(SWP_ERR_NOT_APPLICABLE,
                 "vendor: with MPI_THREAD_MULTIPLE the algorithm would also affect calls of other threads");
  TRY(swp_agree(plan->comm, error));
  TRY(swp_algorithm_open(plan->comm, plan->operation, argument->word, plan->method_state));
done:
  return error;
}

static void vendor_free(struct swp_plan *plan) {
  if (plan->method_state != NULL)
    swp_algorithm_close(plan->method_state);
}

static int vendor_estimate(const struct swp_plan *plan, const struct estimate *estimate, double *seconds) {
  const struct group group = swp_group(plan, estimate->model);
  const char *name = estimate->spec->arguments[ALGORITHM].word;
  formula *its = is_named(estimate->spec) ? swp_textbook_algorithm(plan->operation, name) : NULL;
  const double m = (double)plan->features.bytes;
  *seconds = its != NULL ? its(&group, m) : swp_textbook_least_s(plan->operation, &group, m);
  return SWP_SUCCESS;
}

const struct method swp_collective_vendor = {
    .name = "vendor",
    .summary = "the MPI library's collective, with the algorithm it chooses or a named one of its own",
    .source = "the MPI library",
    .usage = "algorithm=NAME or environment=NAME",
    .parameters = {[ALGORITHM] = {.name = "algorithm", .type = PARAMETER_WORD},
                   [ENVIRONMENT] = {.name = "environment", .type = PARAMETER_WORD}},
    .applicable = vendor_applicable,
    .absent = vendor_absent,
    .variant = vendor_variant,
    .plan = vendor_plan,
    .free = vendor_free,
    .estimate = vendor_estimate,
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
            [SWP_ALLTOALLV] = {vendor_alltoallv, moves_scratch_bytes, moves_applicable},
            [SWP_BARRIER] = {vendor_barrier},
        },
};
