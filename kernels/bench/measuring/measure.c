#include "measure.h"

#include "canary.h"
#include "clock.h"
#include "error.h"
#include "hang.h"
#include "precision.h"
#include "rng.h"

#include <stdlib.h>

enum { SHORT_TICKS = 20, VERIFY_EVERY = 10, INNER_MAX = 10000 };

/* One rank's measurements of one execution. */
struct observation {
  int64_t duration_ns, begin_ns, late;
};

enum { OBSERVATION_WORDS = sizeof(struct observation) / sizeof(int64_t) };

/* The room of a block for one round. */
struct round {
  int number;               /* negative in the warm-up */
  int *order;               /* of the contenders */
  int spans;                /* the timed spans of each: the whole operation, then its phases */
  struct observation *mine; /* by contender, then span */
  struct observation *all;  /* on rank 0: by rank, contender, span */
  int64_t *warm_ns;         /* on rank 0: shortest execution in the warm-up, by contender */
  int64_t stagger_ns;       /* the most by which a rank is late */
  int64_t delay_ns;         /* by which this rank is late in this round, for all contenders */
  double canary_s;
  int64_t duration_ns;
};

typedef int execution(struct workload *workload, swp_plan *plan);

static struct observation observe(struct block *block, struct contender *contender, int64_t delay_ns,
                                  execution *execute) {
  struct workload *workload = block->workload;
  hang_next("execution of", contender->spec, workload->payload.item_bytes);
  workload->payload.repetition++;
  workload->operation->prepare(workload);
  cache_fill(&block->filler);
  const struct sync_start start = block->sync->scheme->start(block->sync);
  if (delay_ns > 0)
    clock_wait(start.origin_ns + delay_ns, block->team->oversubscribed);
  int error = 0;
  for (int i = 0; i < contender->inner && !error; i++)
    error = execute(workload, contender->plan);
  const int64_t end = clock_ns();
  if (error)
    team_fail("%s fails at %lld bytes: %s", contender->spec, (long long)workload->payload.item_bytes,
              swp_error_message());
  return (struct observation){end - start.origin_ns, start.begin_ns, start.late};
}

static int verify(const struct block *block, struct contender *contender) {
  const int status = block->workload->operation->verify(block->workload);
  if (status)
    failure_place("%s at %lld bytes", contender->spec, (long long)block->workload->payload.item_bytes);
  contender->verified++;
  return status;
}

static const struct observation *seen(const struct block *block, const struct round *round, int rank,
                                      int contender, int span) {
  return &round->all[((size_t)rank * (size_t)block->count + (size_t)contender) * (size_t)round->spans +
                     (size_t)span];
}

static int64_t longest_ns(const struct block *block, const struct round *round, int contender, int span,
                          int *argmax) {
  *argmax = 0;
  for (int rank = 1; rank < block->team->procs; rank++)
    if (seen(block, round, rank, contender, span)->duration_ns >
        seen(block, round, *argmax, contender, span)->duration_ns)
      *argmax = rank;
  return seen(block, round, *argmax, contender, span)->duration_ns;
}

/* Reduces the ranks' measurements of one contender to its sample, and keeps it unless the round is a
   warm-up. */
static void reduce(const struct block *block, struct round *round, int contender, int position) {
  int argmax, late = 0;
  const int64_t longest = longest_ns(block, round, contender, 0, &argmax);
  if (round->number < 0) {
    if (longest < round->warm_ns[contender])
      round->warm_ns[contender] = longest;
    return;
  }
  int64_t begin_least = INT64_MAX, begin_most = INT64_MIN;
  for (int rank = 0; rank < block->team->procs; rank++) {
    const struct observation *here = seen(block, round, rank, contender, 0);
    late += (int)here->late;
    begin_least = here->begin_ns < begin_least ? here->begin_ns : begin_least;
    begin_most = here->begin_ns > begin_most ? here->begin_ns : begin_most;
  }
  struct contender *of = &block->contenders[contender];
  struct sample *sample = &of->samples[round->number];
  *sample = (struct sample){.seconds = (double)longest * 1e-9 / of->inner,
                            .argmax_rank = argmax,
                            .round = round->number,
                            .position = position,
                            .late = late,
                            .skew_s = (double)(begin_most - begin_least) * 1e-9,
                            .canary_s = round->canary_s};
  for (int span = 1; span < round->spans; span++)
    sample->phase_s[span - 1] = (double)longest_ns(block, round, contender, span, &argmax) * 1e-9 / of->inner;
}

/* Executes one contender, then the phases of the operation on their own. 0, or -1 for a wrong payload. */
static int run_contender(struct block *block, struct round *round, int index, bool verified) {
  const struct operation *operation = block->workload->operation;
  struct contender *contender = &block->contenders[index];
  struct observation *mine = &round->mine[index * round->spans];
  mine[0] = observe(block, contender, round->delay_ns, operation->execute);
  const int status = verified ? verify(block, contender) : 0;
  for (int i = 0; i < operation->nphases; i++)
    mine[i + 1] = observe(block, contender, round->delay_ns, operation->phases[i].execute);
  return status;
}

/* The same for all contenders of a round, which so remain comparable. */
static int64_t delay_ns(const struct block *block, const struct round *round, uint64_t key) {
  struct rng rng = {hash_pair(key, (uint64_t)block->team->rank)};
  return rng_below(&rng, round->stagger_ns + 1);
}

/* One pass over all contenders in random order. */
static int run_round(struct block *block, struct round *round, bool verified) {
  const int64_t begin = clock_ns();
  const uint64_t key = hash_pair(block->seed, (uint64_t)(round->number + WARM_UPS));
  rng_permutation(&(struct rng){key}, block->count, round->order);
  round->canary_s = canary_s(block->team);
  round->delay_ns = delay_ns(block, round, key);
  int status = 0;
  for (int position = 0; position < block->count; position++)
    if (run_contender(block, round, round->order[position], verified && status == 0))
      status = -1;
  if (verified && team_agree(block->team, status))
    return -1;
  MPI_Request request;
  const int words = block->count * round->spans * OBSERVATION_WORDS;
  MPI_Igather(round->mine, words, MPI_INT64_T, round->all, words, MPI_INT64_T, 0, block->team->comm,
              &request);
  team_wait(block->team, 1, &request);
  for (int position = 0; block->team->rank == 0 && position < block->count; position++)
    reduce(block, round, round->order[position], position);
  round->duration_ns = clock_ns() - begin;
  return 0;
}

/* Executions too short for the clock are repeated within a sample, unless only the first would be cold. */
static void set_inner(struct block *block, const struct round *round) {
  for (int i = 0; i < block->count; i++) {
    int *inner = &block->contenders[i].inner;
    if (block->workload->operation->rooted)
      continue;
    if (block->team->rank == 0 && round->warm_ns[i] < SHORT_TICKS * block->tick_ns) {
      const int64_t shortest = round->warm_ns[i] > 0 ? round->warm_ns[i] : 1;
      const int64_t times = (SHORT_TICKS * block->tick_ns + shortest - 1) / shortest;
      *inner = (int)(times < INNER_MAX ? times : INNER_MAX);
    }
    team_bcast(block->team, inner, 1, MPI_INT);
  }
}

static void set_stagger(struct block *block, struct round *round) {
  int64_t shortest_ns = INT64_MAX;
  if ((round->stagger_ns = block->stagger_ns) > 0)
    return;
  for (int i = 0; block->team->rank == 0 && i < block->count; i++)
    shortest_ns = round->warm_ns[i] < shortest_ns ? round->warm_ns[i] : shortest_ns;
  team_bcast(block->team, &shortest_ns, 1, MPI_INT64_T);
  round->stagger_ns = shortest_ns;
}

static bool all_precise(const struct block *block) {
  bool all = true;
  for (int i = 0; i < block->count && all; i++) {
    const struct sample *first = block->contenders[i].samples;
    all = precise(member_interval(&first->seconds, sizeof *first, block->samples));
  }
  return all;
}

enum next_round next_round(int n, int most, bool precise, bool over, enum next_round last, const char **why) {
  *why = n == most ? "limit" : precise ? "precision" : "budget";
  if (n == most || precise || (n > 0 && over && last == RUN_VERIFIED))
    return STOP;
  const bool due = n % VERIFY_EVERY == 0 || precision_look(n + 1) || n + 1 == most;
  return over || due ? RUN_VERIFIED : RUN;
}

static int run_rounds(struct block *block, struct round *round) {
  for (round->number = -WARM_UPS; round->number < 0; round->number++)
    if (run_round(block, round, false))
      return -1;
  if (block->staggered)
    set_stagger(block, round);
  else if (block->filler.size == 0)
    set_inner(block, round);
  for (int next = STOP;; block->samples++, round->number++) {
    if (block->team->rank == 0)
      next = next_round(
          block->samples, block->max_samples, precision_look(block->samples) && all_precise(block),
          clock_ns() > block->deadline_ns - round->duration_ns, (enum next_round)next, &block->stopped);
    team_bcast(block->team, &next, 1, MPI_INT);
    if (next == STOP)
      return 0;
    if (sync_is_due(block->samples))
      sync_prepare(block->sync);
    if (run_round(block, round, next == RUN_VERIFIED))
      return -1;
  }
}

static struct round make_round(const struct block *block) {
  const size_t count = (size_t)block->count;
  const int spans = 1 + block->workload->operation->nphases;
  const size_t observations = count * (size_t)spans * sizeof(struct observation);
  struct round round = {
      .order = allocate(count * sizeof(int)), .spans = spans, .mine = allocate(observations)};
  if (block->team->rank == 0) {
    round.all = allocate((size_t)block->team->procs * observations);
    round.warm_ns = allocate(count * sizeof *round.warm_ns);
    for (size_t i = 0; i < count; i++)
      round.warm_ns[i] = INT64_MAX;
  }
  return round;
}

static void free_round(struct round *round) {
  free(round->order);
  free(round->mine);
  free(round->all);
  free(round->warm_ns);
}

int block_measure(struct block *block) {
  const size_t most = (size_t)block->max_samples;
  const bool root = block->team->rank == 0;
  struct round round = make_round(block);
  for (int i = 0; root && i < block->count; i++)
    block->contenders[i].samples = allocate(most * sizeof(struct sample));
  block->samples = 0;
  sync_prepare(block->sync);
  const int status = run_rounds(block, &round);
  if (status == 0)
    sync_check(block->sync);
  free_round(&round);
  return status;
}

int64_t block_try(struct block *block, int rounds) {
  struct round round = make_round(block);
  int64_t shortest_ns = INT64_MAX;
  round.stagger_ns = block->stagger_ns;
  sync_prepare(block->sync);
  for (round.number = -rounds; round.number < 0; round.number++) {
    run_round(block, &round, false); /* an unverified payload counts as right */
    if (round.duration_ns < shortest_ns)
      shortest_ns = round.duration_ns;
  }
  free_round(&round);
  return shortest_ns;
}
