/* Execution: checks the plan's state, handles the message to oneself, and lets the method do the rest. */
#include "inbox.h"
#include "kinds.h"
#include "outstanding.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

int swp_plan_check(const struct swp_plan *plan, enum swp_operation operation, enum plan_state expected,
                   const char *call) {
  if (plan == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "%s: plan is NULL", call);
  enum swp_operation kind = swp_is_collective(plan->operation) ? SWP_BCAST : plan->operation;
  if (kind != operation)
    return swp_fail(SWP_ERR_STATE, "%s: the plan is for another operation (%s)", call,
                    swp_shapes[plan->operation].name);
  if (plan->state == PLAN_POISONED)
    return swp_fail(SWP_ERR_POISONED, "%s: an earlier execution of this plan failed; free it", call);
  if (plan->state != expected)
    return swp_fail(SWP_ERR_STATE, "%s: the exchange is %s", call,
                    expected == PLAN_STARTED ? "not started" : "under way; call swp_wait first");
  return SWP_SUCCESS;
}

int swp_plan_poison(struct swp_plan *plan, int error) {
  plan->state = PLAN_POISONED;
  return error;
}

HOT static int advance(struct swp_plan *plan, bool block, bool *done) {
  int error = plan->advance(plan, block, done);
  if (error != SWP_SUCCESS)
    return swp_plan_poison(plan, error);
  if (*done)
    plan->state = PLAN_IDLE;
  return SWP_SUCCESS;
}

static void copy_to_self(const struct problem *problem, const char *send, char *recv) {
  swp_runs_pack(problem->self.runs, problem->self.nruns, send, recv + problem->self_offset);
}

HOT static int begin(struct swp_plan *plan, const void *send, void *recv) {
  int error;
  __builtin_prefetch(&swp_outstanding_count); /* read after the messages are posted */
  error = plan->start(plan, send, recv);
  if (error != SWP_SUCCESS) /* with SWP_ERR_STATE nothing was done */
    return error == SWP_ERR_STATE ? error : swp_plan_poison(plan, error);
  plan->state = PLAN_STARTED;
  if (plan->has_self)
    copy_to_self(exchange_plan_of(plan)->problem, send, recv);
  return SWP_SUCCESS;
}

/* Checks that an exchange, with fields or not, can begin. */
HOT static int check_begin(const struct swp_plan *plan, bool has_fields, const char *call) {
  int error = swp_plan_check(plan, SWP_EXCHANGE, PLAN_IDLE, call);
  if (error == SWP_SUCCESS && plan->has_fields != has_fields)
    return swp_fail(SWP_ERR_STATE, "%s: the plan is %s", call,
                    has_fields ? "not for fields"
                               : "for fields; call swp_fields_execute or swp_fields_start");
  return error;
}

HOT static int begin_plain(struct swp_plan *plan, const void *send, void *recv, const char *call) {
  int error = check_begin(plan, false, call);
  return error == SWP_SUCCESS ? begin(plan, send, recv) : error;
}

HOT static int begin_fields(struct swp_plan *plan, const void *const *send, void *const *recv,
                            const char *call) {
  int error = check_begin(plan, true, call);
  if (error != SWP_SUCCESS)
    return error;
  struct fields *fields = &exchange_plan_of(plan)->fields;
  error = swp_fields_pack(fields, send, recv, call);
  return error == SWP_SUCCESS ? begin(plan, fields->send, fields->recv) : error;
}

/* Ends the background progress of a plan that forwards. *done is true if that completed it. */
static int reclaim(struct swp_plan *plan, bool *done) {
  const struct background *background = &exchange_plan_of(plan)->background;
  swp_outstanding_take(exchange_plan_of(plan));
  *done = background->complete;
  if (background->error != SWP_SUCCESS) {
    swp_explain_again(background->text, background->mpi_error);
    return swp_plan_poison(plan, background->error);
  }
  if (*done)
    plan->state = PLAN_IDLE;
  return SWP_SUCCESS;
}

/* One buffer is enough: a plan without executions under way has sent all that was in it. */
static int take_buffer(struct swp_plan *plan, char **buffer) {
  struct exchange_plan *exchange = exchange_plan_of(plan);
  const int64_t bytes = exchange->problem->buffer_bytes;
  if (plan->spec.method->buffer != NULL && exchange->problem->nsends > 0) /* else nobody reads it */
    return plan->spec.method->buffer(plan, buffer);
  if (exchange->buffer == NULL)
    exchange->buffer = swp_allocate((size_t)bytes, 1, &plan->account);
  *buffer = exchange->buffer;
  return *buffer != NULL
             ? SWP_SUCCESS
             : swp_fail(SWP_ERR_MEMORY, "swp_exchange_buffer: no memory for %lld bytes", (long long)bytes);
}

int swp_exchange_buffer(swp_plan *plan, void **send) {
  int error = check_begin(plan, false, "swp_exchange_buffer");
  char *buffer = NULL;
  if (error == SWP_SUCCESS && send == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_exchange_buffer: send is NULL");
  if (error == SWP_SUCCESS) {
    error = take_buffer(plan, &buffer);
    *send = buffer;
  }
  return error == SWP_ERR_MPI ? swp_plan_poison(plan, error) : error;
}

HOT int swp_exchange_execute(swp_plan *plan, const void *send, void *recv) {
  int error = begin_plain(plan, send, recv, "swp_exchange_execute");
  bool done;
  return error == SWP_SUCCESS ? advance(plan, true, &done) : error;
}

HOT int swp_fields_execute(swp_plan *plan, const void *const *send, void *const *recv) {
  int error = begin_fields(plan, send, recv, "swp_fields_execute");
  bool done;
  return error == SWP_SUCCESS ? advance(plan, true, &done) : error;
}

/* Lets other calls progress it, if ranks wait for that. */
static int leave_started(struct swp_plan *plan, int error) {
  if (error == SWP_SUCCESS && plan->forwards)
    swp_outstanding_add(exchange_plan_of(plan));
  return error;
}

int swp_exchange_start(swp_plan *plan, const void *send, void *recv) {
  return leave_started(plan, begin_plain(plan, send, recv, "swp_exchange_start"));
}

int swp_fields_start(swp_plan *plan, const void *const *send, void *const *recv) {
  return leave_started(plan, begin_fields(plan, send, recv, "swp_fields_start"));
}

int swp_wait(swp_plan *plan) {
  int error = swp_plan_check(plan, SWP_EXCHANGE, PLAN_STARTED, "swp_wait");
  bool done = false;
  if (error == SWP_SUCCESS && plan->forwards)
    error = reclaim(plan, &done);
  return error == SWP_SUCCESS && !done ? advance(plan, true, &done) : error;
}

static int test(struct swp_plan *plan, bool *done) {
  int error = SWP_SUCCESS;
  if (plan->forwards)
    error = reclaim(plan, done);
  if (swp_outstanding_any())
    swp_outstanding_progress();
  if (error == SWP_SUCCESS && !*done)
    error = advance(plan, false, done);
  if (error == SWP_SUCCESS && !*done && plan->forwards)
    swp_outstanding_add(exchange_plan_of(plan));
  return error;
}

int swp_test(swp_plan *plan, int *done) {
  int error = swp_plan_check(plan, SWP_EXCHANGE, PLAN_STARTED, "swp_test");
  bool complete = false;
  if (error == SWP_SUCCESS && done == NULL)
    error = swp_fail(SWP_ERR_ARGUMENT, "swp_test: done is NULL");
  if (error == SWP_SUCCESS)
    error = test(plan, &complete);
  if (done != NULL)
    *done = error == SWP_SUCCESS && complete;
  return error;
}

/* Each destination at most once. Increasing ranks, the usual case, need no memory. */
static int check_duplicates(struct discovery_plan *discovery, int nsends, const int *ranks) {
  int i = 1;
  while (i < nsends && ranks[i] > ranks[i - 1])
    i++;
  if (i >= nsends)
    return SWP_SUCCESS;
  if (discovery->scratch_length < nsends) {
    swp_release(discovery->scratch);
    discovery->scratch_length = 0;
    discovery->scratch = swp_allocate((size_t)nsends, sizeof *discovery->scratch, NULL);
    if (discovery->scratch == NULL)
      return swp_fail(SWP_ERR_MEMORY, "discovery: no memory for %d destinations", nsends);
    discovery->scratch_length = nsends;
  }
  int duplicate = swp_find_duplicate(ranks, nsends, discovery->scratch);
  return duplicate < 0 ? SWP_SUCCESS
                       : swp_fail(SWP_ERR_ARGUMENT, "discovery: rank %d appears twice among the destinations",
                                  duplicate);
}

/* *self becomes the index of the message to this rank, or -1. */
static int check_outbox(struct swp_plan *plan, const struct outbox *outbox, int *self) {
  *self = -1;
  if (outbox->nsends < 0 || outbox->nsends > plan->procs)
    return swp_fail(SWP_ERR_ARGUMENT, "discovery: nsends is %d; there are %d ranks", outbox->nsends,
                    plan->procs);
  if (outbox->nsends > 0 && (outbox->ranks == NULL || outbox->bytes == NULL || outbox->data == NULL))
    return swp_fail(SWP_ERR_ARGUMENT, "discovery: ranks, bytes or data is NULL with nsends = %d",
                    outbox->nsends);
  for (int i = 0; i < outbox->nsends; i++) {
    if (outbox->ranks[i] < 0 || outbox->ranks[i] >= plan->procs)
      return swp_fail(SWP_ERR_ARGUMENT, "discovery: ranks[%d] is %d; there are %d ranks", i, outbox->ranks[i],
                      plan->procs);
    if (outbox->bytes[i] < 0 || (outbox->bytes[i] > 0 && outbox->data[i] == NULL))
      return swp_fail(SWP_ERR_ARGUMENT, "discovery: bytes[%d] is negative or data[%d] NULL", i, i);
    if (outbox->bytes[i] > INT_MAX)
      return swp_fail(SWP_ERR_TOO_LARGE, "discovery: message %d has %lld bytes; at most %d are possible", i,
                      (long long)outbox->bytes[i], INT_MAX);
    if (outbox->ranks[i] == plan->rank)
      *self = i;
  }
  return check_duplicates(discovery_plan_of(plan), outbox->nsends, outbox->ranks);
}

static int deliver_to_self(const struct swp_plan *plan, const struct outbox *outbox, int self,
                           struct inbox *inbox) {
  if (self < 0)
    return SWP_SUCCESS;
  void *data = swp_inbox_add(inbox, plan->rank, outbox->bytes[self]);
  if (data == NULL)
    return swp_fail(SWP_ERR_MEMORY, "discovery: no memory for %lld bytes", (long long)outbox->bytes[self]);
  if (outbox->bytes[self] > 0)
    memcpy(data, outbox->data[self], (size_t)outbox->bytes[self]);
  return SWP_SUCCESS;
}

/* MPI may still write messages into it. */
static void abandon_inbox(swp_inbox **result, struct inbox *inbox) {
  *result = NULL;
  swp_release_keeps(true);
  swp_inbox_destroy(inbox);
  swp_release_keeps(false);
}

/* A rank that cannot send still takes part, because the others wait for it. Messages to it are dropped. */
static int keep_pace(struct swp_plan *plan, swp_inbox **result, struct inbox *inbox, int error) {
  char why[ERROR_TEXT_BYTES];
  struct inbox *sink = inbox != NULL ? inbox : discovery_plan_of(plan)->spare_inbox;
  snprintf(why, sizeof why, "%s", swp_error_message());
  swp_inbox_empty(sink);
  int failed = plan->spec.method->execute(plan, &(struct outbox){0}, sink);
  if (failed == SWP_SUCCESS) {
    swp_inbox_empty(sink);
    return swp_fail(error, "%s", why);
  }
  if (inbox != NULL)
    abandon_inbox(result, inbox);
  return swp_plan_poison(plan, failed);
}

/* Takes the caller's inbox, or a new one; *inbox stays NULL on an error. */
static int take_inbox(swp_inbox **result, struct inbox **inbox) {
  if (result == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_discovery_execute: inbox is NULL");
  *inbox = *result != NULL ? swp_inbox_of(*result) : swp_inbox_create();
  if (*inbox == NULL)
    return swp_fail(SWP_ERR_MEMORY, "discovery: no memory for an inbox");
  swp_inbox_empty(*inbox);
  *result = swp_inbox_seen(*inbox);
  return SWP_SUCCESS;
}

int swp_discovery_execute(swp_plan *plan, int nsends, const int *ranks, const int64_t *bytes,
                          const void *const *data, swp_inbox **result) {
  struct outbox outbox = {nsends, ranks, bytes, data};
  struct inbox *inbox = NULL;
  int self, error = swp_plan_check(plan, SWP_DISCOVERY, PLAN_IDLE, "swp_discovery_execute");
  if (error != SWP_SUCCESS)
    return error;
  error = take_inbox(result, &inbox);
  if (error == SWP_SUCCESS)
    error = check_outbox(plan, &outbox, &self);
  if (error == SWP_SUCCESS)
    error = deliver_to_self(plan, &outbox, self, inbox);
  if (error != SWP_SUCCESS)
    return keep_pace(plan, result, inbox, error);
  error = plan->spec.method->execute(plan, &outbox, inbox);
  if (error != SWP_SUCCESS) {
    abandon_inbox(result, inbox);
    return swp_plan_poison(plan, error);
  }
  swp_inbox_finish(inbox);
  return SWP_SUCCESS;
}
