#include "clocks.h"

#include "clock.h"

#include <math.h>
#include <stdlib.h>

enum { TAG_CLOCKS = 4, PINGS = 64, CHECK_PINGS = 16 };

static const double USUAL_DRIFT = 1e-5; /* of a quartz, where nothing is known yet */

/* ---- Lines ---- */

int64_t clock_line_at(const struct clock_line *line, int64_t own_ns) {
  return line->ahead_ns + llround(line->drift * (double)(own_ns - line->own_ns));
}

/* Least squares, shrunk towards no drift by the uncertainty of readings that are off by half a round trip,
   and of a usual drift. */
struct clock_line clock_line_fit(const struct clock_reading *readings, int n, int latest) {
  const struct clock_reading *last = &readings[latest];
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0, trip_ns = (double)last->trip_ns;
  for (int i = 0; i < n; i++) {
    mean_x += (double)(readings[i].own_ns - last->own_ns) / n;
    mean_y += (double)(readings[i].ahead_ns - last->ahead_ns) / n;
    trip_ns = fmax(trip_ns, (double)readings[i].trip_ns);
  }
  for (int i = 0; i < n; i++) {
    const double x = (double)(readings[i].own_ns - last->own_ns) - mean_x;
    xx += x * x;
    xy += x * ((double)(readings[i].ahead_ns - last->ahead_ns) - mean_y);
  }
  const double doubt = trip_ns / 2 / USUAL_DRIFT;
  return (struct clock_line){last->own_ns, last->ahead_ns, xx > 0 ? xy / (xx + doubt * doubt) : 0};
}

int64_t clocks_common(const struct clocks *clocks, int64_t own_ns) {
  return own_ns + clock_line_at(&clocks->line, own_ns);
}

int64_t clocks_own(const struct clocks *clocks, int64_t common_ns) {
  const struct clock_line *line = &clocks->line;
  const int64_t since = common_ns - line->ahead_ns - line->own_ns; /* assuming no drift */
  return line->own_ns + since - llround((double)since * line->drift / (1 + line->drift));
}

/* ---- Readings, between the first ranks of two machines ---- */

static void answer(const struct clocks *clocks, int leader, int pings) {
  const struct team *team = clocks->team;
  for (int i = 0; i < pings; i++) {
    int64_t time;
    team_receive(team, team->leaders, &time, 1, leader, TAG_CLOCKS);
    time = clocks_common(clocks, clock_ns());
    team_send(team, team->leaders, &time, 1, leader, TAG_CLOCKS);
  }
}

/* The least delayed answer. */
static struct clock_reading ask(const struct clocks *clocks, int leader, int pings) {
  const struct team *team = clocks->team;
  struct clock_reading best = {.trip_ns = INT64_MAX};
  for (int i = 0; i < pings; i++) {
    int64_t theirs = 0;
    const int64_t before = clock_ns();
    team_send(team, team->leaders, &theirs, 1, leader, TAG_CLOCKS);
    team_receive(team, team->leaders, &theirs, 1, leader, TAG_CLOCKS);
    const int64_t trip = clock_ns() - before, middle = before + trip / 2;
    if (trip < best.trip_ns)
      best = (struct clock_reading){middle, theirs - middle, trip};
  }
  return best;
}

/* ---- All ranks ---- */

struct clocks clocks_create(const struct team *team) {
  return (struct clocks){.team = team};
}

static void read_clock(struct clocks *clocks, int leader) {
  const int latest = (int)(clocks->nreadings++ % CLOCK_READINGS);
  clocks->readings[latest] = ask(clocks, leader, PINGS);
  const int n = clocks->nreadings < CLOCK_READINGS ? (int)clocks->nreadings : CLOCK_READINGS;
  clocks->line = clock_line_fit(clocks->readings, n, latest);
}

/* Machines that are synchronised synchronise as many others, which then can convert their time to rank
   0's. */
static void learn_from_leaders(struct clocks *clocks) {
  int leader, leaders;
  MPI_Comm_rank(clocks->team->leaders, &leader);
  MPI_Comm_size(clocks->team->leaders, &leaders);
  for (int taught = 1; taught < leaders; taught *= 2)
    if (leader < taught && leader + taught < leaders)
      answer(clocks, leader + taught, PINGS);
    else if (leader >= taught && leader < 2 * taught)
      read_clock(clocks, leader - taught);
}

void clocks_learn(struct clocks *clocks) {
  const struct team *team = clocks->team;
  if (team->machines == 1)
    return;
  if (team->leaders != MPI_COMM_NULL)
    learn_from_leaders(clocks);
  MPI_Request request;
  MPI_Ibcast(&clocks->line, (int)sizeof clocks->line, MPI_BYTE, 0, team->machine, &request);
  team_wait(team, 1, &request);
}

/* A reading is off by half its round trip at most, so its distance from the line plus that bounds the line's
   error. */
static struct clock_check check_line(const struct clocks *clocks) {
  const struct clock_reading reading = ask(clocks, 0, CHECK_PINGS);
  const int64_t left = llabs(reading.ahead_ns - clock_line_at(&clocks->line, reading.own_ns));
  const int64_t error = left + (reading.trip_ns + 1) / 2;
  return (struct clock_check){(double)error * 1e-9, error <= 2 * reading.trip_ns};
}

struct clock_check clocks_check(const struct clocks *clocks) {
  const struct team *team = clocks->team;
  struct clock_check mine = {0, true};
  if (team->machines == 1)
    return mine;
  if (team->leaders != MPI_COMM_NULL) {
    int leader, leaders;
    MPI_Comm_rank(team->leaders, &leader);
    MPI_Comm_size(team->leaders, &leaders);
    for (int other = 1; leader == 0 && other < leaders; other++)
      answer(clocks, other, CHECK_PINGS);
    if (leader > 0)
      mine = check_line(clocks);
  }
  double worst[] = {mine.error_s, !mine.agrees};
  team_allreduce(team, worst, 2, MPI_DOUBLE, MPI_MAX);
  return (struct clock_check){worst[0], worst[1] == 0};
}
