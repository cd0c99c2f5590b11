/* Planning: agrees on the problem, selects a method, and lets it plan. */
#include "plan.h"

#include "collective.h"
#include "communicator.h"
#include "consensus.h"
#include "inbox.h"
#include "off.h"
#include "select.h"
#include "statistics.h"
#include "table.h"

#include <stdlib.h>

void *swp_plan_allocate(struct swp_plan *plan, int64_t count, size_t bytes) {
  return swp_allocate((size_t)count, bytes, &plan->account);
}

int swp_plan_no_memory(const struct swp_plan *plan) {
  return swp_fail(SWP_ERR_MEMORY, "no memory to plan %s", plan->spec.text);
}

int swp_plan_stages(struct swp_plan *plan, int nstages) {
  plan->stages = swp_plan_allocate(plan, nstages, sizeof *plan->stages);
  plan->nstages = plan->stages != NULL ? nstages : 0;
  return plan->stages != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan);
}

/* Checks that what must be equal on all ranks is: the greatest and the least of each value are the same. A
   rank without messages learns the size of items. */
static int check_equal(struct swp_plan *plan, const char *method) {
  enum { VALUES = 18, ITEM_BYTES = 2 };
  const int64_t ANY = INT64_MIN; /* of a rank that has no say */
  static const char *const names[VALUES] = {"operation",
                                            "method",
                                            "item_bytes",
                                            "hints.flags",
                                            "hints.executions",
                                            "hints.degree",
                                            "hints.bytes",
                                            "table in the hints",
                                            "hints.ppn",
                                            "hints.placement",
                                            "hints.budget_s",
                                            SWP_OFF,
                                            "root",
                                            "number of bytes",
                                            "number of bytes of all ranks",
                                            "largest of the numbers of bytes",
                                            "commutativity of the operation",
                                            "operation of the reduction"};
  const struct swp_hints *hints = &plan->hints;
  const struct features *features = &plan->features;
  int64_t mine[2 * VALUES] = {plan->operation,
                              method != NULL ? swp_text_hash(method) : -1, /* NULL differs from "" */
                              plan->problem.item_bytes,
                              hints->flags,
                              hints->executions,
                              hints->degree,
                              hints->bytes,
                              hints->table != NULL ? hints->table->hash : -1,
                              hints->ppn,
                              hints->placement,
                              (int64_t)(hints->budget_s * 1e9),
                              swp_text_hash(getenv(SWP_OFF)),
                              features->root,
                              features->bytes,
                              features->total_bytes,
                              features->most_bytes,
                              features->commutative,
                              features->predefined};
  int64_t greatest[2 * VALUES];
  int error = SWP_SUCCESS;
  for (int i = 0; i < VALUES; i++)
    mine[VALUES + i] = ~mine[i]; /* of which the greatest is that of the least */
  if (plan->problem.item_bytes == 0)
    mine[ITEM_BYTES] = mine[VALUES + ITEM_BYTES] = ANY;
  MPI_TRY(MPI_Allreduce(mine, greatest, 2 * VALUES, MPI_INT64_T, MPI_MAX, plan->comm));
  for (int i = 0; i < VALUES; i++)
    if (greatest[i] != ANY && greatest[i] != ~greatest[VALUES + i])
      return swp_fail(SWP_ERR_ARGUMENT, "the %s differs between ranks", names[i]);
  plan->problem.item_bytes = greatest[ITEM_BYTES] != ANY ? greatest[ITEM_BYTES] : 1;
done:
  return error;
}

/* What is unknown of a discovery comes from the caller's hints. */
static int discovery_features(struct swp_plan *plan) {
  plan->features.mmax = plan->hints.degree;
  plan->features.mavg = (double)plan->hints.degree;
  plan->features.bytes = plan->hints.bytes;
  return swp_consensus_examine(plan);
}

static int check_hints(const struct swp_hints *hints, enum swp_operation operation) {
  if ((hints->flags & ~(SWP_SAME_COMM | SWP_MEASURE)) != SWP_ESTIMATE)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "hints.flags is %u; only SWP_ESTIMATE, SWP_MEASURE and SWP_SAME_COMM are known",
                    hints->flags);
  if ((hints->flags & SWP_MEASURE) != 0 && operation == SWP_DISCOVERY)
    return swp_fail(SWP_ERR_ARGUMENT, "hints.flags: SWP_MEASURE has nothing to measure in a discovery, which "
                                      "is told its messages at each execution");
  if (!(hints->budget_s >= 0 && hints->budget_s <= 1e6))
    return swp_fail(SWP_ERR_ARGUMENT, "hints.budget_s is %g; write seconds up to 1e6, or 0", hints->budget_s);
  if (hints->executions < 0 || hints->degree < -1 || hints->bytes < -1)
    return swp_fail(
        SWP_ERR_ARGUMENT,
        "hints.executions is %lld, degree %lld, bytes %lld: write at least 0, or 0, -1, -1 for unknown",
        (long long)hints->executions, (long long)hints->degree, (long long)hints->bytes);
  if (hints->ppn < 0)
    return swp_fail(SWP_ERR_ARGUMENT, "hints.ppn is %d; it must be positive, or 0 for the machine's nodes",
                    hints->ppn);
  if (hints->placement != SWP_PLACEMENT_BLOCK && hints->placement != SWP_PLACEMENT_CYCLIC)
    return swp_fail(SWP_ERR_ARGUMENT, "hints.placement is %d; only block and cyclic are known",
                    hints->placement);
  return SWP_SUCCESS;
}

static int create_spare_inbox(struct swp_plan *plan) {
  plan->spare_inbox = swp_inbox_create();
  return plan->spare_inbox != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for an inbox");
}

/* What is to be planned: one of the two, or none for a discovery. */
struct request {
  enum swp_operation operation;
  const struct swp_exchange *exchange;
  const struct swp_collective *collective;
};

/* What this rank can do and check by itself. */
static int begin_plan(struct swp_plan *plan, const struct request *request) {
  int error = check_hints(&plan->hints, plan->operation);
  if (error == SWP_SUCCESS)
    error = swp_off_check();
  if (error != SWP_SUCCESS)
    return error;
  if (plan->operation == SWP_EXCHANGE)
    return swp_problem_build(request->exchange, plan->rank, plan->procs, &plan->problem, &plan->account);
  if (plan->operation == SWP_DISCOVERY)
    return create_spare_inbox(plan);
  return swp_collective_begin(plan, request->collective);
}

static int plan_method(struct swp_plan *plan, const char *method) {
  int error = SWP_SUCCESS;
  TRY(swp_select_method(plan, method));
  plan->start = plan->spec.method->start;
  plan->advance = plan->spec.method->advance;
  plan->has_self = plan->problem.self.bytes > 0;
  TRY(swp_agree(plan->comm, plan->spec.method->plan(plan)));
  plan->forwards = plan->nstages > 1;
done:
  return error;
}

/* The steps that all operations share, once the plan exists on all ranks. */
static int make_plan(MPI_Comm comm, struct swp_plan *plan, const struct request *request,
                     const char *method) {
  int error = SWP_SUCCESS;
  TRY(swp_agree(plan->comm, begin_plan(plan, request)));
  TRY(check_equal(plan, method));
  TRY(swp_topology_find(comm, plan->comm, plan->hints.ppn, plan->hints.placement, &plan->topology));
  plan->yields = plan->topology->oversubscribed;
  plan->polls = plan->yields && !swp_mpi_yields();
  plan->features.procs = plan->procs;
  plan->features.nodes = plan->topology->nodes;
  plan->features.ppn = plan->topology->ppn;
  plan->features.shared_memory = plan->topology->shared_memory;
  plan->features.alone = plan->topology->alone;
  if (plan->operation == SWP_EXCHANGE)
    TRY(swp_statistics_find(plan));
  else if (plan->operation == SWP_DISCOVERY)
    TRY(discovery_features(plan));
  if (swp_is_collective(plan->operation))
    TRY(swp_collective_choose(plan, method));
  else
    TRY(plan_method(plan, method));
  if (plan->operation == SWP_EXCHANGE)
    TRY(swp_statistics_gather(plan));
  swp_statistics_describe_place(plan);
done:
  return error;
}

static bool has_same_comm(const struct request *request, const struct swp_hints *hints) {
  return hints != NULL && (hints->flags & SWP_SAME_COMM) != 0 && swp_is_collective(request->operation);
}

static int create_plan(MPI_Comm comm, const struct request *request, const char *method,
                       const struct swp_hints *hints, swp_plan **result) {
  MPI_Comm own;
  bool same_comm = has_same_comm(request, hints);
  if (result != NULL)
    *result = NULL;
  int error = same_comm ? swp_comm_take(comm, &own) : swp_comm_duplicate(comm, &own);
  if (error != SWP_SUCCESS)
    return error;
  struct swp_plan *plan = swp_allocate(1, sizeof *plan, NULL);
  if (result == NULL)
    error = swp_fail(SWP_ERR_ARGUMENT, "planning: the place for the plan is NULL");
  else if (plan == NULL)
    error = swp_fail(SWP_ERR_MEMORY, "planning: no memory for a plan");
  error = swp_agree(own, error);
  if (error != SWP_SUCCESS) {
    swp_release(plan);
    goto done;
  }
  plan->account = (int64_t)sizeof *plan;
  plan->operation = plan->features.operation = request->operation;
  plan->comm = own;
  plan->same_comm = same_comm;
  own = MPI_COMM_NULL;
  plan->hints = hints != NULL ? *hints : (struct swp_hints)SWP_HINTS_DEFAULT;
  plan->features.executions = plan->hints.executions;
  MPI_Comm_rank(plan->comm, &plan->rank);
  MPI_Comm_size(plan->comm, &plan->procs);
  error = make_plan(comm, plan, request, method);
  if (error == SWP_SUCCESS)
    *result = plan;
  else
    swp_plan_free(&plan);
done:
  if (own != MPI_COMM_NULL && !same_comm)
    MPI_Comm_free(&own);
  return error;
}

int swp_exchange_plan(MPI_Comm comm, const struct swp_exchange *problem, const char *method,
                      const struct swp_hints *hints, swp_plan **plan) {
  return create_plan(comm, &(struct request){SWP_EXCHANGE, problem, NULL}, method, hints, plan);
}

int swp_discovery_plan(MPI_Comm comm, const char *method, const struct swp_hints *hints, swp_plan **plan) {
  return create_plan(comm, &(struct request){SWP_DISCOVERY, NULL, NULL}, method, hints, plan);
}

int swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                        const struct swp_hints *hints, swp_plan **plan) {
  struct request request = {SWP_BCAST, NULL, problem};
  if (problem != NULL && swp_operation_name((int)problem->operation) != NULL &&
      swp_is_collective(problem->operation))
    request.operation = problem->operation; /* another is refused later, on all ranks */
  return create_plan(comm, &request, method, hints, plan);
}

int swp_plan_free(swp_plan **pointer) {
  if (pointer == NULL || *pointer == NULL)
    return SWP_SUCCESS;
  struct swp_plan *plan = *pointer;
  if (plan->state == PLAN_STARTED)
    return swp_fail(SWP_ERR_STATE, "swp_plan_free: the exchange is under way; call swp_wait first");
  swp_release_keeps(plan->state == PLAN_POISONED); /* its messages may still be under way */
  swp_collective_end(plan);
  if (plan->spec.method != NULL && plan->spec.method->free != NULL && plan->method_state != NULL)
    plan->spec.method->free(plan);
  swp_release(plan->method_state);
  swp_inbox_destroy(plan->spare_inbox);
  swp_release_keeps(false);
  swp_problem_free(&plan->problem);
  swp_release(plan->stages);
  swp_release(plan->discovery_scratch);
  swp_topology_release(plan->topology);
  int mpi_error = plan->same_comm ? MPI_SUCCESS : MPI_Comm_free(&plan->comm);
  swp_release(plan);
  *pointer = NULL;
  return mpi_error == MPI_SUCCESS ? SWP_SUCCESS : swp_fail_mpi(mpi_error, "MPI_Comm_free");
}
