#define _GNU_SOURCE /* sched_getaffinity */
#include "facts.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Cuts the text after its first line and turns runs of blanks and control characters into one space. */
static void tidy(char *text) {
  char *out = text;
  text[strcspn(text, "\r\n")] = '\0';
  for (const char *in = text; *in; in++) {
    const bool blank = isspace((unsigned char)*in) || iscntrl((unsigned char)*in);
    if (!blank)
      *out++ = *in;
    else if (out > text && out[-1] != ' ')
      *out++ = ' ';
  }
  while (out > text && out[-1] == ' ')
    out--;
  *out = '\0';
}

static void read_cpu_model(char *model, size_t length) {
  char line[512];
  struct utsname machine;
  snprintf(model, length, "%s", SWP_SIMULATED ? "simulated" : "");
  FILE *file = *model ? NULL : fopen("/proc/cpuinfo", "r");
  while (file && *model == '\0' && fgets(line, sizeof line, file))
    if (strncmp(line, "model name", 10) == 0 && strchr(line, ':'))
      snprintf(model, length, "%s", strchr(line, ':') + 1);
  if (file)
    fclose(file);
  if (*model == '\0' && uname(&machine) == 0) /* not every architecture names its model */
    snprintf(model, length, "%s", machine.machine);
  tidy(model);
}

static void read_binding(char *text, size_t length) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  size_t used = 0;
  *text = '\0';
  for (int first = 0, last; first < CPU_SETSIZE && used < length; first = last + 1) {
    last = first;
    if (!CPU_ISSET(first, &cores))
      continue;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cores))
      last++;
    const char *comma = used ? "," : "";
    used += (size_t)(last > first ? snprintf(text + used, length - used, "%s%d-%d", comma, first, last)
                                  : snprintf(text + used, length - used, "%s%d", comma, first));
  }
}

/* Returns whether no rank may use all cores that the ranks of its node have. */
static bool are_bound(const struct team *team) {
  cpu_set_t cores;
  int bound = sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) < team->cores;
  team_allreduce(team, &bound, 1, MPI_INT, MPI_MIN);
  return bound;
}

/* The number that the library knows, which it reports for a plan. */
static int count_sockets(const struct team *team) {
  swp_plan *plan;
  struct swp_statistics statistics;
  if (swp_discovery_plan(team->comm, "pex", NULL, &plan))
    return -1;
  swp_plan_statistics(plan, &statistics, NULL);
  swp_plan_free(&plan);
  return statistics.sockets;
}

/* The number of the batch system's job, without PBS's host name. Flux counts each command as a job. */
static void read_allocation(char *text, size_t length) {
  static const char *const VARIABLES[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_ENCLOSING_ID",
                                          "FLUX_JOB_ID"};
  *text = '\0';
  for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES && *text == '\0'; i++)
    if (getenv(VARIABLES[i]) != NULL)
      snprintf(text, length, "%s", getenv(VARIABLES[i]));
  text[strcspn(text, ".")] = '\0';
  tidy(text);
}

static void read_mpi(struct facts *facts) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, version, subversion;
  MPI_Get_library_version(library, &length);
  tidy(library);
  snprintf(facts->mpi_library, sizeof facts->mpi_library, "%.255s", library);
  MPI_Get_version(&version, &subversion);
  snprintf(facts->mpi_standard, sizeof facts->mpi_standard, "%d.%d", version, subversion);
}

/* Reads the name of the simulated machine if there is one. */
static void read_hostname(char *name, size_t length) {
  char processor[MPI_MAX_PROCESSOR_NAME];
  int unused;
  *name = '\0';
  MPI_Get_processor_name(processor, &unused);
  if (SWP_SIMULATED)
    snprintf(name, length, "%s", processor);
  else
    gethostname(name, length - 1);
  tidy(name);
}

/* Returns one text per node, from the first rank of each, on rank 0, to be freed; elsewhere NULL. */
static node_text *gather_texts(const struct team *team, const node_text text) {
  node_text *texts = NULL;
  MPI_Comm leaders;
  int rank_here;
  MPI_Comm_rank(team->node, &rank_here);
  MPI_Comm_split(team->comm, rank_here == 0 ? 0 : MPI_UNDEFINED, team->rank, &leaders);
  if (leaders == MPI_COMM_NULL)
    return NULL;
  if (team->rank == 0)
    texts = allocate((size_t)team->nodes * sizeof *texts);
  MPI_Gather(text, NODE_TEXT_ROOM, MPI_CHAR, texts, NODE_TEXT_ROOM, MPI_CHAR, 0, leaders);
  MPI_Comm_free(&leaders);
  return texts;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(a, b);
}

/* Joins the models where nodes differ: such a launch belongs to the system of neither. */
static void join_cpu_models(const struct team *team, struct facts *facts) {
  node_text *const models = gather_texts(team, facts->cpu_model);
  if (!models)
    return;
  qsort(models, (size_t)team->nodes, sizeof *models, compare_texts);
  size_t used = (size_t)snprintf(facts->cpu_model, NODE_TEXT_ROOM, "%s", models[0]);
  for (int i = 1; i < team->nodes && used < NODE_TEXT_ROOM; i++)
    if (strcmp(models[i], models[i - 1]) != 0)
      used += (size_t)snprintf(facts->cpu_model + used, NODE_TEXT_ROOM - used, " + %s", models[i]);
  free(models);
}

void facts_collect(const struct team *team, struct facts *facts) {
  *facts = (struct facts){0};
  struct timespec now;
  struct tm utc;
  (clock_gettime)(CLOCK_REALTIME, &now); /* not the simulated one, which SMPI's macro would return */
  gmtime_r(&now.tv_sec, &utc);
  strftime(facts->date, sizeof facts->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  strftime(facts->compact_date, sizeof facts->compact_date, "%Y%m%dT%H%M%SZ", &utc);
  snprintf(facts->identity, sizeof facts->identity, "%lld.%09ld-%ld", (long long)now.tv_sec, now.tv_nsec,
           (long)getpid());
  if (SWP_SIMULATED || getloadavg(facts->load, 3) != 3)
    memset(facts->load, 0, sizeof facts->load);
  read_cpu_model(facts->cpu_model, sizeof facts->cpu_model);
  join_cpu_models(team, facts);
  read_binding(facts->binding, sizeof facts->binding);
  read_allocation(facts->allocation, sizeof facts->allocation);
  read_mpi(facts);
  node_text name = "";
  read_hostname(name, sizeof name);
  facts->hostnames = gather_texts(team, name);
  facts->bound = are_bound(team);
  facts->sockets = count_sockets(team);
}
