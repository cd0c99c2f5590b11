/*
 * neighbor: MPI_Ineighbor_alltoallv on a graph of the problem's messages. The persistent form of MPI-4 is
 * not used: it binds the buffers at planning, and a plan gets them at execution.
 */
#include "communicator.h"
#include "packed.h"

#include <pthread.h>

struct state {
  struct packed packed;
  MPI_Comm graph;
};

static const char *neighbor_applicable(const struct spec *spec, const struct features *features) {
  (void)spec, (void)features;
  return SWP_SIMULATED ? "SimGrid has no neighbourhood collectives" : NULL;
}

static void neighbor_free(struct swp_plan *plan) {
  struct state *state = plan->method_state;
  if (state == NULL)
    return;
  swp_packed_free(&state->packed);
  if (state->graph != MPI_COMM_NULL)
    MPI_Comm_free(&state->graph);
}

/* Open MPI readies its topologies when a process makes the first graph, and crashes if two threads do so. In
   a session alone there is no MPI_COMM_SELF to make one of. */
static void ready_topologies(void) {
  const int none = 0;
  MPI_Comm graph;
  if (swp_comm_has_world() &&
      MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 0, &none, MPI_UNWEIGHTED, 0, &none, MPI_UNWEIGHTED,
                                     MPI_INFO_NULL, 0, &graph) == MPI_SUCCESS)
    MPI_Comm_free(&graph);
}

/* The graph is made by all ranks or by none. */
static int create_graph(struct swp_plan *plan, struct state *state, int error) {
  const struct problem *problem = exchange_plan_of(plan)->problem;
  int *sources = swp_allocate((size_t)problem->nrecvs, sizeof(int), NULL);
  int *destinations = swp_allocate((size_t)problem->nsends, sizeof(int), NULL);
  if (error == SWP_SUCCESS && (sources == NULL || destinations == NULL))
    error = swp_plan_no_memory(plan);
  TRY(swp_agree(plan->comm, error));
  for (int i = 0; i < problem->nrecvs; i++)
    sources[i] = problem->recvs[i].peer;
  for (int i = 0; i < problem->nsends; i++)
    destinations[i] = problem->sends[i].peer;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, ready_topologies);
  MPI_TRY(MPI_Dist_graph_create_adjacent(plan->comm, problem->nrecvs, sources, MPI_UNWEIGHTED,
                                         problem->nsends, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                         &state->graph));
  MPI_TRY(MPI_Comm_set_errhandler(state->graph, MPI_ERRORS_RETURN));
done:
  swp_release(sources);
  swp_release(destinations);
  return error;
}

static int neighbor_plan(struct swp_plan *plan) {
  struct state *state = plan->method_state = swp_plan_allocate(plan, 1, sizeof *state);
  if (state != NULL)
    *state = (struct state){.packed = PACKED_NONE, .graph = MPI_COMM_NULL};
  int error = swp_agree(plan->comm, state != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan));
  if (error != SWP_SUCCESS)
    return error;
  return create_graph(plan, state, swp_packed_plan(plan, &state->packed));
}

static int neighbor_start(struct swp_plan *plan, const char *send, char *recv) {
  struct state *state = plan->method_state;
  const struct packed *packed = &state->packed;
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Ineighbor_alltoallv(swp_packed_send(plan, packed, send), packed->send_counts,
                                  packed->send_offsets, packed->item, recv, packed->recv_counts,
                                  packed->recv_offsets, packed->item, state->graph, &state->packed.request));
done:
  return error;
}

const struct method swp_exchange_neighbor = {
    .name = "neighbor",
    .summary = "MPI_Ineighbor_alltoallv on a distributed graph",
    .source = "the MPI standard; Hoefler & Traff, HIPS'09",
    .applicable = neighbor_applicable,
    .plan = neighbor_plan,
    .free = neighbor_free,
    .estimated_as = "direct",
    .start = neighbor_start,
    .advance = swp_packed_advance,
};
