/* Proof by stacks: one rank comes late, and the functions in which the others wait belong to the
   algorithm. Where they wait is also chance, so each is observed several times, in passes over all of them,
   as a busy machine changes it for a while: what distinguishes two algorithms is there at every observation
   of the one and at no observation of the other. Where messages can be seen, those of an execution come
   first: they are no chance, and who sends unlike the library by itself and all others needs no stacks. */
#include "proof.h"

#include "hang.h"
#include "rng.h"
#include "sent.h"
#include "stacks.h"
#include "sync.h"
#include "variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  EVERY_US = 100,
  LATE_US = 2000,
  ENOUGH = 8,
  ATTEMPTS = 6,
  WARM_CALLS = 8,
  LATE_RANKS = 2,
  PASSES = 2,
  PASS_OBSERVATIONS = 4,
  OBSERVATIONS = PASSES * PASS_OBSERVATIONS,
  CONFIRMED = 2,
  SPECS_BYTES = 1 << 14
};

static const char ALGORITHM[] = "vendor:algorithm=";

static void sleep_us(long us) {
  const struct timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, NULL);
}

/* What is seen of one algorithm: the messages of all ranks in an execution, as one number, and stacks with
   the root late, for which all ranks wait that receive from it, and with its neighbour late. */
struct sight {
  uint64_t sent;
  int counted;  /* executions */
  bool varies;  /* what they sent */
  bool settled; /* neither the library by itself nor any other contender sends the same */
  bool seen[PASSES];
  struct stacks stacks[LATE_RANKS][OBSERVATIONS];
};

static int late_rank(const struct workload *workload, int index) {
  return (workload->root + index * (workload->team->procs - 1)) % workload->team->procs;
}

/* One call with one rank late. The error, which is the same on every rank, is the library's. */
static int watch(const struct workload *workload, swp_plan *plan, int late, long late_us,
                 struct stacks *stacks) {
  hang_beat();
  workload->operation->prepare((struct workload *)workload);
  sync_barrier(workload->team);
  if (workload->team->rank == late)
    sleep_us(late_us);
  stacks_begin(stacks, EVERY_US);
  const int error = workload->operation->execute((struct workload *)workload, plan);
  stacks_end();
  return error;
}

/* Libraries may run another algorithm after the first calls on a communicator, so that messages are those of
   the last. */
static int warm_up(const struct workload *workload, swp_plan *plan, struct sight *sight) {
  uint64_t sent = 0;
  int error = SWP_SUCCESS;
  for (int i = 0; error == SWP_SUCCESS && i < WARM_CALLS; i++) {
    hang_beat();
    workload->operation->prepare((struct workload *)workload);
    sync_barrier(workload->team);
    sent_begin();
    error = workload->operation->execute((struct workload *)workload, plan);
    sent = sent_end();
  }
  if (sent != 0)
    sent = hash_pair((uint64_t)workload->team->rank, sent);
  team_allreduce(workload->team, &sent, 1, MPI_UINT64_T, MPI_SUM);
  sight->varies |= sight->counted++ > 0 && sight->sent != sent;
  sight->sent = sent;
  team_allreduce(workload->team, &error, 1, MPI_INT, MPI_MAX);
  return error;
}

static bool is_seen(const struct sight *sight) {
  bool all = true;
  for (int pass = 0; pass < PASSES; pass++)
    all = all && sight->seen[pass];
  return all;
}

static bool is_complete(const struct sight *sight, int late, int first, int count) {
  for (int i = first; i < first + count; i++)
    if (sight->stacks[late][i].count < ENOUGH)
      return false;
  return true;
}

/* Returns whether all others waited for the late root, or the root for the late rank, in a whole pass. */
static bool is_enough(const struct workload *workload, const struct sight *sight, int pass) {
  const int rank = workload->team->rank, root = workload->root;
  int waited[LATE_RANKS];
  for (int i = 0; i < LATE_RANKS; i++)
    waited[i] = is_complete(sight, i, pass * PASS_OBSERVATIONS, PASS_OBSERVATIONS) ||
                rank == late_rank(workload, i) || (i > 0 && rank != root);
  team_allreduce(workload->team, waited, LATE_RANKS, MPI_INT, MPI_MIN);
  return waited[0] || waited[1];
}

/* Makes ranks later and later, until enough stacks were seen in a pass. */
static int see_stacks(const struct workload *workload, swp_plan *plan, struct sight *sight, int pass) {
  const struct team *team = workload->team;
  int error = warm_up(workload, plan, sight);
  sight->seen[pass] = false;
  for (int attempt = 0; attempt < ATTEMPTS && error == SWP_SUCCESS && !sight->seen[pass]; attempt++) {
    for (int i = 0; i < LATE_RANKS * PASS_OBSERVATIONS && error == SWP_SUCCESS; i++) {
      const int late = i % LATE_RANKS;
      error = watch(workload, plan, late_rank(workload, late), LATE_US << attempt,
                    &sight->stacks[late][pass * PASS_OBSERVATIONS + i / LATE_RANKS]);
      team_allreduce(team, &error, 1, MPI_INT, MPI_MAX);
    }
    sight->seen[pass] = is_enough(workload, sight, pass);
  }
  return error;
}

static int count_sent(const struct workload *workload, swp_plan *plan, struct sight *sight, int pass) {
  (void)pass;
  return warm_up(workload, plan, sight);
}

typedef int see_function(const struct workload *workload, swp_plan *plan, struct sight *sight, int pass);

/* Each pass has a plan of its own, and so another communicator: one may be unlike the next. */
static int observe_pass(const struct workload *workload, see_function *see, const char *spec, swp_plan *plan,
                        struct sight *sight, int pass) {
  swp_plan *own = NULL;
  hang_next("proof of", spec, workload->payload.item_bytes);
  int error = pass > 0 ? workload->operation->plan(workload, spec, &own) : SWP_SUCCESS;
  if (error == SWP_SUCCESS)
    error = see(workload, pass > 0 ? own : plan, sight, pass);
  swp_plan_free(&own);
  return error;
}

static int observe(const struct workload *workload, see_function *see, const char *spec, swp_plan *plan,
                   struct sight *sight) {
  int error = SWP_SUCCESS;
  for (int pass = 0; pass < PASSES && error == SWP_SUCCESS; pass++)
    error = observe_pass(workload, see, spec, plan, sight, pass);
  return error;
}

/* What varies by itself shows no difference. */
static bool send_differently(const struct sight *a, const struct sight *b) {
  return a->counted >= PASSES && b->counted >= PASSES && !a->varies && !b->varies && a->sent != b->sent;
}

/* Returns whether the one sends otherwise than the other, or on some rank waits in another function. */
static bool differ(const struct team *team, const struct sight *a, const struct sight *b) {
  int different = send_differently(a, b);
  for (int i = 0; i < LATE_RANKS; i++)
    if (is_complete(a, i, 0, OBSERVATIONS) && is_complete(b, i, 0, OBSERVATIONS))
      different |= stacks_distinguish(a->stacks[i], b->stacks[i], OBSERVATIONS) ||
                   stacks_distinguish(b->stacks[i], a->stacks[i], OBSERVATIONS);
  team_allreduce(team, &different, 1, MPI_INT, MPI_MAX);
  return different;
}

static bool is_algorithm(const char *spec) {
  return strncmp(spec, ALGORITHM, sizeof ALGORITHM - 1) == 0;
}

static bool is_to_prove(const struct contender *contender) {
  return contender->plan && is_algorithm(contender->spec);
}

/* The text after the last colon says most: an MPICH error first lists all functions up to the caller. */
static const char *last_words(const char *message) {
  const char *colon = strrchr(message, ':');
  return colon ? colon + 1 : message;
}

/* Takes the plan from a contender whose call failed. */
static void refuse(struct contender *contender) {
  swp_plan_free(&contender->plan);
  snprintf(contender->reason, sizeof contender->reason, "refused by the MPI library:%s",
           last_words(swp_error_message()));
}

/* Returns whether the library was observed to run something else under another of its algorithms. */
static bool has_other(const struct workload *workload, const char *own, const struct sight *sight) {
  char *specs = allocate(SPECS_BYTES), *rest = specs;
  bool found = false;
  swp_method_specs(workload->operation->operation, "vendor", workload->team->procs, specs, SPECS_BYTES);
  for (char *spec; !found && (spec = strtok_r(rest, " ", &rest)) != NULL;) {
    struct sight *other = allocate_zeros(sizeof *other);
    swp_plan *plan = NULL;
    found = is_algorithm(spec) && strcmp(spec, own) != 0 &&
            workload->operation->plan(workload, spec, &plan) == SWP_SUCCESS &&
            observe(workload, see_stacks, spec, plan, other) == SWP_SUCCESS &&
            differ(workload->team, sight, other);
    swp_plan_free(&plan);
    free(other);
  }
  hang_next("proof of", own, workload->payload.item_bytes); /* it had named one of the specs */
  free(specs);
  return found;
}

/* Returns whether the contender was observed to run differently from the library by itself or some other
   contender, and from each before it; else sets why not. */
static bool is_proved(const struct workload *workload, struct contender *contenders, int count, int index,
                      const struct sight *sights) {
  struct contender *contender = &contenders[index];
  bool alone = true, differs = send_differently(&sights[index], &sights[count]);
  const char *same = NULL;
  snprintf(contender->reason, sizeof contender->reason, "no rank was observed to wait for another in it");
  if (!is_seen(&sights[index]))
    return false;
  for (int i = 0; i < count; i++)
    if (i != index && (sights[i].settled || is_seen(&sights[i]))) {
      const bool differs_here = differ(workload->team, &sights[index], &sights[i]);
      alone = false;
      differs |= differs_here;
      if (i < index && contenders[i].plan && !differs_here && same == NULL)
        same = contenders[i].spec;
    }
  if (alone && !differs)
    differs = has_other(workload, contender->spec, &sights[index]);
  if (differs && same)
    snprintf(contender->reason, sizeof contender->reason,
             "the MPI library was observed to run the same as for %s", same);
  else if (!differs)
    snprintf(contender->reason, sizeof contender->reason,
             "setting it was not observed to change what the MPI library runs");
  return differs && same == NULL;
}

/* Takes the plan from a contender that is not proved. What is not proved at first, chance may seem to prove
   in another observation, so the majority of three further ones decides. */
static void judge(const struct workload *workload, struct contender *contenders, int count, int index,
                  struct sight *sights) {
  struct contender *contender = &contenders[index];
  bool proved = is_proved(workload, contenders, count, index, sights);
  for (int yes = 0, no = 0; !proved && no < CONFIRMED;) {
    if (observe(workload, see_stacks, contender->spec, contender->plan, &sights[index]) != SWP_SUCCESS) {
      refuse(contender);
      return;
    }
    if (is_proved(workload, contenders, count, index, sights))
      proved = ++yes == CONFIRMED;
    else
      no++;
  }
  if (!proved)
    swp_plan_free(&contender->plan);
}

/* MPICH silently runs another algorithm if one cannot do a call, unless it is set to fail. Returns the
   previous setting; -1: there is no such variable. */
static int set_fallback(int value) {
  MPI_T_cvar_handle handle;
  int index, count, level, before = -1;
  MPI_Query_thread(&level);
  MPI_T_init_thread(level, &level); /* Open MPI 4 takes the level requested here for MPI's */
  if (value >= 0 && MPI_T_cvar_get_index(MPICH_FALLBACK, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
    MPI_T_cvar_read(handle, &before);
    MPI_T_cvar_write(handle, &value);
    MPI_T_cvar_handle_free(&handle);
  }
  return before;
}

/* Sees what each contender sends, and after them the library by itself. */
static void count_all(const struct workload *workload, struct contender *contenders, int count,
                      struct sight *sights) {
  static const char own[] = "vendor";
  swp_plan *plan = NULL;
  for (int i = 0; i < count; i++)
    if (is_to_prove(&contenders[i]) &&
        observe(workload, count_sent, contenders[i].spec, contenders[i].plan, &sights[i]) != SWP_SUCCESS)
      refuse(&contenders[i]);
  if (workload->operation->plan(workload, own, &plan) == SWP_SUCCESS)
    observe(workload, count_sent, own, plan, &sights[count]);
  swp_plan_free(&plan);
  for (int i = 0; i < count; i++) {
    sights[i].settled = send_differently(&sights[i], &sights[count]);
    for (int other = 0; other < count; other++)
      if (other != i && is_to_prove(&contenders[other]))
        sights[i].settled = sights[i].settled && send_differently(&sights[i], &sights[other]);
  }
}

/* Sees the stacks of all contenders before it judges any. */
static void prove(const struct workload *workload, struct contender *contenders, int count) {
  struct sight *sights = allocate_zeros(((size_t)count + 1) * sizeof *sights);
  count_all(workload, contenders, count, sights);
  for (int pass = 0; pass < PASSES; pass++)
    for (int i = 0; i < count; i++)
      if (is_to_prove(&contenders[i]) && !sights[i].settled &&
          observe_pass(workload, see_stacks, contenders[i].spec, contenders[i].plan, &sights[i], pass) !=
              SWP_SUCCESS)
        refuse(&contenders[i]);
  for (int i = 0; i < count; i++)
    if (is_to_prove(&contenders[i]) && !sights[i].settled)
      judge(workload, contenders, count, i, sights);
  free(sights);
}

void proof_check(const struct workload *workload, struct contender *contenders, int count, bool proved) {
  enum { FAIL };
  int any = 0;
  for (int i = 0; i < count; i++)
    any |= is_to_prove(&contenders[i]);
  if (!any)
    return;
  const int fallback = set_fallback(FAIL);
  if (!proved)
    prove(workload, contenders, count);
  struct sight unused = {0};
  for (int i = 0; proved && i < count; i++)
    if (is_to_prove(&contenders[i]) && warm_up(workload, contenders[i].plan, &unused) != SWP_SUCCESS)
      refuse(&contenders[i]);
  set_fallback(fallback);
}
