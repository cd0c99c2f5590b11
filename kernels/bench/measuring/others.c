#define _GNU_SOURCE /* sched_getaffinity */
#include "others.h"

#include "clock.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The shortest time that is judged where ranks outnumber cores: they read one after the other. */
static const int64_t WINDOW_NS = 500 * 1000 * 1000;

struct reading {
  int64_t at_ns; /* of the first rank that read */
  double own_s;  /* of this rank */
  double idle_s; /* of the cores, on the first rank of the machine; else 0; -1: not known */
};

/* When one of the launches began; and the one before it, at least WINDOW_NS earlier. */
static struct reading last, before;

/* The cores that the ranks of this machine may use together. */
static cpu_set_t cpus;
static int cores;

/* A reduction over the ranks of this machine. */
static void reduce(const struct team *team, void *data, int count, MPI_Datatype type, MPI_Op op) {
  if (team->machine == MPI_COMM_NULL)
    team_allreduce(team, data, count, type, op);
  else
    MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, team->machine);
}

static bool is_first(const struct team *team) {
  int rank = team->rank;
  if (team->machine != MPI_COMM_NULL)
    MPI_Comm_rank(team->machine, &rank);
  return rank == 0;
}

/* Where the set cannot be had, no core is known. */
static void find_cores(const struct team *team) {
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  reduce(team, &cpus, (int)sizeof cpus, MPI_BYTE, MPI_BOR);
  cores = CPU_COUNT(&cpus);
}

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static double own_s(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) : 0;
}

static double tick_s(void) {
  return 1.0 / (double)sysconf(_SC_CLK_TCK);
}

/* The time in which the cores had nothing to do; -1 without /proc. */
static double idle_s(void) {
  FILE *file = fopen("/proc/stat", "r");
  char line[512];
  long long sum = 0;
  bool any = false;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    long long idle, waiting;
    int cpu;
    if (sscanf(line, "cpu%d %*d %*d %*d %lld %lld", &cpu, &idle, &waiting) != 3 || cpu >= CPU_SETSIZE ||
        !CPU_ISSET(cpu, &cpus))
      continue;
    sum += idle + waiting;
    any = true;
  }
  if (file != NULL)
    fclose(file);
  return any ? (double)sum * tick_s() : -1;
}

static struct reading read_now(const struct team *team) {
  struct reading now = {.at_ns = clock_ns(), .own_s = own_s()};
  reduce(team, &now.at_ns, 1, MPI_INT64_T, MPI_MIN);
  if (is_first(team))
    now.idle_s = idle_s();
  return now;
}

void others_begin(const struct team *team) {
  const bool is_new = cores == 0;
  if (SWP_SIMULATED)
    return;
  if (is_new)
    find_cores(team);
  const struct reading now = read_now(team);
  if (!is_new && now.at_ns - last.at_ns < WINDOW_NS)
    return;
  before = is_new ? now : last;
  last = now;
}

double others_share(const struct team *team) {
  if (SWP_SIMULATED)
    return -1;
  const struct reading now = read_now(team);
  const struct reading *begin = now.at_ns - last.at_ns >= WINDOW_NS ? &last : &before;
  const int64_t elapsed_ns = now.at_ns - begin->at_ns;
  const double all_s = (double)elapsed_ns * 1e-9 * cores;
  const bool unknown = now.idle_s < 0 || begin->idle_s < 0 || all_s <= 0;
  double own = now.own_s - begin->own_s;
  double most[2] = {0, unknown || (team->oversubscribed && elapsed_ns < WINDOW_NS)};
  reduce(team, &own, 1, MPI_DOUBLE, MPI_SUM);
  if (is_first(team) && !unknown) {
    const double idle = now.idle_s - begin->idle_s, rounding = idle > 0 ? cores * tick_s() : 0;
    const double others = all_s - own - idle - rounding;
    most[0] = others <= 0 ? 0 : others < all_s ? others / all_s : 1; /* the time of waiting may go back */
  }
  team_allreduce(team, most, 2, MPI_DOUBLE, MPI_MAX);
  return most[1] > 0 ? -1 : most[0];
}
