#include "commands.h"

#include "budget.h"
#include "clock.h"
#include "error.h"
#include "hang.h"
#include "measure.h"
#include "precision.h"
#include "proof.h"
#include "rng.h"

#include <stdlib.h>
#include <string.h>

/* Moves contenders without a plan to `skipped`. */
static void drop_inapplicable(struct session *session, struct block *block, int64_t size_bytes) {
  int kept = 0;
  for (int i = 0; i < block->count; i++)
    if (block->contenders[i].plan)
      block->contenders[kept++] = block->contenders[i];
    else
      launch_skip(&session->launch, block->contenders[i].spec, size_bytes, block->contenders[i].reason);
  block->count = kept;
}

/* A contender's median time, of the whole (span 0) or of one of its phases. */
static double median_s(const struct contender *contender, int samples, int span) {
  const struct sample *first = contender->samples;
  return member_interval(span ? &first->phase_s[span - 1] : &first->seconds, sizeof *first, samples).median;
}

static void print_block(const struct block *block, const struct contender *best) {
  const struct operation *operation = block->workload->operation;
  printf("%8lld B  %2d methods  %3d samples (%s)  fastest %s, %.3g us",
         (long long)block->workload->payload.item_bytes, block->count, block->samples, block->stopped,
         best->spec, median_s(best, block->samples, 0) * 1e6);
  for (int i = 0; i < operation->nphases; i++)
    printf(", %s %.3g us", operation->phases[i].name, median_s(best, block->samples, i + 1) * 1e6);
  putchar('\n');
  fflush(stdout);
}

/* Writes the cases of a block and says on stdout how it went. */
static int write_block(struct session *session, const struct block *block) {
  const struct contender *best = NULL;
  int status = 0;
  for (int i = 0; status == 0 && i < block->count; i++) {
    const struct contender *contender = &block->contenders[i];
    if (!best || median_s(contender, block->samples, 0) < median_s(best, block->samples, 0))
      best = contender;
    status =
        launch_write_case(&session->launch, block->workload, &session->features, contender, block->samples);
  }
  if (best && !session->options->quiet)
    print_block(block, best);
  return status;
}

static int measure_block(struct session *session, struct budget *budget, int index, struct block *block) {
  if (contenders_plan(block->workload, session->methods, session->nmethods, block->contenders, &block->count))
    return -1;
  proof_check(block->workload, block->contenders, block->count, session->options->proved);
  drop_inapplicable(session, block, session->options->sizes_bytes[index]);
  if (block->count == 0)
    return 0;
  block->deadline_ns = budget_deadline_ns(budget, index, block->count);
  if (block_measure(block))
    return -1;
  budget_spent(budget, index, block->samples);
  const int written = session->team->rank == 0 ? write_block(session, block) : 0;
  return team_agree(session->team, written);
}

static int measure_size(struct session *session, struct budget *budget, int index, int max_samples,
                        bool *out_of_time) {
  budget_begin(budget);
  const int64_t size_bytes = session->options->sizes_bytes[index];
  int over = session->team->rank == 0 && !budget_keeps(budget, index);
  team_bcast(session->team, &over, 1, MPI_INT);
  *out_of_time = over;
  if (over)
    return 0;
  struct workload workload;
  int status = session_workload(session, size_bytes, &workload);
  struct block block = {.team = session->team,
                        .sync = &session->launch.sync,
                        .workload = &workload,
                        .contenders = allocate((size_t)session->nmethods * sizeof *block.contenders),
                        .seed = hash_pair(workload.payload.seed, (uint64_t)session->options->launch),
                        .max_samples = max_samples,
                        .staggered = session->options->staggered,
                        .stagger_ns = (int64_t)(1e9 * session->options->arrival_s),
                        .filler = session->filler,
                        .tick_ns = session->launch.tick_ns};
  if (status == 0)
    status = measure_block(session, budget, index, &block);
  contenders_free(block.contenders, block.count);
  free(block.contenders);
  workload_free(&workload);
  return status;
}

static int finish(struct session *session) {
  struct launch *launch = &session->launch;
  int status = 0;
  if (launch->team->rank == 0 && launch->cases == 0)
    status = failure_set("no method is applicable: %s", launch->nskipped ? launch->skipped[0].reason : "");
  if (team_agree(launch->team, status))
    return -1;
  if (launch->team->rank == 0 && methods_is_by_environment(session->methods[0].spec))
    printf("swpbench: no launch proves that the library obeys %s\n", session->methods[0].spec);
  return launch_end(launch);
}

/* Measures the sizes of a race, of which the first is that of an index. */
static int measure_race(struct session *session, struct budget *budget, const struct size_race *race,
                        int first) {
  int status = team_agree(session->team, session_enter(session, race));
  for (int i = first; status == 0 && i < first + race->nsizes; i++) {
    const int64_t size_bytes = session->options->sizes_bytes[i];
    bool out_of_time = false;
    const bool possible = session_is_possible(session, size_bytes);
    if (possible)
      status = measure_size(session, budget, i, (int)race->repeats, &out_of_time);
    if (out_of_time || !possible)
      session_skip_size(session, size_bytes, possible ? "time budget" : "messages of over 2 GiB - 1");
  }
  return status;
}

int run(const struct team *team, const struct options *options) {
  struct session session;
  struct budget budget = {0};
  hang_watch(team->rank, PREPARATION_LIMITS * options->limit_s);
  int status = session_prepare(&session, team, options, options->operation->name);
  hang_watch(team->rank, options->limit_s);
  if (status == 0)
    status = budget_prepare(&session, &budget);
  for (int i = 0, first = 0; status == 0 && i < options->nraces; first += options->races[i++].nsizes)
    status = measure_race(&session, &budget, &options->races[i], first);
  if (status == 0)
    status = finish(&session);
  hang_watch(team->rank, 0);
  budget_free(&budget);
  session_free(&session);
  return status;
}
