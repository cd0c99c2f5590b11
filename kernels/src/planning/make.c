#include "make.h"

#include "algorithms.h"
#include "inbox.h"
#include "prepare.h"
#include "selector.h"

#include <string.h>

struct swp_plan *swp_plan_new(enum swp_operation operation) {
  size_t bytes = sizeof(struct collective_plan);
  int64_t account = 0;
  if (!swp_is_collective(operation))
    bytes = operation == SWP_EXCHANGE ? sizeof(struct exchange_plan) : sizeof(struct discovery_plan);
  struct swp_plan *plan = swp_allocate(1, bytes, &account);
  if (plan != NULL) {
    plan->account = account;
    plan->operation = plan->features.operation = operation;
    plan->comm = MPI_COMM_NULL;
  }
  return plan;
}

void swp_plan_place(struct swp_plan *plan, struct topology *topology) {
  plan->topology = topology;
  plan->yields = topology->oversubscribed;
  /* Another thread may start an exchange while this one waits, and may wait for this one. */
  const bool threads = !SWP_SIMULATED && swp_thread_level() == MPI_THREAD_MULTIPLE;
  plan->polls = threads || (plan->yields && !swp_mpi_yields());
  plan->features.procs = plan->procs;
  plan->features.nodes = topology->nodes;
  plan->features.ppn = topology->ppn;
  plan->features.shared_memory = topology->shared_memory;
  plan->features.alone = topology->alone;
  plan->features.without_world = topology->without_world;
}

int swp_plan_by_method(struct swp_plan *plan, const struct spec *spec) {
  plan->spec = *spec;
  plan->start = spec->method->start;
  plan->advance = spec->method->advance;
  int error = swp_plan_prepare(plan);
  if (plan->operation == SWP_EXCHANGE) {
    const struct exchange_plan *exchange = exchange_plan_of(plan);
    plan->has_self = exchange->problem->self.bytes > 0;
    plan->forwards = exchange->nstages > 1;
    if (plan->has_fields)
      plan->advance = swp_fields_advance;
  }
  return error;
}

static void release_stages(struct exchange_plan *exchange) {
  swp_release(exchange->stages);
  swp_release(exchange->tallies);
  exchange->stages = NULL;
  exchange->tallies = NULL;
  exchange->nstages = 0;
  exchange->copied_bytes = exchange->forwarded_bytes = 0;
  memset(exchange->traffic, 0, sizeof exchange->traffic);
}

void swp_plan_unmake(struct swp_plan *plan) {
  swp_plan_unprepare(plan);
  plan->arrangement[0] = '\0';
  if (plan->operation == SWP_EXCHANGE)
    release_stages(exchange_plan_of(plan));
}

/* Room for what the method needs for the plan's call. Local. */
static int reserve_scratch(struct collective_plan *collective) {
  struct swp_plan *plan = &collective->plan;
  const struct procedure *procedure = collective->procedure;
  int64_t bytes = procedure->scratch_bytes != NULL ? procedure->scratch_bytes(plan) : 0;
  if (bytes <= collective->scratch_bytes)
    return SWP_SUCCESS;
  char *scratch = swp_allocate_buffer((size_t)bytes);
  if (scratch == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory for the %lld bytes that %s needs", (long long)bytes,
                    plan->spec.text);
  swp_release(collective->scratch);
  collective->scratch = scratch;
  plan->account += bytes - collective->scratch_bytes;
  collective->scratch_bytes = bytes;
  return SWP_SUCCESS;
}

static int compile(struct collective_plan *collective, const struct sources *sources) {
  struct swp_plan *plan = &collective->plan;
  int error = swp_choices_compile(sources, &plan->features, &plan->account, &collective->own_choices);
  return error == SWP_SUCCESS ? swp_prepare_begin(collective, collective->own_choices) : error;
}

/* Returns whether a choice that was found without a look at the type is one for these features. */
static bool is_for(const struct collective_plan *collective, const struct features *features,
                   const struct match *match) {
  return (features->predefined && !features->without_world) ||
         swp_not_applicable(&collective->choices->list[match->index].spec, features) == NULL;
}

/* match NULL: to be found. */
static int use(struct collective_plan *collective, const struct features *features,
               const struct match *match) {
  return match != NULL && is_for(collective, features, match) ? swp_prepare_match(collective, features, match)
                                                              : swp_prepare_choice(collective, features);
}

/* Call it when this rank has collected its choices, or failed to. */
static int begin(struct collective_plan *collective, int error, const struct match *match) {
  struct swp_plan *plan = &collective->plan;
  TRY(swp_agree(plan->comm, error));
  TRY(swp_choices_agree(plan->comm, collective->choices, plan->operation, collective->refused));
  TRY(use(collective, &plan->features, match));
  TRY(swp_agree(plan->comm, reserve_scratch(collective)));
done:
  return error;
}

int swp_plan_collective(struct collective_plan *collective, const struct sources *sources) {
  return begin(collective, compile(collective, sources), NULL);
}

/* Methods rely on what the selector asked them about. */
static int check_layout(const struct features *planned, const struct features *selected) {
  if (planned->nodes != selected->nodes || planned->ppn != selected->ppn)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "swp_selector_plan: the selector is for %d nodes of up to %d ranks, not %d of up to %d",
                    selected->nodes, selected->ppn, planned->nodes, planned->ppn);
  if (selected->shared_memory && !planned->shared_memory)
    return swp_fail(
        SWP_ERR_ARGUMENT,
        "swp_selector_plan: the selector is for one node, whose ranks share memory; these do not");
  if (selected->alone && !planned->alone)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "swp_selector_plan: the selector is for all ranks of a job (alone); there are others");
  return SWP_SUCCESS;
}

int swp_plan_by_match(struct collective_plan *collective, const swp_selector *selector,
                      const struct match *match) {
  int error = check_layout(&collective->plan.features, &selector->features);
  if (error == SWP_SUCCESS)
    error = swp_prepare_begin(collective, selector->choices);
  return begin(collective, error, match);
}

int swp_plan_set(struct collective_plan *collective, const struct call *call, const struct features *features,
                 const struct match *match) {
  struct swp_plan *plan = &collective->plan;
  const struct call old_call = collective->call;
  const struct features old_features = plan->features;
  const struct match old_match = collective->match;
  int error = use(collective, features, match);
  if (error != SWP_SUCCESS)
    return error;
  collective->call = *call;
  plan->features = *features;
  error = reserve_scratch(collective);
  if (error != SWP_SUCCESS) {
    collective->call = old_call;
    plan->features = old_features;
    swp_prepare_match(collective, &old_features, &old_match); /* prepared long ago */
  }
  return error;
}

/* Releases what MPI may read and write. */
static void free_buffers(struct swp_plan *plan) {
  switch (plan->operation) {
  case SWP_EXCHANGE:
    swp_fields_free(&exchange_plan_of(plan)->fields);
    swp_release(exchange_plan_of(plan)->buffer);
    break;
  case SWP_DISCOVERY:
    swp_inbox_destroy(discovery_plan_of(plan)->spare_inbox);
    swp_release(discovery_plan_of(plan)->scratch);
    break;
  default:
    swp_release(collective_plan_of(plan)->counts);
    swp_release(collective_plan_of(plan)->scratch);
  }
}

static void free_exchange(struct exchange_plan *exchange) {
  if (exchange->own_problem != NULL)
    swp_problem_free(exchange->own_problem);
  swp_release(exchange->own_problem);
  release_stages(exchange);
}

int swp_plan_free(swp_plan **pointer) {
  if (pointer == NULL || *pointer == NULL)
    return SWP_SUCCESS;
  struct swp_plan *plan = *pointer;
  if (plan->state == PLAN_STARTED)
    return swp_fail(SWP_ERR_STATE, "swp_plan_free: the exchange is under way; call swp_wait first");
  const bool kept = swp_release_keeps(true);
  swp_release_keeps(kept || plan->state == PLAN_POISONED); /* its messages may still be under way */
  if (swp_is_collective(plan->operation))
    swp_prepare_end(collective_plan_of(plan));
  swp_plan_unprepare(plan);
  free_buffers(plan);
  swp_release_keeps(kept);
  if (plan->operation == SWP_EXCHANGE)
    free_exchange(exchange_plan_of(plan));
  swp_topology_release(plan->topology);
  const bool owns_comm = !plan->same_comm && !plan->is_trial && plan->comm != MPI_COMM_NULL;
  int mpi_error = owns_comm ? MPI_Comm_free(&plan->comm) : MPI_SUCCESS;
  swp_release(plan);
  *pointer = NULL;
  return mpi_error == MPI_SUCCESS ? SWP_SUCCESS : swp_fail_mpi(mpi_error, "MPI_Comm_free");
}
