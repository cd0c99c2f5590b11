/* Planning: agrees on the problem, selects a method, and lets it plan. */
#include "collective_problem.h"
#include "communicator.h"
#include "consensus.h"
#include "inbox.h"
#include "make.h"
#include "off.h"
#include "select.h"
#include "selector.h"
#include "statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks the values that must be equal on all ranks: the greatest and the least of each must be the same. A
   rank without messages learns the size of items. */
static int check_equal(struct swp_plan *plan, const char *method) {
  const int64_t ANY = INT64_MIN; /* of a rank that has no say */
  const struct swp_hints *hints = &plan->hints;
  const struct features *features = &plan->features;
  struct exchange_plan *exchange = exchange_plan_of(plan);
  struct problem *problem = plan->operation == SWP_EXCHANGE ? exchange->own_problem : NULL;
  const bool has_items = problem != NULL && problem->item_bytes != 0;
  const bool agree_later = plan->operation == SWP_ALLTOALLV;
  const struct {
    const char *name;
    int64_t value;
  } values[] = {
      {"operation", plan->operation},
      {"method", method != NULL ? swp_text_hash(method) : -1}, /* NULL differs from "" */
      {"list of fields", has_items ? exchange->fields.hash : ANY},
      {"item_bytes", has_items ? problem->item_bytes : ANY},
      {"hints.flags", hints->flags},
      {"hints.executions", hints->executions},
      {"hints.degree", hints->degree},
      {"hints.bytes", hints->bytes},
      {"table in the hints", hints->table != NULL ? hints->table->hash : -1},
      {"hints.ppn", hints->ppn},
      {"hints.placement", hints->placement},
      {"hints.budget_s", (int64_t)(hints->budget_s * 1e9)},
      {SWP_OFF, swp_text_hash(getenv(SWP_OFF))},
      {"root", features->root},
      {"number of bytes", agree_later ? ANY : features->bytes},
      {"number of bytes of all ranks", agree_later ? ANY : features->total_bytes},
      {"largest number of bytes", agree_later ? ANY : features->most_bytes},
      {"commutativity of the operation", features->commutative},
      {"operation or type of the reduction", features->predefined},
  };
  enum { FIELDS = 2, ITEM_BYTES, VALUES = sizeof values / sizeof values[0] };
  int64_t mine[2 * VALUES], greatest[2 * VALUES];
  int error = SWP_SUCCESS;
  for (int i = 0; i < VALUES; i++) {
    mine[i] = values[i].value;
    mine[VALUES + i] = mine[i] == ANY ? ANY : ~mine[i]; /* of which the greatest is that of the least */
  }
  MPI_TRY(MPI_Allreduce(mine, greatest, 2 * VALUES, MPI_INT64_T, MPI_MAX, plan->comm));
  for (int i = 0; i < VALUES; i++)
    if (greatest[i] != ANY && greatest[i] != ~greatest[VALUES + i])
      return swp_fail(i == FIELDS ? SWP_ERR_MISMATCH : SWP_ERR_ARGUMENT, "the %s differs between ranks",
                      values[i].name);
  if (problem != NULL && greatest[ITEM_BYTES] != ANY)
    swp_problem_agree(problem, greatest[ITEM_BYTES], plan->procs);
  else if (problem != NULL)
    problem->item_bytes = 1;
done:
  return error;
}

/* The unknown features of a discovery come from the caller's hints. */
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
                                      "gets its messages only at execution");
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

/* The problem to plan: one of the two, or none for a discovery. */
struct request {
  enum swp_operation operation;
  const char *method;
  const struct swp_exchange *exchange;
  bool has_fields; /* of the exchange; then: */
  int nfields;
  const int64_t *field_bytes;
  const struct swp_collective *collective;
  const struct match *match; /* of the selector, or index -1 for a wrong one; NULL: to be selected */
  const swp_selector *selector;
};

/* A selector's choices stand for its table. */
static int take_selector(struct swp_plan *plan, const struct request *request) {
  if (request->match->index < 0 || request->selector->features.procs != plan->procs)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "swp_selector_plan: the choice is not from a selector for %s on %d ranks",
                    swp_shapes[plan->operation].name, plan->procs);
  plan->hints.table = request->selector->table;
  return SWP_SUCCESS;
}

static int build_problem(struct exchange_plan *exchange, const struct request *request) {
  struct swp_plan *plan = &exchange->plan;
  struct problem *problem = swp_plan_allocate(plan, 1, sizeof *problem);
  exchange->problem = exchange->own_problem = problem;
  if (problem == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory to plan an exchange");
  plan->has_fields = request->has_fields;
  if (plan->has_fields)
    return swp_fields_build(request->exchange, request->nfields, request->field_bytes, plan->rank,
                            plan->procs, &exchange->fields, problem, &plan->account);
  return swp_problem_build(request->exchange, plan->rank, plan->procs, problem, &plan->account);
}

static int create_spare_inbox(struct discovery_plan *discovery) {
  discovery->spare_inbox = swp_inbox_create();
  return discovery->spare_inbox != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for an inbox");
}

/* The work and checks that this rank can do by itself. */
static int begin_plan(struct swp_plan *plan, const struct request *request) {
  int error = check_hints(&plan->hints, plan->operation);
  if (error == SWP_SUCCESS && request->match != NULL)
    error = take_selector(plan, request);
  if (error == SWP_SUCCESS)
    error = swp_off_check();
  if (error != SWP_SUCCESS)
    return error;
  if (plan->operation == SWP_EXCHANGE)
    return build_problem(exchange_plan_of(plan), request);
  if (plan->operation == SWP_DISCOVERY)
    return create_spare_inbox(discovery_plan_of(plan));
  return swp_collective_begin(collective_plan_of(plan), request->collective);
}

/* The features that follow from the problem. */
static int find_features(struct swp_plan *plan) {
  if (plan->operation == SWP_EXCHANGE)
    return swp_statistics_find(exchange_plan_of(plan));
  return plan->operation == SWP_DISCOVERY ? discovery_features(plan)
                                          : swp_collective_agree(plan, call_of(plan), &plan->features);
}

/* Plans by the default, after a chosen method found that it cannot be used here. */
static int plan_default(struct swp_plan *plan, int64_t account) {
  enum { WHY_BYTES = 160, BY_BYTES = 400 };
  struct spec spec;
  char by[CHOSEN_BYTES];
  snprintf(by, sizeof by, "default; %s is passed over, which was chosen by %.*s: %.*s", plan->spec.text,
           BY_BYTES, plan->chosen_by, WHY_BYTES, swp_error_message());
  memcpy(plan->chosen_by, by, sizeof by);
  swp_plan_unmake(plan);
  plan->account = account;
  int error = swp_spec_parse(plan->operation, swp_shapes[plan->operation].default_method, &spec);
  return error == SWP_SUCCESS ? swp_plan_by_method(plan, &spec) : error;
}

static int plan_exchange(struct swp_plan *plan, const struct sources *sources) {
  const int64_t account = plan->account;
  struct spec spec;
  int error = swp_select_first(plan, sources, &spec);
  if (error != SWP_SUCCESS)
    return error;
  error = swp_plan_by_method(plan, &spec);
  if ((error == SWP_ERR_NOT_APPLICABLE || error == SWP_ERR_TOO_LARGE) && sources->caller == NULL &&
      strcmp(spec.text, swp_shapes[plan->operation].default_method) != 0)
    error = plan_default(plan, account);
  if (error == SWP_SUCCESS && plan->operation == SWP_EXCHANGE)
    error = swp_statistics_gather(exchange_plan_of(plan));
  return error;
}

/* Plans by the method, or by what is selected where that is NULL or "auto". */
static int plan_selected(struct swp_plan *plan, const char *method) {
  struct selection selection = {0};
  int error = SWP_SUCCESS;
  TRY(swp_select(plan, method, &selection));
  if (swp_is_collective(plan->operation))
    TRY(swp_plan_collective(collective_plan_of(plan), &selection.sources));
  else
    TRY(plan_exchange(plan, &selection.sources));
done:
  swp_select_end(&selection);
  return error;
}

/* The steps that all operations share, once the plan exists on all ranks. */
static int make_plan(MPI_Comm comm, struct swp_plan *plan, const struct request *request) {
  int error = SWP_SUCCESS;
  struct topology *topology;
  TRY(swp_agree(plan->comm, begin_plan(plan, request)));
  TRY(check_equal(plan, request->method));
  TRY(swp_topology_find(comm, plan->comm, plan->hints.ppn, plan->hints.placement, &topology));
  swp_plan_place(plan, topology);
  TRY(find_features(plan));
  if (request->match != NULL)
    TRY(swp_plan_by_match(collective_plan_of(plan), request->selector, request->match));
  else
    TRY(plan_selected(plan, request->method));
  swp_statistics_describe_place(plan);
done:
  return error;
}

static bool has_same_comm(const struct request *request, const struct swp_hints *hints) {
  return hints != NULL && (hints->flags & SWP_SAME_COMM) != 0 && swp_is_collective(request->operation);
}

/* A plan of the request's kind on the communicator; all ranks, or none, get one. */
static int begin(MPI_Comm own, const struct request *request, const struct swp_hints *hints,
                 struct swp_plan **result, struct swp_plan **made) {
  struct swp_plan *plan = swp_plan_new(request->operation);
  int error = SWP_SUCCESS;
  if (result == NULL)
    error = swp_fail(SWP_ERR_ARGUMENT, "planning: the pointer to the plan is NULL");
  else if (plan == NULL)
    error = swp_fail(SWP_ERR_MEMORY, "planning: no memory for a plan");
  error = swp_agree(own, error);
  if (error != SWP_SUCCESS) {
    swp_release(plan);
    return error;
  }
  plan->comm = own;
  plan->same_comm = has_same_comm(request, hints);
  plan->hints = hints != NULL ? *hints : (struct swp_hints)SWP_HINTS_DEFAULT;
  plan->features.executions = plan->hints.executions;
  MPI_Comm_rank(own, &plan->rank);
  MPI_Comm_size(own, &plan->procs);
  *made = plan;
  return SWP_SUCCESS;
}

static int create_plan(MPI_Comm comm, const struct request *request, const struct swp_hints *hints,
                       swp_plan **result) {
  MPI_Comm own;
  struct swp_plan *plan;
  const bool same_comm = has_same_comm(request, hints);
  if (result != NULL)
    *result = NULL;
  int error = same_comm ? swp_comm_take(comm, &own) : swp_comm_duplicate(comm, &own);
  if (error != SWP_SUCCESS)
    return error;
  error = begin(own, request, hints, result, &plan);
  if (error != SWP_SUCCESS) {
    if (!same_comm)
      MPI_Comm_free(&own);
    return error;
  }
  error = make_plan(comm, plan, request);
  if (error == SWP_SUCCESS)
    *result = plan;
  else
    swp_plan_free(&plan);
  return error;
}

int swp_exchange_plan(MPI_Comm comm, const struct swp_exchange *problem, const char *method,
                      const struct swp_hints *hints, swp_plan **plan) {
  return create_plan(comm, &(struct request){SWP_EXCHANGE, .method = method, .exchange = problem}, hints,
                     plan);
}

int swp_fields_plan(MPI_Comm comm, const struct swp_exchange *problem, int nfields,
                    const int64_t *field_bytes, const char *method, const struct swp_hints *hints,
                    swp_plan **plan) {
  const struct request request = {SWP_EXCHANGE,       .method = method,   .exchange = problem,
                                  .has_fields = true, .nfields = nfields, .field_bytes = field_bytes};
  return create_plan(comm, &request, hints, plan);
}

int swp_discovery_plan(MPI_Comm comm, const char *method, const struct swp_hints *hints, swp_plan **plan) {
  return create_plan(comm, &(struct request){SWP_DISCOVERY, .method = method}, hints, plan);
}

/* The problem's operation; another is refused later, on all ranks. */
static enum swp_operation operation_of(const struct swp_collective *problem) {
  return problem != NULL && swp_is_collective(problem->operation) ? problem->operation : SWP_BCAST;
}

int swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                        const struct swp_hints *hints, swp_plan **plan) {
  const struct request request = {operation_of(problem), method, .collective = problem};
  return create_plan(comm, &request, hints, plan);
}

int swp_selector_plan(MPI_Comm comm, const struct swp_collective *problem, const swp_selector *selector,
                      const struct swp_choice *choice, const struct swp_hints *hints, swp_plan **plan) {
  struct request request = {operation_of(problem), .collective = problem, .selector = selector};
  struct match match = {.index = -1};
  if (selector != NULL && selector->features.operation == request.operation &&
      swp_choice_match(selector->choices, choice, &match))
    request.method = choice->method;
  request.match = &match;
  return create_plan(comm, &request, hints, plan);
}

/* ---- Descriptions of a plan ---- */

int swp_plan_describe(const swp_plan *plan, char *text, size_t length) {
  if (plan == NULL || text == NULL || length == 0)
    return swp_fail(SWP_ERR_ARGUMENT,
                    "swp_plan_describe: plan and text must not be NULL, length must be at least 1");
  const char *arrangement = plan->arrangement;
  int used = snprintf(text, length, "%s %s%s%s, chosen by ", swp_shapes[plan->operation].name,
                      plan->spec.text, arrangement[0] != '\0' ? ", " : "", arrangement);
  if ((size_t)used >= length)
    return SWP_SUCCESS;
  const struct collective_plan *collective = collective_plan_of(plan);
  if (swp_is_collective(plan->operation))
    swp_choices_explain(collective->choices, &collective->match, text + used, length - (size_t)used);
  else
    snprintf(text + used, length - (size_t)used, "%s", plan->chosen_by);
  return SWP_SUCCESS;
}

const char *swp_plan_method(const swp_plan *plan) {
  return plan != NULL ? plan->spec.text : "";
}

const char *swp_plan_passed(const swp_plan *plan, const char **why) {
  if (plan == NULL || why == NULL || !swp_is_collective(plan->operation))
    return NULL;
  const struct collective_plan *collective = collective_plan_of(plan);
  const struct match *match = &collective->match;
  *why = match->why;
  return match->passed >= 0 ? collective->choices->list[match->passed].spec.text : NULL;
}

/* The plan's memory may have grown since planning. */
static void copy_statistics(const swp_plan *plan, const struct swp_statistics *from,
                            struct swp_statistics *to) {
  if (to == NULL)
    return;
  *to = *from;
  to->plan_bytes = plan->account;
}

int swp_plan_statistics(const swp_plan *plan, struct swp_statistics *problem, struct swp_statistics *method) {
  if (plan == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_plan_statistics: plan is NULL");
  copy_statistics(plan, &plan->problem_statistics, problem);
  copy_statistics(plan, &plan->statistics, method);
  return SWP_SUCCESS;
}

int swp_plan_stage(const swp_plan *plan, int stage, int64_t *messages, int64_t *messages_max, int64_t *bytes,
                   int64_t *bytes_max) {
  if (plan == NULL || stage < 0 || plan->operation != SWP_EXCHANGE ||
      stage >= exchange_plan_of(plan)->nstages)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_plan_stage: no stage %d", stage);
  const struct stage *s = &exchange_plan_of(plan)->stages[stage];
  if (messages != NULL)
    *messages = s->messages_total;
  if (messages_max != NULL)
    *messages_max = s->messages_max;
  if (bytes != NULL)
    *bytes = s->bytes_total;
  if (bytes_max != NULL)
    *bytes_max = s->bytes_max;
  return SWP_SUCCESS;
}
