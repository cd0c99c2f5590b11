/*
 * The round trips that yield LogGP's parameters without saturating the network: T. Hoefler, A. Lichei, W.
 * Rehm, "Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks", IPDPS 2007.
 */
#include "pairs.h"

#include "clock.h"
#include "error.h"
#include "hang.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_PING = 11, TAG_PONG = 12, WARM_UP = 2 };

/* The ranks of a node by number, as many as `most`; sets how many there are. Collective on its node. */
static void node_ranks(const struct team *team, int *ranks, int *count) {
  MPI_Comm_size(team->node, count);
  MPI_Allgather(&team->rank, 1, MPI_INT, ranks, 1, MPI_INT, team->node);
}

struct pairs pairs_between_nodes(const struct team *team, int count) {
  struct pairs pairs = {.scope = "off_node", .count = count, .partner = -1};
  int *mine = allocate((size_t)team->procs * sizeof *mine);
  int *leader = allocate((size_t)team->procs * sizeof *leader); /* lowest rank of each rank's node */
  int *local = allocate((size_t)team->procs * sizeof *local);
  int size, place;
  node_ranks(team, mine, &size);
  MPI_Comm_rank(team->node, &place);
  MPI_Allgather(&mine[0], 1, MPI_INT, leader, 1, MPI_INT, team->comm);
  MPI_Allgather(&place, 1, MPI_INT, local, 1, MPI_INT, team->comm);
  int second = -1; /* node 1: that of the first rank that is not on rank 0's */
  for (int r = 0; r < team->procs && second < 0; r++)
    if (leader[r] != leader[0])
      second = leader[r];
  const int other = leader[team->rank] == leader[0] ? second : leader[0];
  if (place < count && (leader[team->rank] == leader[0] || leader[team->rank] == second))
    for (int r = 0; r < team->procs; r++)
      if (leader[r] == other && local[r] == place)
        pairs.partner = r;
  pairs.initiates = pairs.partner >= 0 && leader[team->rank] == leader[0];
  free(mine);
  free(leader);
  free(local);
  return pairs;
}

/* Finds whether each rank of rank 0's node shares its socket, on all ranks of that node, by the library's
   statistics of a message from rank 0. Returns false if the library does not know. */
static bool find_socket(const struct team *team, int size, bool *shares) {
  const int64_t offsets[2] = {0, 1};
  const int first = 0;
  bool known = true;
  int place;
  MPI_Comm_rank(team->node, &place);
  for (int r = 1; r < size && known; r++) {
    struct swp_exchange message = {.item_bytes = 1, .nitems = place == 0};
    struct swp_statistics found = {.on_socket_messages = -1};
    swp_plan *plan = NULL;
    message.nsends = place == 0;
    message.send_ranks = &r;
    message.nrecvs = place == r;
    message.recv_ranks = &first;
    message.send_offsets = message.recv_offsets = offsets;
    if (swp_exchange_plan(team->node, &message, "direct", NULL, &plan) == SWP_SUCCESS)
      swp_plan_statistics(plan, &found, NULL);
    swp_plan_free(&plan);
    known = found.on_socket_messages >= 0;
    shares[r] = found.on_socket_messages == 1;
  }
  return known;
}

void pairs_on_node(const struct team *team, struct node_pairs *pairs) {
  static const struct pairs none = {.count = 0, .partner = -1};
  int *mine = allocate((size_t)team->procs * sizeof *mine);
  bool *shares = allocate_zeros((size_t)team->procs * sizeof *shares);
  int size, place, on_socket = 0, on_node = 0;
  node_ranks(team, mine, &size);
  MPI_Comm_rank(team->node, &place);
  pairs->on_socket = pairs->on_node = pairs->all = none;
  if (mine[0] == 0) {
    const bool known = find_socket(team, size, shares);
    for (int r = 1; r < size; r++)
      *(known && shares[r] ? &on_socket : &on_node) = r;
  }
  int found[3] = {on_socket > 0, on_node > 0, size / 2};
  team_bcast(team, found, 3, MPI_INT);
  const struct {
    struct pairs *pairs;
    const char *scope;
    int other;
  } of_first[] = {{&pairs->on_socket, "on_socket", on_socket}, {&pairs->on_node, "on_node", on_node}};
  for (int i = 0; i < 2; i++) {
    struct pairs *its = of_first[i].pairs;
    its->scope = of_first[i].scope;
    its->count = found[i];
    its->initiates = found[i] && team->rank == 0;
    if (its->count && mine[0] == 0 && (place == 0 || place == of_first[i].other))
      its->partner = place == 0 ? mine[of_first[i].other] : 0;
  }
  pairs->all.scope = found[1] ? "on_node" : "on_socket";
  pairs->all.count = found[2];
  if (mine[0] == 0 && place < 2 * found[2]) {
    pairs->all.initiates = place < found[2];
    pairs->all.partner = mine[pairs->all.initiates ? place + found[2] : place - found[2]];
  }
  free(mine);
  free(shares);
}

/* The payload of a message: a function of the position, the sample and the sender. */
static void fill(unsigned char *data, int64_t bytes, int sample, int rank) {
  for (int64_t i = 0; i < bytes; i++)
    data[i] = (unsigned char)(i * 7 + sample * 13 + rank * 31);
}

static int compare(const unsigned char *data, int64_t bytes, int sample, int rank) {
  for (int64_t i = 0; i < bytes; i++)
    if (data[i] != (unsigned char)(i * 7 + sample * 13 + rank * 31))
      return failure_set("wrong payload from rank %d: byte %lld of %lld, sample %d of a probe", rank,
                         (long long)i, (long long)bytes, sample);
  return 0;
}

/* Lets the message proceed until its time is over. */
static void linger(MPI_Request *request, int64_t until_ns) {
  int done;
  do
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
  while (clock_ns() < until_ns);
}

struct ends {
  const struct team *team;
  const struct trip *trip;
  int partner;
  unsigned char *sent, *received;
  MPI_Request *requests;
};

static void send_all(const struct ends *ends) {
  const struct trip *trip = ends->trip;
  const int bytes = (int)trip->size_bytes;
  if (trip->synchronous) {
    MPI_Ssend(ends->sent, bytes, MPI_BYTE, ends->partner, TAG_PING, ends->team->comm);
    return;
  }
  for (int m = 0; m < trip->messages; m++) {
    MPI_Isend(ends->sent, bytes, MPI_BYTE, ends->partner, TAG_PING, ends->team->comm, &ends->requests[m]);
    hang_beat();
    if (trip->delay_ns && m < trip->messages - 1)
      linger(&ends->requests[m], clock_ns() + trip->delay_ns);
  }
  MPI_Waitall(trip->messages, ends->requests, MPI_STATUSES_IGNORE);
}

/* Each message is a sign of life: a sample may last long. */
static void receive(const struct ends *ends, int tag) {
  MPI_Recv(ends->received, (int)ends->trip->size_bytes, MPI_BYTE, ends->partner, tag, ends->team->comm,
           MPI_STATUS_IGNORE);
  hang_beat();
}

/* Both ends send, and both receive. */
static void send_both_ways(const struct ends *ends) {
  const struct trip *trip = ends->trip;
  const int bytes = (int)trip->size_bytes;
  MPI_Comm comm = ends->team->comm;
  for (int m = 0; m < trip->messages; m++)
    MPI_Isend(ends->sent, bytes, MPI_BYTE, ends->partner, TAG_PING, comm, &ends->requests[m]);
  for (int m = 0; m < trip->messages; m++)
    receive(ends, TAG_PING);
  MPI_Waitall(trip->messages, ends->requests, MPI_STATUSES_IGNORE);
}

/* Executes this rank's part of one sample; returns how long it took. */
static int64_t take_part(const struct ends *ends, bool initiates) {
  const struct trip *trip = ends->trip;
  const int bytes = (int)trip->size_bytes;
  MPI_Comm comm = ends->team->comm;
  const int64_t begin_ns = clock_ns();
  if (trip->mutual) {
    send_both_ways(ends);
  } else if (initiates) {
    send_all(ends);
    receive(ends, TAG_PONG);
  } else {
    for (int m = 0; m < trip->messages; m++)
      receive(ends, TAG_PING);
    if (trip->synchronous)
      MPI_Ssend(ends->sent, bytes, MPI_BYTE, ends->partner, TAG_PONG, comm);
    else
      MPI_Send(ends->sent, bytes, MPI_BYTE, ends->partner, TAG_PONG, comm);
  }
  return clock_ns() - begin_ns;
}

/* Several ranks that begin do so together; a single one needs no common start. */
static bool starts_together(const struct pairs *pairs, const struct trip *trip) {
  return pairs->count > 1 || trip->mutual;
}

int pairs_round_trips(const struct pairs *pairs, struct sync *sync, const struct trip *trip, int samples,
                      double *seconds) {
  const size_t room = (size_t)trip->size_bytes + 1;
  struct ends ends = {.team = sync->team, .trip = trip, .partner = pairs->partner};
  ends.sent = allocate_zeros(room);
  ends.received = allocate_zeros(room);
  ends.requests = allocate((size_t)trip->messages * sizeof *ends.requests);
  int status = 0;
  sync_barrier(sync->team);
  const bool together = starts_together(pairs, trip);
  if (together)
    sync_prepare(sync);
  for (int s = -WARM_UP; s < samples; s++) {
    int64_t spent_ns = 0;
    hang_beat();
    if (pairs->partner >= 0)
      fill(ends.sent, trip->size_bytes, s, sync->team->rank);
    if (together)
      sync->scheme->start(sync);
    if (pairs->partner >= 0)
      spent_ns = take_part(&ends, pairs->initiates);
    if (pairs->partner >= 0 && status == 0 && (s == 0 || s == samples - 1))
      status = compare(ends.received, trip->size_bytes, s, pairs->partner);
    if (s >= 0)
      seconds[s] = pairs->initiates || trip->mutual ? (double)spent_ns * 1e-9 : 0;
  }
  team_allreduce(sync->team, seconds, samples, MPI_DOUBLE, MPI_MAX);
  free(ends.sent);
  free(ends.received);
  free(ends.requests);
  return status;
}

int pairs_receives(const struct pairs *pairs, struct sync *sync, int64_t size_bytes, int64_t delay_ns,
                   int samples, double *seconds, bool *ahead) {
  const struct team *team = sync->team;
  unsigned char *data = allocate_zeros((size_t)size_bytes + 1);
  int status = 0, on_its_way = 1;
  sync_barrier(team);
  for (int s = -WARM_UP; s < samples && pairs->partner >= 0; s++) {
    int64_t spent_ns = 0;
    char go = 0;
    hang_beat();
    if (pairs->initiates) { /* asks for a message, and receives it late */
      MPI_Send(&go, 1, MPI_BYTE, pairs->partner, TAG_PONG, team->comm);
      clock_wait(clock_ns() + 2 * delay_ns, false);
      const int64_t begin_ns = clock_ns();
      MPI_Recv(data, (int)size_bytes, MPI_BYTE, pairs->partner, TAG_PING, team->comm, MPI_STATUS_IGNORE);
      spent_ns = clock_ns() - begin_ns;
      if (status == 0 && (s == 0 || s == samples - 1))
        status = compare(data, size_bytes, s, pairs->partner);
    } else {
      MPI_Request request;
      int sent = 0;
      fill(data, size_bytes, s, team->rank);
      MPI_Recv(&go, 1, MPI_BYTE, pairs->partner, TAG_PONG, team->comm, MPI_STATUS_IGNORE);
      MPI_Isend(data, (int)size_bytes, MPI_BYTE, pairs->partner, TAG_PING, team->comm, &request);
      const int64_t until_ns = clock_ns() + delay_ns;
      do /* at least once: this process may lose its core for longer than the delay */
        MPI_Test(&request, &sent, MPI_STATUS_IGNORE);
      while (!sent && clock_ns() < until_ns);
      on_its_way &= sent;
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (s >= 0)
      seconds[s] = pairs->initiates ? (double)spent_ns * 1e-9 : 0;
  }
  if (pairs->partner < 0)
    memset(seconds, 0, (size_t)samples * sizeof *seconds);
  team_allreduce(team, seconds, samples, MPI_DOUBLE, MPI_MAX);
  team_allreduce(team, &on_its_way, 1, MPI_INT, MPI_MIN);
  *ahead = on_its_way;
  free(data);
  return status;
}
