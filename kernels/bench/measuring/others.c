#define _GNU_SOURCE /* sched_getaffinity */
#include "others.h"

#include "clock.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The shortest time that is judged where ranks outnumber cores: they look one after the other. */
static const int64_t WINDOW_NS = 500 * 1000 * 1000;

struct look {
  int64_t at_ns; /* of the first rank of the machine */
  double own_s;  /* of this rank */
  double idle_s; /* of the cores, on the first rank; else 0; -1: not known */
  int cores;
};

/* When one of the launches began; and the one before it, at least WINDOW_NS earlier. */
static struct look last, before;

/* The ranks that share this one's machine. */
static MPI_Comm machine_of(const struct team *team) {
  return team->machine != MPI_COMM_NULL ? team->machine : team->comm;
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
static double idle_s(const cpu_set_t *cpus) {
  FILE *file = fopen("/proc/stat", "r");
  char line[512];
  long long sum = 0;
  bool any = false;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    long long idle, waiting;
    int cpu;
    if (sscanf(line, "cpu%d %*d %*d %*d %lld %lld", &cpu, &idle, &waiting) != 3 || cpu >= CPU_SETSIZE ||
        !CPU_ISSET(cpu, cpus))
      continue;
    sum += idle + waiting;
    any = true;
  }
  if (file != NULL)
    fclose(file);
  return any ? (double)sum * tick_s() : -1;
}

static struct look look_now(const struct team *team) {
  struct look now = {.at_ns = clock_ns(), .own_s = own_s()};
  cpu_set_t mine, all;
  int rank;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine); /* without it, no core is known */
  MPI_Comm_rank(machine_of(team), &rank);
  MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, machine_of(team));
  MPI_Bcast(&now.at_ns, 1, MPI_INT64_T, 0, machine_of(team));
  now.cores = CPU_COUNT(&all);
  if (rank == 0)
    now.idle_s = SWP_SIMULATED ? -1 : idle_s(&all);
  return now;
}

void others_begin(const struct team *team) {
  const struct look now = look_now(team);
  if (last.cores == 0)
    last = before = now;
  else if (now.at_ns - last.at_ns >= WINDOW_NS) {
    before = last;
    last = now;
  }
}

double others_share(const struct team *team) {
  const struct look now = look_now(team);
  const struct look *begin = now.at_ns - last.at_ns >= WINDOW_NS ? &last : &before;
  const int64_t elapsed_ns = now.at_ns - begin->at_ns;
  const double all_s = (double)elapsed_ns * 1e-9 * now.cores;
  const bool unknown = now.idle_s < 0 || begin->idle_s < 0 || all_s <= 0;
  double own = now.own_s - begin->own_s;
  double most[2] = {0, unknown || (team->oversubscribed && elapsed_ns < WINDOW_NS)};
  MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_SUM, machine_of(team));
  if (now.idle_s > 0 && !unknown) {
    const double idle = now.idle_s - begin->idle_s, rounding = idle > 0 ? now.cores * tick_s() : 0;
    const double others = all_s - own - idle - rounding;
    most[0] = others > 0 ? others / all_s : 0;
  }
  team_allreduce(team, most, 2, MPI_DOUBLE, MPI_MAX);
  return most[1] > 0 ? -1 : most[0];
}
