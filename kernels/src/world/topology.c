/* Where the ranks of a communicator are. */
#define _GNU_SOURCE
#include "topology.h"

#include "allocate.h"
#include "communicator.h"
#include "error.h"
#include "machine.h"
#include "socket.h"
#include "switchpoint.h"

#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* Cores that the ranks of a node or machine may use, together: each may be bound to its own. Where the set
   has no room for all of the machine (1024), all of them. */
static int shared_cores(MPI_Comm comm, int *cores) {
  int error = SWP_SUCCESS, unknown = 0, online;
  cpu_set_t mine, all;
  CPU_ZERO(&mine);
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0)
    unknown = (int)sysconf(_SC_NPROCESSORS_ONLN);
  MPI_TRY(MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, comm));
  MPI_TRY(MPI_Allreduce(&unknown, &online, 1, MPI_INT, MPI_MAX, comm));
  *cores = online > 0 ? online : CPU_COUNT(&all);
done:
  return error;
}

/* Finds whether the ranks outnumber the cores, also where several nodes are on one machine. */
static int compare_with_cores(MPI_Comm comm, MPI_Comm node, struct topology *topology) {
  int error = SWP_SUCCESS, size, cores = 0;
  MPI_Comm machine = MPI_COMM_NULL;
  if (SWP_SIMULATED) /* ranks take turns on one core, and the clock stands still meanwhile */
    return SWP_SUCCESS;
  if (topology->nodes > 1)
    MPI_TRY(swp_machine_split(comm, swp_machine_hash(), 0, &machine));
  MPI_Comm here = topology->nodes > 1 ? machine : node;
  MPI_TRY(MPI_Comm_size(here, &size));
  TRY(shared_cores(here, &cores));
  topology->oversubscribed = size > cores;
done:
  if (machine != MPI_COMM_NULL)
    MPI_Comm_free(&machine);
  return error;
}

/* The sockets of the ranks of a node, where all ranks know theirs. */
static int find_sockets(MPI_Comm comm, MPI_Comm node, struct topology *topology) {
  int error = SWP_SUCCESS, size, count, own, greatest[3];
  swp_socket_find(&count, &own);
  int mine[3] = {count, ~count, ~own}; /* the greatest complement is that of the least */
  MPI_TRY(MPI_Allreduce(mine, greatest, 3, MPI_INT, MPI_MAX, comm));
  topology->sockets = greatest[1] == ~SOCKET_UNKNOWN ? SOCKET_UNKNOWN : greatest[0];
  if (greatest[2] == ~SOCKET_UNKNOWN)
    return SWP_SUCCESS;
  MPI_TRY(MPI_Comm_size(node, &size));
  topology->socket_of = swp_allocate((size_t)size, sizeof(int), NULL);
  if (topology->socket_of == NULL)
    error = swp_fail(SWP_ERR_MEMORY, "no memory for the sockets of %d ranks", size);
  TRY(swp_agree(comm, error));
  MPI_TRY(MPI_Allgather(&own, 1, MPI_INT, topology->socket_of, 1, MPI_INT, node));
done:
  return error;
}

/* Finds whether every rank is here. Jobs that were joined have several worlds, and sessions none. */
static int compare_with_world(MPI_Comm comm, struct topology *topology) {
  int error = SWP_SUCCESS, world = INT_MAX, any[2];
  const bool has_world = swp_comm_has_world();
  if (has_world)
    MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &world));
  const int mine[2] = {topology->procs < world, !has_world};
  MPI_TRY(MPI_Allreduce(mine, any, 2, MPI_INT, MPI_MAX, comm));
  topology->alone = !any[0];
  topology->without_world = any[1];
done:
  return error;
}

/* This rank's node, numbered by the lowest rank on it, and its place there. */
static int measure(MPI_Comm comm, struct topology *topology, int *node, int *local) {
  int error = SWP_SUCCESS, rank, size;
  MPI_Comm here = MPI_COMM_NULL, leaders = MPI_COMM_NULL;
  MPI_TRY(MPI_Comm_rank(comm, &rank));
  MPI_TRY(MPI_Comm_size(comm, &topology->procs));
  MPI_TRY(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here));
  MPI_TRY(MPI_Comm_rank(here, local));
  MPI_TRY(MPI_Comm_size(here, &size));
  MPI_TRY(MPI_Comm_split(comm, *local == 0 ? 0 : MPI_UNDEFINED, rank, &leaders));
  int nodes[2] = {0, 0}; /* this one, and how many; of the leader, whose word the others take */
  if (leaders != MPI_COMM_NULL) {
    MPI_TRY(MPI_Comm_rank(leaders, &nodes[0]));
    MPI_TRY(MPI_Comm_size(leaders, &nodes[1]));
  }
  MPI_TRY(MPI_Bcast(nodes, 2, MPI_INT, 0, here));
  *node = nodes[0];
  topology->nodes = nodes[1];
  MPI_TRY(MPI_Allreduce(&size, &topology->ppn, 1, MPI_INT, MPI_MAX, comm));
  topology->shared_memory = topology->nodes == 1;
  TRY(compare_with_world(comm, topology));
  TRY(compare_with_cores(comm, here, topology));
  TRY(find_sockets(comm, here, topology));
done:
  if (leaders != MPI_COMM_NULL)
    MPI_Comm_free(&leaders);
  if (here != MPI_COMM_NULL)
    MPI_Comm_free(&here);
  return error;
}

/* The nodes of all ranks, where no formula yields them. */
static int list_nodes(MPI_Comm comm, struct topology *topology, int node) {
  int error = SWP_SUCCESS;
  size_t procs = (size_t)topology->procs, nodes = (size_t)topology->nodes;
  topology->node_of = swp_allocate(procs, sizeof(int), NULL);
  topology->local_of = swp_allocate(procs, sizeof(int), NULL);
  topology->node_ranks = swp_allocate(procs, sizeof(int), NULL);
  topology->node_begins = swp_allocate(nodes + 1, sizeof(int), NULL);
  if (topology->node_of == NULL || topology->local_of == NULL || topology->node_ranks == NULL ||
      topology->node_begins == NULL)
    error = swp_fail(SWP_ERR_MEMORY, "no memory for the nodes of %d ranks", topology->procs);
  TRY(swp_agree(comm, error));
  MPI_TRY(MPI_Allgather(&node, 1, MPI_INT, topology->node_of, 1, MPI_INT, comm));
  int *begins = topology->node_begins;
  for (int rank = 0; rank < topology->procs; rank++)
    topology->local_of[rank] = begins[topology->node_of[rank] + 1]++;
  for (int n = 0; n < topology->nodes; n++)
    begins[n + 1] += begins[n];
  for (int rank = 0; rank < topology->procs; rank++)
    topology->node_ranks[begins[topology->node_of[rank]] + topology->local_of[rank]] = rank;
done:
  return error;
}

/* Returns whether the formulas of an order yield this rank's node and place. */
static bool follows(struct topology *topology, enum topology_order order, int rank, int node, int local) {
  topology->order = order;
  return swp_topology_node(topology, rank) == node && swp_topology_local(topology, rank) == local;
}

static int find_nodes(MPI_Comm comm, struct topology *topology) {
  int error = SWP_SUCCESS, rank, node = 0, local = 0, all[2];
  TRY(measure(comm, topology, &node, &local));
  MPI_TRY(MPI_Comm_rank(comm, &rank));
  int mine[2] = {follows(topology, TOPOLOGY_BLOCK, rank, node, local),
                 follows(topology, TOPOLOGY_CYCLIC, rank, node, local)};
  MPI_TRY(MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, comm));
  topology->order = all[0] ? TOPOLOGY_BLOCK : all[1] ? TOPOLOGY_CYCLIC : TOPOLOGY_LISTED;
  if (topology->order == TOPOLOGY_LISTED)
    TRY(list_nodes(comm, topology, node));
done:
  return error;
}

static void impose_nodes(struct topology *topology, int ppn, int placement) {
  int procs = topology->procs;
  topology->nodes = (procs - 1) / ppn + 1;
  topology->sockets = SOCKET_UNKNOWN;
  topology->order = placement == SWP_PLACEMENT_CYCLIC ? TOPOLOGY_CYCLIC : TOPOLOGY_BLOCK;
  if (topology->order == TOPOLOGY_CYCLIC)
    topology->ppn = (procs - 1) / topology->nodes + 1;
  else
    topology->ppn = ppn < procs ? ppn : procs;
}

struct topology *swp_topology_hold(struct topology *topology) {
  atomic_fetch_add(&topology->holders, 1);
  return topology;
}

void swp_topology_release(struct topology *topology) {
  if (topology == NULL || atomic_fetch_sub(&topology->holders, 1) > 1)
    return;
  for (struct topology *each = topology->imposed, *next; each != NULL; each = next) {
    next = each->next;
    swp_topology_release(each);
  }
  swp_release(topology->node_of);
  swp_release(topology->local_of);
  swp_release(topology->node_begins);
  swp_release(topology->node_ranks);
  swp_release(topology->socket_of);
  swp_arena_release(topology->arena);
  swp_arena_release(topology->node_arena);
  swp_release(topology);
}

static int forget(MPI_Comm comm, int key, void *attribute, void *extra) {
  (void)comm, (void)key, (void)extra;
  swp_topology_release(attribute);
  return MPI_SUCCESS;
}

/* Collective: memory for a topology on every rank, held once, or on none. arena NULL: a new one. */
static int create(MPI_Comm comm, struct arena *arena, struct topology **topology) {
  struct topology *made = swp_allocate(1, sizeof *made, NULL);
  if (made != NULL) {
    atomic_init(&made->holders, 1);
    made->arena = arena != NULL ? swp_arena_hold(arena) : swp_arena_create();
    made->node_arena = swp_arena_create();
  }
  const bool whole = made != NULL && made->arena != NULL && made->node_arena != NULL;
  int error = swp_agree(comm, whole ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for the topology"));
  if (error == SWP_SUCCESS)
    *topology = made;
  else
    swp_topology_release(made);
  return error;
}

/* The machine's nodes; they belong to the caller's communicator, on which nothing is sent: its errors end the
   job. */
static int find_machine(MPI_Comm comm, MPI_Comm own, struct topology **topology) {
  static atomic_int shared_key = MPI_KEYVAL_INVALID;
  int error = SWP_SUCCESS, key, found = 0;
  struct topology *made = NULL;
  TRY(swp_comm_key(&shared_key, forget, &key));
  MPI_TRY(MPI_Comm_get_attr(comm, key, topology, &found));
  if (found)
    return SWP_SUCCESS;
  TRY(create(own, NULL, &made));
  TRY(find_nodes(own, made));
  MPI_TRY(MPI_Comm_set_attr(comm, key, made));
  *topology = made;
  return SWP_SUCCESS;
done:
  swp_topology_release(made);
  return error;
}

static struct topology *find_imposed(const struct topology *machine, int ppn, int placement) {
  struct topology *each = machine->imposed;
  while (each != NULL && (each->asked_ppn != ppn || each->asked_placement != placement))
    each = each->next;
  return each;
}

/* Kept, so that plans share the memory of its nodes. Without a lock, as one thread at a time plans on a
   communicator. */
static int impose(MPI_Comm own, struct topology *machine, int ppn, int placement,
                  struct topology **topology) {
  int error = create(own, machine->arena, topology);
  if (error != SWP_SUCCESS)
    return error;
  struct topology *made = *topology;
  made->procs = machine->procs;
  made->shared_memory = machine->shared_memory;
  made->alone = machine->alone;
  made->without_world = machine->without_world;
  made->ibarrier = machine->ibarrier;
  made->oversubscribed = machine->oversubscribed;
  made->asked_ppn = ppn;
  made->asked_placement = placement;
  impose_nodes(made, ppn, placement);
  made->next = machine->imposed;
  machine->imposed = made;
  return SWP_SUCCESS;
}

int swp_topology_find(MPI_Comm comm, MPI_Comm own, int ppn, int placement, struct topology **topology) {
  int error = SWP_SUCCESS;
  struct topology *found;
  TRY(find_machine(comm, own, &found));
  if (ppn > 0) {
    struct topology *machine = found;
    found = find_imposed(machine, ppn, placement);
    if (found == NULL)
      TRY(impose(own, machine, ppn, placement, &found));
  }
  *topology = swp_topology_hold(found);
done:
  return error;
}

int swp_topology_node(const struct topology *topology, int rank) {
  switch (topology->order) {
  case TOPOLOGY_BLOCK:
    return rank / topology->ppn;
  case TOPOLOGY_CYCLIC:
    return rank % topology->nodes;
  case TOPOLOGY_LISTED:
    break;
  }
  return topology->node_of[rank];
}

int swp_topology_local(const struct topology *topology, int rank) {
  switch (topology->order) {
  case TOPOLOGY_BLOCK:
    return rank % topology->ppn;
  case TOPOLOGY_CYCLIC:
    return rank / topology->nodes;
  case TOPOLOGY_LISTED:
    break;
  }
  return topology->local_of[rank];
}

int swp_topology_node_size(const struct topology *topology, int node) {
  int rest = topology->procs - node * topology->ppn; /* from this node on, of blocks */
  switch (topology->order) {
  case TOPOLOGY_BLOCK:
    return rest < topology->ppn ? rest : topology->ppn;
  case TOPOLOGY_CYCLIC:
    return (topology->procs - 1 - node) / topology->nodes + 1;
  case TOPOLOGY_LISTED:
    break;
  }
  return topology->node_begins[node + 1] - topology->node_begins[node];
}

int swp_topology_least(const struct topology *topology) {
  int least = topology->ppn;
  for (int node = 0; node < topology->nodes; node++) {
    const int size = swp_topology_node_size(topology, node);
    least = size < least ? size : least;
  }
  return least;
}

int swp_topology_rank(const struct topology *topology, int node, int local) {
  switch (topology->order) {
  case TOPOLOGY_BLOCK:
    return node * topology->ppn + local;
  case TOPOLOGY_CYCLIC:
    return local * topology->nodes + node;
  case TOPOLOGY_LISTED:
    break;
  }
  return topology->node_ranks[topology->node_begins[node] + local];
}

bool swp_topology_has_sockets(const struct topology *topology) {
  return topology->socket_of != NULL;
}

int swp_topology_socket(const struct topology *topology, int rank) {
  return topology->socket_of[swp_topology_local(topology, rank)];
}
