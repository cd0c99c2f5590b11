/* Communicators of some of a plan's ranks. */
#include "parts.h"

#include "communicator.h"

#include <string.h>

struct part {
  struct part *next;
  struct division division;
  MPI_Comm comm;
};

/* The attribute of a communicator that plans share. */
struct parts {
  struct part *first;
};

static int forget(MPI_Comm comm, int key, void *attribute, void *extra) {
  (void)comm, (void)key, (void)extra;
  struct parts *parts = attribute;
  for (struct part *part = parts->first, *next; part != NULL; part = next) {
    next = part->next;
    MPI_Comm_free(&part->comm);
    swp_release(part);
  }
  swp_release(parts);
  return MPI_SUCCESS;
}

/* Finds the kept parts; at the first use there are none. */
static int find_parts(const struct swp_plan *plan, struct parts **parts) {
  static atomic_int shared_key = MPI_KEYVAL_INVALID;
  int error = SWP_SUCCESS, key, found = 0;
  struct parts *made = NULL;
  TRY(swp_comm_key(&shared_key, forget, &key));
  MPI_TRY(MPI_Comm_get_attr(plan->comm, key, parts, &found));
  if (found)
    return SWP_SUCCESS;
  made = swp_allocate(1, sizeof *made, NULL);
  if (made == NULL)
    return swp_plan_no_memory(plan);
  MPI_TRY(MPI_Comm_set_attr(plan->comm, key, made));
  *parts = made;
  return SWP_SUCCESS;
done:
  swp_release(made);
  return error;
}

static struct part *find(struct part *part, const struct division *division) {
  while (part != NULL &&
         (strcmp(part->division.name, division->name) != 0 || part->division.first != division->first ||
          part->division.second != division->second))
    part = part->next;
  return part;
}

static int split(const struct swp_plan *plan, int color, int order, MPI_Comm *part) {
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Comm_split(plan->comm, color, order, part));
done:
  return error;
}

/* Kept by all ranks or by none, as a rank that has one does not split. */
static int make_kept(const struct swp_plan *plan, const struct division *division, int color, int order,
                     struct parts *parts, MPI_Comm *comm) {
  struct part *made = swp_allocate(1, sizeof *made, NULL);
  int error = swp_agree(plan->comm, made != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan));
  if (error == SWP_SUCCESS) {
    *made = (struct part){.division = *division, .comm = MPI_COMM_NULL};
    error = swp_agree(plan->comm, split(plan, color, order, &made->comm));
  }
  if (error == SWP_SUCCESS) {
    made->next = parts->first;
    parts->first = made;
    *comm = made->comm;
    return SWP_SUCCESS;
  }
  if (made != NULL && made->comm != MPI_COMM_NULL)
    MPI_Comm_free(&made->comm);
  swp_release(made);
  return error;
}

int swp_part_take(struct swp_plan *plan, const struct division *division, int color, int order,
                  MPI_Comm *part) {
  struct parts *parts;
  *part = MPI_COMM_NULL;
  if (!plan->same_comm)
    return swp_agree(plan->comm, split(plan, color, order, part));
  int error = swp_agree(plan->comm, find_parts(plan, &parts));
  if (error != SWP_SUCCESS)
    return error;
  struct part *known = find(parts->first, division);
  if (known == NULL)
    return make_kept(plan, division, color, order, parts, part);
  *part = known->comm;
  return SWP_SUCCESS;
}

int swp_part_take_node(struct swp_plan *plan, MPI_Comm *part) {
  const struct division nodes = {"nodes", plan->hints.ppn, plan->hints.placement};
  return swp_part_take(plan, &nodes, swp_topology_node(plan->topology, plan->rank),
                       swp_topology_local(plan->topology, plan->rank), part);
}

void swp_part_give(const struct swp_plan *plan, MPI_Comm *part) {
  if (*part != MPI_COMM_NULL && !plan->same_comm)
    MPI_Comm_free(part);
  *part = MPI_COMM_NULL;
}
