#include "commands.h"

#include "clock.h"
#include "error.h"
#include "growth.h"
#include "hang.h"
#include "rng.h"
#include "session.h"
#include "watchdog.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Executions between two agreements of all ranks: few, as a fast rank's messages take memory. */
enum { INTERVAL_MOST = 64, REASON_ROOM = 600 };

/* How long the ranks wait for each other's stacks before the job ends. */
enum { GRACE_S = 1 };

/* Rank 0 may have gone on for this part of the limit, alone. */
enum { LATER = 8 };

/* A soak in which the memory grew goes on until this many times the executions. */
enum { AGAIN = 3 };

enum failure { NONE, PAYLOAD, LEAK, ERROR, HANG };

static const char *const failure_names[] = {"", "payload", "leak", "error", "hang"};

/* The result of a method. */
struct outcome {
  enum failure failure;
  char reason[REASON_ROOM];
  int64_t executions; /* done and verified */
  int64_t growth_bytes;
  const struct where *where; /* of a hang, of the rank that the reason names */
};

/* The current activity of this rank, for its watchdog. */
static struct {
  struct session *session;
  const struct team *team;
  int64_t wanted; /* executions */
  double limit_s;
  _Atomic(const struct workload *) workload; /* NULL outside the methods of a size */
  const char *method;
  int64_t begin_ns;
  _Atomic(const char *) doing;
  atomic_int_least64_t executions; /* complete */
  atomic_int failure;              /* of enum failure: of this rank, with its reason: */
  char reason[REASON_ROOM];
} now;

static void do_next(const char *doing) {
  now.doing = doing;
  watchdog_beat();
}

static void begin(const struct method *method) {
  now.method = method->spec;
  now.begin_ns = clock_ns();
  now.executions = 0;
  do_next("planning before execution");
}

static void forget_failure(void) {
  now.failure = NONE;
  now.reason[0] = '\0';
}

/* Takes failure_text() as the reason, in place of that of wrong bytes before. */
static void fail(enum failure failure) {
  snprintf(now.reason, sizeof now.reason, "%.500s", failure_text());
  failure_clear();
  now.failure = failure;
}

static int write_record(const struct outcome *outcome) {
  struct json json;
  json_begin(&json, "soak");
  json_string(&json, "operation", now.workload->operation->name);
  json_string(&json, "method", now.method);
  json_string(&json, "pattern", now.session->launch.pattern);
  json_int(&json, "size_bytes", now.workload->payload.item_bytes);
  json_int(&json, "executions", outcome->executions);
  json_bool(&json, "passed", outcome->failure == NONE);
  json_string(&json, "failure", failure_names[outcome->failure]);
  json_string(&json, "reason", outcome->reason);
  json_double(&json, "seconds", (double)(clock_ns() - now.begin_ns) * 1e-9);
  json_int(&json, "growth_bytes", outcome->growth_bytes);
  json_open(&json, "stack", '[');
  for (int i = 0; outcome->where && i < outcome->where->count; i++)
    json_string(&json, NULL, outcome->where->names[i]);
  json_close(&json, ']');
  return launch_write(&now.session->launch, &json, 0);
}

static void print_outcome(const struct outcome *outcome) {
  if (now.session->options->quiet)
    return;
  printf("%8lld B  %s  %lld executions  %s%s\n", (long long)now.workload->payload.item_bytes, now.method,
         (long long)outcome->executions, outcome->failure ? "FAILED: " : "passed", outcome->reason);
  fflush(stdout);
}

/* Written at once, as other ranks write at the same time. */
static void print_where(const struct where *where) {
  char *text;
  size_t length;
  FILE *file = open_memstream(&text, &length);
  if (!file)
    return;
  const struct workload *workload = now.workload;
  fprintf(file, "swpbench: rank %d hangs: %s", now.team->rank, now.doing);
  if (workload)
    fprintf(file, " %lld of %s at %lld bytes", (long long)now.executions + 1, now.method,
            (long long)workload->payload.item_bytes);
  fprintf(file, "%s%s\n", *now.reason ? ", after " : "", now.reason);
  for (int i = 0; i < where->count; i++)
    fprintf(file, "swpbench: rank %d   %s\n", now.team->rank, where->names[i]);
  fclose(file);
  fwrite(text, 1, length, stderr);
  fflush(stderr);
}

/* Ends a hang between the methods of two sizes: the soaks that are done are kept. */
static void close_between(void) {
  struct launch *launch = &now.session->launch;
  const int rank = now.team->rank;
  if (launch->cases > 0 && ((rank == 1 && launch_take_over(launch)) || (rank <= 1 && launch_close(launch))))
    fprintf(stderr, "swpbench: %s\n", failure_text());
  fprintf(stderr, "swpbench: soak failed: hang: rank %d made no progress in %g s: %s\n", rank, now.limit_s,
          now.doing);
}

/*
 * Called by the watchdog on every rank. Rank 0 closes the file, and a rank that ends takes the others with
 * it; if rank 0 is stopped for good, rank 1 does.
 */
static void end_of_hang(const struct where *where) {
  struct session *session = now.session;
  const int rank = now.team->rank;
  print_where(where);
  sleep(GRACE_S);
  if (rank > 0)
    sleep((unsigned)ceil(now.limit_s / LATER) + GRACE_S);
  if (now.workload == NULL)
    close_between();
  else if (rank == 1 && launch_take_over(&session->launch))
    fprintf(stderr, "swpbench: %s\n", failure_text());
  else if (rank <= 1) {
    const enum failure own = (enum failure)now.failure; /* keeps the others waiting */
    struct outcome outcome = {.failure = own ? own : HANG, .executions = now.executions, .where = where};
    if (own)
      snprintf(outcome.reason, sizeof outcome.reason, "rank %d: %.500s", rank, now.reason);
    else
      snprintf(outcome.reason, sizeof outcome.reason, "hang: %srank %d made no progress in %g s: %s %lld",
               rank ? "rank 0 wrote no outcome, " : "", rank, now.limit_s, now.doing,
               (long long)now.executions + 1);
    if (write_record(&outcome) || launch_close(&session->launch))
      fprintf(stderr, "swpbench: %s\n", failure_text());
    print_outcome(&outcome);
    fprintf(stderr, "swpbench: soak failed: %s at %lld bytes: %s\n", now.method,
            (long long)now.workload->payload.item_bytes, outcome.reason);
  } else {
    sleep(GRACE_S);
  }
  fflush(NULL);
  kill(getpid(), SIGKILL); /* by exit, others may outlive this rank under MPICH 5's mpiexec */
}

/* Makes some ranks late, now and then one very late, in another order each time. */
static void skew(const struct team *team, uint64_t seed, int64_t execution) {
  enum { LATE_EVERY = 8, VERY_LATE_EVERY = 512, LATE_NS = 100000, VERY_LATE_NS = 2000000 };
  struct rng rng = {hash_pair(hash_pair(seed, (uint64_t)team->rank), (uint64_t)execution)};
  int64_t late_ns = 0;
  if (rng_below(&rng, LATE_EVERY) == 0)
    late_ns = rng_below(&rng, LATE_NS);
  if (rng_below(&rng, VERY_LATE_EVERY) == 0)
    late_ns = rng_below(&rng, VERY_LATE_NS);
  if (late_ns && team->procs > 1)
    clock_wait(clock_ns() + late_ns, team->oversubscribed);
}

/* Executes up to the given number, with roots in turn; nothing waits between executions. A rank with wrong
   bytes continues, as others need it; one whose execution failed cannot. */
static void execute_until(struct workload *workload, swp_plan *plan, int64_t until) {
  for (; now.executions < until; now.executions++) {
    do_next("execution");
    if (!now.session->options->prompt)
      skew(workload->team, workload->payload.seed, now.executions);
    workload->payload.repetition++;
    workload->operation->prepare(workload);
    if (workload->operation->execute(workload, plan)) {
      failure_set("execution %lld fails: %s", (long long)now.executions + 1, swp_error_message());
      fail(ERROR);
      return;
    }
    if (now.failure == NONE && workload->operation->verify(workload)) {
      failure_place("execution %lld", (long long)now.executions + 1);
      fail(PAYLOAD);
    }
    if (workload->operation->rooted && workload->operation->turn(workload, plan)) {
      failure_place("going on to the next root after execution %lld", (long long)now.executions + 1);
      fail(ERROR);
      return;
    }
  }
}

/* The failure of the lowest rank that has one, with its reason, on all ranks. *over is rank 0's. */
static enum failure agree(const struct team *team, bool *over, char *reason) {
  const enum failure mine = (enum failure)now.failure;
  struct {
    enum failure failure;
    char text[REASON_ROOM];
  } message = {.failure = mine};
  int words[2] = {mine ? team->rank : team->procs, team->rank == 0 && *over ? 0 : 1};
  do_next("agreement before execution");
  team_allreduce(team, words, 2, MPI_INT, MPI_MIN);
  *over = words[1] == 0;
  if (words[0] == team->procs)
    return NONE;
  MPI_Request request;
  snprintf(message.text, sizeof message.text, "rank %d: %.500s", team->rank, now.reason);
  MPI_Ibcast(&message, (int)sizeof message, MPI_BYTE, words[0], team->comm, &request);
  team_wait(team, 1, &request);
  memcpy(reason, message.text, sizeof message.text);
  return message.failure;
}

static void find_leak(const struct growth *growth, struct outcome *outcome) {
  outcome->growth_bytes = growth_leak_bytes(growth);
  if (outcome->growth_bytes == 0)
    return;
  failure_set("leak: %lld bytes more in use than after a quarter of the executions, and still growing",
              (long long)outcome->growth_bytes);
  fail(LEAK);
}

/* Executes up to the given number, looks at the memory after a quarter of it, and sets the outcome. Returns
   whether the time is over. */
static bool execute_watched(struct workload *workload, swp_plan *plan, int64_t until,
                            struct outcome *outcome) {
  const int64_t all = until - now.executions, quarter = now.executions + all / 4;
  int64_t interval = all / (4 * GROWTH_READINGS);
  interval = interval < 1 ? 1 : interval > INTERVAL_MOST ? INTERVAL_MOST : interval;
  struct growth growth = {0};
  bool over = false;
  *outcome = (struct outcome){.failure = NONE};
  while (outcome->failure == NONE && !over && now.executions < until) {
    const int64_t left = until - now.executions;
    execute_until(workload, plan, now.executions + (left < interval ? left : interval));
    over = launch_is_over(&now.session->launch);
    outcome->failure = agree(workload->team, &over, outcome->reason);
    const int64_t due = quarter + (until - quarter) / (GROWTH_READINGS - 1) * growth.readings;
    if (growth.readings < GROWTH_READINGS && now.executions >= due)
      growth_read(&growth);
  }
  if (outcome->failure == NONE) {
    find_leak(&growth, outcome);
    outcome->failure = agree(workload->team, &over, outcome->reason);
  }
  return over;
}

/* A suspected leak is looked at again: pools of a library fill up, and a leak goes on. */
static void execute_all(struct workload *workload, swp_plan *plan, struct outcome *outcome) {
  const bool over = execute_watched(workload, plan, now.wanted, outcome);
  if (outcome->failure == LEAK && !over) {
    const struct outcome suspicion = *outcome;
    forget_failure();
    if (execute_watched(workload, plan, AGAIN * now.wanted, outcome) && outcome->failure == NONE)
      *outcome = suspicion;
  }
  team_allreduce(workload->team, &outcome->growth_bytes, 1, MPI_INT64_T, MPI_MAX);
  outcome->executions = now.executions;
}

/* The plan of a failed execution cannot be freed, and may keep ranks from MPI_Finalize. */
static _Noreturn void end_of_error(const struct outcome *outcome) {
  struct session *session = now.session;
  if (session->team->rank == 0) {
    watchdog_stop(); /* it would write to the same file; those of the others still watch this rank */
    launch_close(&session->launch);
    team_fail("soak failed: %s at %lld bytes: %s", now.method, (long long)now.workload->payload.item_bytes,
              outcome->reason);
  }
  for (;;)
    pause();
}

/* Returns whether the method that the plan uses is in the list by its own name, too. */
static bool is_named_too(const struct session *session, const struct method *method) {
  for (int i = 0; i < session->nmethods; i++)
    if (&session->methods[i] != method && strcmp(session->methods[i].spec, now.method) == 0)
      return true;
  return false;
}

/* Soaks one method at one size. *passed is false where it failed; -1: the launch cannot go on. */
static int soak_method(struct workload *workload, const struct method *method, bool *passed) {
  struct session *session = now.session;
  struct outcome outcome = {.failure = NONE};
  swp_plan *plan = NULL;
  begin(method);
  if (!method->applicable) {
    launch_skip(&session->launch, method->spec, workload->payload.item_bytes,
                "not applicable to this number of processes");
    return 0;
  }
  const int error = workload->operation->plan(workload, method->spec, &plan);
  if (error == SWP_ERR_NOT_APPLICABLE || error == SWP_ERR_TOO_LARGE) {
    launch_skip(&session->launch, method->spec, workload->payload.item_bytes, swp_error_message());
    return 0;
  }
  if (error)
    return team_agree(session->team, failure_set("cannot plan %s: %s", method->spec, swp_error_message()));
  now.method = swp_plan_method(plan);
  if (is_named_too(session, method)) { /* by itself, beside `auto` for instance */
    now.method = method->spec;         /* the watchdog may read it after the plan */
    swp_plan_free(&plan);
    return 0;
  }
  execute_all(workload, plan, &outcome);
  int status = 0;
  if (session->team->rank == 0) {
    print_outcome(&outcome);
    status = write_record(&outcome);
  } else {
    session->launch.cases++; /* which rank 1 writes if it has to close the file */
  }
  if (outcome.failure == ERROR)
    end_of_error(&outcome);
  do_next("freeing after execution");
  now.method = method->spec;
  swp_plan_free(&plan);
  *passed = outcome.failure == NONE;
  status = team_agree(session->team, status);
  forget_failure();
  return status;
}

/* Returns whether rank 0 finds the budget spent. One method is always soaked, however late ranks start. */
static bool is_over(const struct session *session) {
  int over = session->launch.cases > 0 && launch_is_over(&session->launch);
  team_bcast(session->team, &over, 1, MPI_INT);
  return over;
}

static int soak_size(struct session *session, int64_t size_bytes, int *failed) {
  struct workload workload;
  int status = session_workload(session, size_bytes, &workload);
  begin(&session->methods[0]); /* the watchdog reports it from its start on */
  now.workload = &workload;
  for (int m = 0; status == 0 && m < session->nmethods; m++) {
    bool passed = true;
    if (is_over(session))
      launch_skip(&session->launch, session->methods[m].spec, size_bytes, "time budget");
    else
      status = soak_method(&workload, &session->methods[m], &passed);
    *failed += !passed;
  }
  now.workload = NULL;
  do_next("going on to a size");
  workload_free(&workload);
  return status;
}

/* Soaks the sizes of a race, of which the first is that of an index. */
static int soak_race(struct session *session, const struct size_race *race, int first, int *failed) {
  const int64_t *sizes_bytes = session->options->sizes_bytes;
  int status = team_agree(session->team, session_enter(session, race));
  now.wanted = race->repeats;
  for (int i = first; status == 0 && i < first + race->nsizes; i++)
    if (session_is_possible(session, sizes_bytes[i]))
      status = soak_size(session, sizes_bytes[i], failed);
    else
      session_skip_size(session, sizes_bytes[i], "messages of over 2 GiB - 1");
  return status;
}

static int finish(struct launch *launch, int failed) {
  const struct team *team = launch->team;
  const char *path = launch->options->out;
  int status = team->rank == 0 ? launch_close(launch) : 0;
  if (team->rank == 0 && status == 0 && launch->cases == 0)
    status = failure_set("no method is applicable: %s", launch->nskipped ? launch->skipped[0].reason : "");
  if (team_agree(team, status))
    return -1;
  if (failed > 0) {
    team_agree(team, failure_set("soak failed: %d of %d; see %s", failed, launch->cases, path));
    return SOAK_FAILED;
  }
  if (team->rank == 0)
    printf("swpbench: soak passed\nswpbench: ranks %d\nswpbench: nodes %d\nswpbench: complete %s\n",
           team->procs, team->nodes, path_shown(path));
  return 0;
}

/* Lets the watchdog of each rank bite if it makes no progress; of none where one cannot be started. */
static int watch(const char *doing, double limit_s) {
  now.limit_s = limit_s;
  do_next(doing);
  const int status = watchdog_start(limit_s, end_of_hang), agreed = team_agree(now.team, status);
  if (agreed && status == 0)
    watchdog_stop();
  return agreed;
}

int soak(const struct team *team, const struct options *options) {
  struct session session = {0}; /* the watchdog may read it before it is prepared */
  int failed = 0;
  if (SWP_SIMULATED)
    return team_agree(team, failure_set("soak runs on real machines only, not on simulated ones"));
  now.session = &session;
  now.team = team;
  if (watch("preparing", PREPARATION_LIMITS * options->limit_s))
    return -1;
  int status = session_prepare(&session, team, options, "soak");
  watchdog_stop();
  if (status == 0)
    status = watch("going on to a size", options->limit_s);
  const bool watched = status == 0;
  for (int i = 0, first = 0; status == 0 && i < options->nraces; first += options->races[i++].nsizes)
    status = soak_race(&session, &options->races[i], first, &failed);
  if (watched)
    watchdog_stop();
  if (status == 0)
    status = finish(&session.launch, failed);
  session_free(&session);
  return status;
}
