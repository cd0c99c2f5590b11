/* Where the ranks of a communicator are. */
#define _GNU_SOURCE
#include "topology.h"

#include "plan.h"

#include <sched.h>
#include <stdatomic.h>

/* Cores that the ranks of this node may use, together: each may be bound to its own. */
static int node_cores(MPI_Comm node, int *cores) {
  int error = SWP_SUCCESS;
  cpu_set_t mine, all;
  CPU_ZERO(&mine);
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0)
    CPU_SET(0, &mine); /* an unknown set counts as one core: yielding is safe, spinning is not */
  MPI_TRY(MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, node));
  *cores = CPU_COUNT(&all);
done:
  return error;
}

static int measure(MPI_Comm comm, struct topology *topology) {
  int error = SWP_SUCCESS, rank, node_rank, node_size, cores = 0;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_TRY(MPI_Comm_rank(comm, &rank));
  MPI_TRY(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
  MPI_TRY(MPI_Comm_rank(node, &node_rank));
  MPI_TRY(MPI_Comm_size(node, &node_size));
  TRY(node_cores(node, &cores));
  int leader = node_rank == 0;
  MPI_TRY(MPI_Allreduce(&leader, &topology->nodes, 1, MPI_INT, MPI_SUM, comm));
  MPI_TRY(MPI_Allreduce(&node_size, &topology->ppn, 1, MPI_INT, MPI_MAX, comm));
  topology->oversubscribed = node_size > cores;
done:
  if (node != MPI_COMM_NULL)
    MPI_Comm_free(&node);
  return error;
}

static int forget(MPI_Comm comm, int key, void *attribute, void *extra) {
  (void)comm, (void)key, (void)extra;
  swp_release(attribute);
  return MPI_SUCCESS;
}

/* The attribute's key, made at the first use by whichever thread comes first. */
static int attribute_key(int *key) {
  static atomic_int shared = MPI_KEYVAL_INVALID;
  int error = SWP_SUCCESS, none = MPI_KEYVAL_INVALID, made;
  *key = atomic_load(&shared);
  if (*key != MPI_KEYVAL_INVALID)
    return SWP_SUCCESS;
  MPI_TRY(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &made, NULL));
  if (!atomic_compare_exchange_strong(&shared, &none, made))
    MPI_TRY(MPI_Comm_free_keyval(&made));
  *key = atomic_load(&shared);
done:
  return error;
}

int swp_topology_find(MPI_Comm comm, struct topology *topology) {
  int error = SWP_SUCCESS, key, found = 0;
  struct topology *kept = NULL;
  TRY(attribute_key(&key));
  MPI_TRY(MPI_Comm_get_attr(comm, key, &kept, &found));
  if (found) {
    *topology = *kept;
    return SWP_SUCCESS;
  }
  kept = swp_allocate(1, sizeof *kept, NULL);
  TRY(swp_agree(comm, kept != NULL ? SWP_SUCCESS : swp_fail(SWP_ERR_MEMORY, "no memory for the topology")));
  TRY(measure(comm, kept));
  MPI_TRY(MPI_Comm_set_attr(comm, key, kept));
  *topology = *kept;
  return SWP_SUCCESS;
done:
  swp_release(kept);
  return error;
}
