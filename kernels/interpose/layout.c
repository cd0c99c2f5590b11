/* Where the ranks of a communicator are. */
#include "layout.h"

#include <stdlib.h>

static int world_procs, world_nodes;
static int *node_of; /* rank in MPI_COMM_WORLD; NULL: unknown, as without MPI_Init */

/* The number of nodes, and in *node that of this rank, by the lowest rank on each. */
static bool number_nodes(MPI_Comm comm, int *nodes, int *node, int *ppn) {
  MPI_Comm here;
  int rank, local, size, before = 0;
  PMPI_Comm_rank(comm, &rank);
  if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here) != MPI_SUCCESS)
    return false;
  PMPI_Comm_rank(here, &local);
  PMPI_Comm_size(here, &size);
  int leader = local == 0;
  PMPI_Exscan(&leader, &before, 1, MPI_INT, MPI_SUM, comm);
  *node = rank == 0 ? 0 : before;
  PMPI_Bcast(node, 1, MPI_INT, 0, here);
  PMPI_Allreduce(&leader, nodes, 1, MPI_INT, MPI_SUM, comm);
  PMPI_Allreduce(&size, ppn, 1, MPI_INT, MPI_MAX, comm);
  return PMPI_Comm_free(&here) == MPI_SUCCESS;
}

bool layout_begin(void) {
  int node, ppn;
  PMPI_Comm_size(MPI_COMM_WORLD, &world_procs);
  node_of = malloc((size_t)world_procs * sizeof *node_of);
  return node_of != NULL && number_nodes(MPI_COMM_WORLD, &world_nodes, &node, &ppn) &&
         PMPI_Allgather(&node, 1, MPI_INT, node_of, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS;
}

void layout_end(void) {
  free(node_of);
  node_of = NULL;
}

/* The ranks of the group in MPI_COMM_WORLD, into the second half of `ranks`. */
static bool translate(MPI_Group group, int procs, int *ranks) {
  MPI_Group world;
  if (PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
    return false;
  for (int i = 0; i < procs; i++)
    ranks[i] = i;
  bool done = PMPI_Group_translate_ranks(group, procs, ranks, world, ranks + procs) == MPI_SUCCESS;
  PMPI_Group_free(&world);
  return done;
}

/* Counts nodes and the most ranks on one. False if a rank is unknown, or memory runs out. */
static bool count_nodes(const int *world_ranks, struct swp_layout *layout, bool *unknown) {
  int *counts = calloc((size_t)world_nodes, sizeof *counts);
  for (int i = 0; counts != NULL && i < layout->procs; i++) {
    if (world_ranks[i] == MPI_UNDEFINED) {
      *unknown = true;
      break;
    }
    int count = ++counts[node_of[world_ranks[i]]];
    layout->nodes += count == 1;
    layout->ppn = count > layout->ppn ? count : layout->ppn;
  }
  free(counts);
  return counts != NULL && !*unknown;
}

static bool find_in_world(MPI_Comm comm, struct swp_layout *layout, bool *unknown) {
  MPI_Group group;
  int *ranks = calloc(2 * (size_t)layout->procs, sizeof *ranks);
  bool found = false;
  if (ranks != NULL && PMPI_Comm_group(comm, &group) == MPI_SUCCESS) {
    found = translate(group, layout->procs, ranks) && count_nodes(ranks + layout->procs, layout, unknown);
    PMPI_Group_free(&group);
  }
  free(ranks);
  layout->alone = layout->procs == world_procs;
  return found;
}

/* Asks MPI, on a communicator that is freed again. */
static bool ask(MPI_Comm comm, struct swp_layout *layout) {
  MPI_Comm apart;
  int rank, node;
  PMPI_Comm_rank(comm, &rank);
  layout->nodes = layout->ppn = layout->alone = 0;
  if (PMPI_Comm_split(comm, 0, rank, &apart) != MPI_SUCCESS)
    return false;
  bool found = number_nodes(apart, &layout->nodes, &node, &layout->ppn);
  PMPI_Comm_free(&apart);
  return found;
}

bool layout_find(MPI_Comm comm, struct swp_layout *layout, bool *strangers) {
  *strangers = node_of == NULL;
  *layout = (struct swp_layout){0};
  if (PMPI_Comm_size(comm, &layout->procs) != MPI_SUCCESS)
    return false;
  if (*strangers)
    return ask(comm, layout);
  if (find_in_world(comm, layout, strangers))
    return true;
  layout->procs = 0; /* of a joined job, which may have another table, or none: nothing is dispatched */
  return *strangers;
}
