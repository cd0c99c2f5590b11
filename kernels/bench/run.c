#include "run.h"

#include "clock.h"
#include "emit.h"
#include "error.h"
#include "measure.h"
#include "precision.h"
#include "proof.h"
#include "rng.h"

#include <stdlib.h>
#include <string.h>

/* All that lives as long as the launch. */
struct session {
  struct launch launch;
  char pattern_text[512];
  const struct team *team;
  const struct options *options;
  int64_t begin_ns;
  struct facts facts;
  struct sync sync;
  struct pattern pattern;
  struct pattern_features features;
  struct method *methods;
  int nmethods;
  struct output output;    /* on rank 0 */
  struct skipped *skipped; /* on rank 0 */
  int nskipped;
};

static void skip(struct session *session, const char *method, int64_t size_bytes, const char *reason) {
  if (session->team->rank)
    return;
  const size_t room = ((size_t)session->nskipped + 1) * sizeof *session->skipped;
  session->skipped = reallocate(session->skipped, room);
  struct skipped *skipped = &session->skipped[session->nskipped++];
  *skipped = (struct skipped){.size_bytes = size_bytes};
  snprintf(skipped->method, sizeof skipped->method, "%s", method);
  snprintf(skipped->reason, sizeof skipped->reason, "%s", reason);
}

static void skip_size(struct session *session, int64_t size_bytes, const char *reason) {
  for (int m = 0; m < session->nmethods; m++)
    skip(session, session->methods[m].spec, size_bytes, reason);
  if (session->team->rank == 0)
    printf("%lld B left out: %s\n", (long long)size_bytes, reason);
}

/* Moves contenders without a plan to `skipped`. */
static void drop_inapplicable(struct session *session, struct block *block, int64_t size_bytes) {
  int kept = 0;
  for (int i = 0; i < block->count; i++)
    if (block->contenders[i].plan)
      block->contenders[kept++] = block->contenders[i];
    else
      skip(session, block->contenders[i].spec, size_bytes, block->contenders[i].reason);
  block->count = kept;
}

/* A contender's median time, of the whole (span 0) or of one of its phases. */
static double median_s(const struct contender *contender, int samples, int span) {
  double *seconds = allocate((size_t)samples * sizeof *seconds);
  for (int s = 0; s < samples; s++)
    seconds[s] = span ? contender->samples[s].phase_s[span - 1] : contender->samples[s].seconds;
  const double median = median_interval(seconds, samples).median;
  free(seconds);
  return median;
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
    status = emit_case(&session->output, block->workload, &session->features, contender, block->samples);
  }
  if (best && !session->options->quiet)
    print_block(block, best);
  return status;
}

/* What is left of the budget, shared evenly by the sizes that are left. */
static int64_t block_deadline(const struct session *session, int index) {
  if (session->options->budget_s == 0)
    return INT64_MAX;
  const int64_t end_ns = session->begin_ns + (int64_t)(session->options->budget_s * 1e9);
  const int64_t now = clock_ns();
  return now + (end_ns - now) / (session->options->nsizes - index);
}

static int measure_block(struct session *session, struct block *block, int64_t size_bytes) {
  if (contenders_plan(block->workload, session->methods, session->nmethods, block->contenders, &block->count))
    return -1;
  proof_check(block->workload, block->contenders, block->count);
  drop_inapplicable(session, block, size_bytes);
  if (block->count == 0)
    return 0;
  if (block_measure(block))
    return -1;
  const int written = session->team->rank == 0 ? write_block(session, block) : 0;
  return team_agree(session->team, written);
}

static int measure_size(struct session *session, int index, bool *out_of_time) {
  const int64_t size_bytes = session->options->sizes_bytes[index];
  int64_t deadline_ns = block_deadline(session, index);
  int over = index > 0 && deadline_ns <= clock_ns();
  team_bcast(session->team, &over, 1, MPI_INT);
  *out_of_time = over;
  if (over)
    return 0;
  const uint64_t seed = hash_pair((uint64_t)session->options->seed, (uint64_t)size_bytes);
  struct workload workload;
  struct block block = {.team = session->team,
                        .sync = &session->sync,
                        .workload = &workload,
                        .contenders = allocate((size_t)session->nmethods * sizeof *block.contenders),
                        .seed = hash_pair(seed, (uint64_t)session->options->launch),
                        .max_samples = session->options->max_samples,
                        .tick_ns = session->launch.tick_ns,
                        .deadline_ns = deadline_ns};
  struct swp_hints hints = SWP_HINTS_DEFAULT;
  hints.ppn = (int)session->options->ppn;
  hints.placement = session->options->placement;
  int status = workload_create(session->team, session->options->operation, &session->pattern,
                               &session->features, size_bytes, seed, &hints, &workload);
  if (status == 0)
    status = measure_block(session, &block, size_bytes);
  contenders_free(block.contenders, block.count);
  free(block.contenders);
  workload_free(&workload);
  return status;
}

/* Whether the operation can carry the pattern's largest message. */
static bool is_possible(const struct session *session, int64_t size_bytes) {
  const int64_t most = session->options->operation->message_bytes_most;
  return most == 0 || session->features.message_items_max <= most / size_bytes;
}

static int prepare(struct session *session) {
  const struct team *team = session->team;
  const struct options *options = session->options;
  int status = methods_expand(options->operation->operation, options->methods, team->procs, &session->methods,
                              &session->nmethods);
  if (status == 0 && team->rank == 0)
    status = output_open(&session->output, options->out);
  if (team_agree(team, status) || pattern_generate(team, &options->pattern, &session->pattern))
    return -1;
  pattern_measure(team, &session->pattern, &session->features);
  facts_collect(team, &session->facts);
  session->sync = sync_create(sync_choose(team, options->sync), team);
  pattern_print(&options->pattern, session->pattern_text, sizeof session->pattern_text);
  session->launch = (struct launch){.team = team,
                                    .options = options,
                                    .facts = &session->facts,
                                    .sync = session->sync.scheme,
                                    .tick_ns = clock_tick_ns(),
                                    .operation = options->operation->name,
                                    .pattern = session->pattern_text};
  return team_agree(team, team->rank == 0 ? emit_header(&session->output, &session->launch) : 0);
}

static int finish(struct session *session) {
  const double seconds = (double)(clock_ns() - session->begin_ns) * 1e-9;
  int status = 0;
  if (session->team->rank == 0 && session->output.cases == 0)
    status = failure_set("no method is applicable: %s", session->nskipped ? session->skipped[0].reason : "");
  if (team_agree(session->team, status))
    return -1;
  return emit_end(&session->output, session->team, seconds, session->skipped, session->nskipped);
}

int run(const struct team *team, const struct options *options) {
  struct session session = {.team = team, .options = options, .begin_ns = clock_ns()};
  int status = prepare(&session);
  for (int i = 0; status == 0 && i < options->nsizes; i++) {
    bool out_of_time = false;
    const bool possible = is_possible(&session, options->sizes_bytes[i]);
    if (possible)
      status = measure_size(&session, i, &out_of_time);
    if (out_of_time || !possible)
      skip_size(&session, options->sizes_bytes[i], possible ? "time budget" : "messages of over 2 GiB - 1");
  }
  if (status == 0)
    status = finish(&session);
  output_close(&session.output);
  pattern_free(&session.pattern);
  free(session.methods);
  free(session.skipped);
  free(session.facts.hostnames);
  return status;
}
