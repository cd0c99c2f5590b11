#include "launch.h"

#include "canary.h"
#include "clock.h"
#include "error.h"
#include "others.h"

#include "commit.h" /* made by every build; other facts about the build are defined by CMake */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct launch launch_create(const struct team *team, const struct options *options, const char *operation) {
  return (struct launch){
      .team = team, .options = options, .operation = operation, .begin_ns = clock_ns(), .others = -1};
}

/* A character device such as /dev/null can be written; opening a FIFO would wait for a reader. */
static bool is_device(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISCHR(status.st_mode);
}

static int close_file(struct launch *launch) {
  FILE *file = launch->file;
  launch->file = NULL;
  errno = 0;
  return file && fclose(file) ? failure_set("cannot write %s: %s", launch->options->out, strerror(errno)) : 0;
}

void launch_free(struct launch *launch) {
  if (launch->file && ftell(launch->file) == 0 && !is_device(launch->options->out))
    unlink(launch->options->out); /* it failed before the header: the next launch may have the name */
  close_file(launch);
  free(launch->skipped);
  free(launch->facts.hostnames);
}

/* Only a new file is opened: of two launches that begin together, one gets it. */
static int open_file(struct launch *launch) {
  const char *path = launch->options->out;
  const int descriptor = open(path, is_device(path) ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (descriptor < 0 && errno == EEXIST)
    return failure_set("cannot write %s: it exists already; choose another name", path);
  if (descriptor < 0)
    return failure_set("cannot write %s: %s", path, strerror(errno));
  launch->file = fdopen(descriptor, "w");
  return launch->file ? 0 : failure_set("cannot write %s: %s", path, strerror(errno));
}

int launch_open(struct launch *launch, int status) {
  return team_agree(launch->team, status == 0 && launch->team->rank == 0 ? open_file(launch) : status);
}

static double seconds_since_begin(const struct launch *launch) {
  return (double)(clock_ns() - launch->begin_ns) * 1e-9;
}

bool launch_is_over(const struct launch *launch) {
  return launch->options->budget_s > 0 && seconds_since_begin(launch) > launch->options->budget_s;
}

void launch_skip(struct launch *launch, const char *method, int64_t size_bytes, const char *reason) {
  if (launch->team->rank > 1) /* rank 1 writes them if it takes over */
    return;
  const size_t room = ((size_t)launch->nskipped + 1) * sizeof *launch->skipped;
  launch->skipped = reallocate(launch->skipped, room);
  struct skipped *skipped = &launch->skipped[launch->nskipped++];
  *skipped = (struct skipped){.size_bytes = size_bytes};
  snprintf(skipped->method, sizeof skipped->method, "%s", method);
  snprintf(skipped->reason, sizeof skipped->reason, "%s", reason);
}

int launch_write(struct launch *launch, struct json *json, int samples) {
  launch->cases++;
  launch->samples += samples;
  return json_write(json, launch->file, launch->options->out);
}

static void write_hostnames(struct json *json, const struct launch *launch) {
  json_open(json, "hostnames", '[');
  for (int i = 0; i < launch->team->nodes; i++) {
    node_text name;
    if (launch->options->anonymous)
      snprintf(name, sizeof name, "node%d", i);
    else
      memcpy(name, launch->facts.hostnames[i], sizeof name);
    json_string(json, NULL, name);
  }
  json_close(json, ']');
}

/* The names of all methods for an operation: those that a plan has not met must be screened. */
static void write_methods(struct json *json, const char *operation) {
  struct swp_method_info info;
  char names[512] = "";
  size_t used = 0;
  for (int i = 0; swp_operation_name(i) != NULL; i++)
    for (int n = 0; strcmp(swp_operation_name(i), operation) == 0 && swp_method_list(n, &info) == SWP_SUCCESS;
         n++)
      if ((info.operations >> i & 1) && used < sizeof names)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? " " : "", info.name);
  if (used > 0)
    json_string(json, "methods", names);
}

enum { SYNC_ROOM = 32 };

static void write_system(struct json *json, const struct launch *launch) {
  const struct options *options = launch->options;
  const struct facts *facts = &launch->facts;
  json_string(json, "system", options->system);
  json_string(json, "environment", options->environment);
  json_string(json, "launcher", options->launcher ? options->launcher : "");
  json_string(json, "campaign", options->campaign ? options->campaign : facts->compact_date);
  json_int(json, "launch", options->launch);
  json_string(json, "date", facts->date);
  json_string(json, "identity", facts->identity);
  json_string(json, "allocation", facts->allocation);
  write_hostnames(json, launch);
  json_string(json, "cpu_model", facts->cpu_model);
  json_int(json, "cores", options->cores ? options->cores : launch->team->cores);
  json_string(json, "mpi_library", facts->mpi_library);
  json_string(json, "mpi_standard", facts->mpi_standard);
  json_string(json, "compiler", BUILD_COMPILER);
  json_string(json, "flags", BUILD_FLAGS);
  json_string(json, "commit", BUILD_COMMIT);
}

/* The layout that is given to the methods. */
static void write_layout(struct json *json, const struct launch *launch) {
  const struct options *options = launch->options;
  const int procs = launch->team->procs;
  int nodes = launch->team->nodes, ppn = launch->team->ppn;
  if (options->ppn) {
    nodes = (int)((procs - 1) / options->ppn) + 1;
    ppn = options->ppn < procs ? (int)options->ppn : procs;
    if (options->placement == SWP_PLACEMENT_CYCLIC)
      ppn = (procs - 1) / nodes + 1;
  }
  json_int(json, "procs", procs);
  json_int(json, "nodes", nodes);
  json_int(json, "ppn", ppn);
  json_int(json, "machines", launch->team->machines);
  json_string(json, "placement",
              !options->ppn                                ? ""
              : options->placement == SWP_PLACEMENT_CYCLIC ? "cyclic"
                                                           : "block");
}

/* The bound on the error of the clocks, if there are several. */
static void write_clock_error(struct json *json, const struct launch *launch) {
  if (launch->team->machines > 1)
    json_double(json, "clock_error_s", launch->sync.check.error_s);
}

static int write_header(const struct launch *launch) {
  const struct options *options = launch->options;
  const struct team *team = launch->team;
  char text[512];
  struct json json;
  json_begin(&json, "header");
  json_int(&json, "schema", 1);
  snprintf(text, sizeof text, "swpbench %s", swp_version());
  json_string(&json, "program", text);
  write_system(&json, launch);
  json_string(&json, "operation", launch->operation);
  write_methods(&json, launch->operation);
  json_string(&json, "pattern", launch->pattern);
  write_layout(&json, launch);
  json_bool(&json, "oversubscribed", team->oversubscribed);
  json_string(&json, "yield", options->yield);
  json_string(&json, "binding", launch->facts.binding);
  json_bool(&json, "bound", launch->facts.bound);
  if (launch->facts.sockets > 0)
    json_int(&json, "sockets", launch->facts.sockets);
  json_int(&json, "seed", options->seed);
  char sync[SYNC_ROOM];
  snprintf(sync, sizeof sync, "%s%s%s", launch->sync.scheme->name, options->cold ? "-cold" : "",
           options->staggered ? "-staggered" : "");
  json_string(&json, "sync", sync);
  if (options->arrival_s > 0)
    json_double(&json, "arrival_s", options->arrival_s);
  if (launch->sync.falls_back)
    json_bool(&json, "sync_fallback", true);
  write_clock_error(&json, launch);
  if (launch->crossing_s > 0)
    json_double(&json, "crossing_s", launch->crossing_s);
  json_open(&json, "clock", '{');
  json_string(&json, "name", CLOCK_NAME);
  json_double(&json, "tick_s", (double)launch->tick_ns * 1e-9);
  json_close(&json, '}');
  json_doubles(&json, "load", launch->facts.load, sizeof *launch->facts.load, 3);
  json_string(&json, "buffers", options->cold ? "cold" : "warm");
  json_double(&json, "budget_s", options->budget_s);
  if (options->proved)
    json_string(&json, "proof", "earlier");
  return json_write(&json, launch->file, options->out);
}

int launch_begin(struct launch *launch) {
  const struct team *team = launch->team;
  if (team_agree(team, sync_check_scheme(team, launch->options->sync)))
    return -1;
  facts_collect(team, &launch->facts);
  launch->sync = sync_create(team, launch->options->sync);
  launch->tick_ns = clock_tick_ns();
  launch->crossing_s = canary_crossing_s(team);
  others_begin(team);
  return team_agree(team, team->rank == 0 ? write_header(launch) : 0);
}

static void write_features(struct json *json, const struct pattern_features *features, int64_t item_bytes,
                           int procs) {
  json_open(json, "features", '{');
  json_int(json, "mmax", features->messages_max);
  json_double(json, "mavg", (double)features->messages / procs);
  json_double(json, "vavg_bytes", (double)features->items * (double)item_bytes / procs);
  json_int(json, "vmax_bytes", features->items_max * item_bytes);
  json_close(json, '}');
}

static void write_statistics(struct json *json, enum swp_operation operation,
                             const struct swp_statistics *statistics) {
  json_open(json, "statistics", '{');
  if (operation == SWP_EXCHANGE) {
    json_int(json, "stages", statistics->stages);
    json_int(json, "mmax", statistics->mmax);
    json_double(json, "mavg", statistics->mavg);
    json_double(json, "vavg_bytes", statistics->vavg_bytes);
    json_int(json, "vmax_bytes", statistics->vmax_bytes);
    json_int(json, "buffer_bytes", statistics->buffer_bytes);
    json_int(json, "copied_bytes", statistics->copied_bytes);
    json_int(json, "hop_bytes", statistics->hop_bytes);
    json_int(json, "on_node_messages", statistics->on_node_messages);
    json_int(json, "off_node_messages", statistics->off_node_messages);
    json_int(json, "on_node_bytes", statistics->on_node_bytes);
    json_int(json, "off_node_bytes", statistics->off_node_bytes);
    json_int(json, "off_node_mmax", statistics->off_node_mmax);
    json_int(json, "off_node_vmax_bytes", statistics->off_node_vmax_bytes);
    if (statistics->on_socket_messages >= 0) {
      json_int(json, "on_socket_messages", statistics->on_socket_messages);
      json_int(json, "on_socket_bytes", statistics->on_socket_bytes);
    }
  }
  json_int(json, "plan_bytes", statistics->plan_bytes);
  json_close(json, '}');
}

static void write_samples(struct json *json, const struct sample *samples, int count) {
  const size_t stride = sizeof *samples;
  json_doubles(json, "samples_s", &samples->seconds, stride, count);
  json_ints(json, "argmax_rank", &samples->argmax_rank, stride, count);
  json_ints(json, "round", &samples->round, stride, count);
  json_ints(json, "position", &samples->position, stride, count);
  json_ints(json, "late", &samples->late, stride, count);
  json_doubles(json, "skew_s", &samples->skew_s, stride, count);
  json_doubles(json, "canary_s", &samples->canary_s, stride, count);
}

int launch_write_case(struct launch *launch, const struct workload *workload,
                      const struct pattern_features *features, const struct contender *contender,
                      int samples) {
  const int64_t item_bytes = workload->payload.item_bytes;
  struct json json;
  json_begin(&json, "case");
  json_string(&json, "method", contender->spec);
  if (contender->described[0] != '\0') {
    json_string(&json, "selected", contender->selected);
    json_string(&json, "described", contender->described);
  }
  json_int(&json, "size_bytes", item_bytes);
  json_int(&json, "bytes", case_bytes(workload->operation, features, item_bytes));
  write_features(&json, features, item_bytes, workload->team->procs);
  write_statistics(&json, workload->operation->operation, &contender->statistics);
  json_int(&json, "inner", contender->inner);
  write_samples(&json, contender->samples, samples);
  write_clock_error(&json, launch);
  for (int i = 0; i < workload->operation->nphases; i++)
    json_doubles(&json, workload->operation->phases[i].key, &contender->samples->phase_s[i],
                 sizeof *contender->samples, samples);
  json_doubles(&json, "plan_s", &contender->plan_s, sizeof contender->plan_s, 1);
  json_int(&json, "verified", contender->verified);
  return launch_write(launch, &json, samples);
}

int launch_close(struct launch *launch) {
  struct json json;
  json_begin(&json, "end");
  json_int(&json, "cases", launch->cases);
  json_int(&json, "samples", launch->samples);
  json_double(&json, "seconds", seconds_since_begin(launch));
  if (launch->others >= 0)
    json_double(&json, "others", launch->others);
  json_open(&json, "skipped", '[');
  for (int i = 0; i < launch->nskipped; i++) {
    json_open(&json, NULL, '{');
    json_string(&json, "method", launch->skipped[i].method);
    json_int(&json, "size_bytes", launch->skipped[i].size_bytes);
    json_string(&json, "reason", launch->skipped[i].reason);
    json_close(&json, '}');
  }
  json_close(&json, ']');
  return json_write(&json, launch->file, launch->options->out) ? -1 : close_file(launch);
}

int launch_take_over(struct launch *launch) {
  /* A file that is gone is not made again; a terminal has no end to seek. */
  const int descriptor = open(launch->options->out, O_WRONLY | O_APPEND);
  launch->file = descriptor < 0 ? NULL : fdopen(descriptor, "a");
  return launch->file ? 0 : failure_set("cannot write %s: %s", launch->options->out, strerror(errno));
}

int launch_end(struct launch *launch) {
  const struct team *team = launch->team;
  launch->others = others_share(team);
  if (team_agree(team, team->rank == 0 ? launch_close(launch) : 0))
    return -1;
  if (team->rank == 0)
    printf("swpbench: payload ok\nswpbench: ranks %d\nswpbench: nodes %d\nswpbench: samples %d\nswpbench: "
           "complete %s\n",
           team->procs, team->nodes, launch->samples, path_shown(launch->options->out));
  return 0;
}
