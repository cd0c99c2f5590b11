/* Communicators of some of a plan's ranks. */
#include "parts.h"

#include <string.h>

/* Of a communicator that plans share, as its attribute. */
struct part {
  struct part *next;
  struct division division;
  MPI_Comm comm;
};

static int forget(MPI_Comm comm, int key, void *attribute, void *extra) {
  (void)comm, (void)key, (void)extra;
  for (struct part *part = attribute, *next; part != NULL; part = next) {
    next = part->next;
    MPI_Comm_free(&part->comm);
    swp_release(part);
  }
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

/* *first is NULL when nothing is kept yet. */
static int find_kept(const struct swp_plan *plan, int *key, struct part **first) {
  int error = SWP_SUCCESS, found = 0;
  *first = NULL;
  TRY(attribute_key(key));
  MPI_TRY(MPI_Comm_get_attr(plan->comm, *key, first, &found));
  if (!found)
    *first = NULL;
done:
  return error;
}

static struct part *find(struct part *part, const struct division *division) {
  while (part != NULL &&
         (strcmp(part->division.name, division->name) != 0 || part->division.first != division->first ||
          part->division.second != division->second))
    part = part->next;
  return part;
}

/* As the second, so that the attribute, which is the first, changes once only. */
static int keep(const struct swp_plan *plan, int key, struct part *first, struct part *made) {
  int error = SWP_SUCCESS;
  if (first == NULL) {
    MPI_TRY(MPI_Comm_set_attr(plan->comm, key, made));
  } else {
    made->next = first->next;
    first->next = made;
  }
done:
  return error;
}

static int split(const struct swp_plan *plan, int color, int order, MPI_Comm *part) {
  int error = SWP_SUCCESS;
  MPI_TRY(MPI_Comm_split(plan->comm, color, order, part));
done:
  return error;
}

/* Kept by all ranks or by none: who has one does not split. */
static int make_kept(const struct swp_plan *plan, const struct division *division, int color, int order,
                     int key, struct part *first, MPI_Comm *comm) {
  struct part *made = swp_allocate(1, sizeof *made, NULL);
  int error = swp_agree(plan->comm, made != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan));
  if (error == SWP_SUCCESS) {
    *made = (struct part){.division = *division, .comm = MPI_COMM_NULL};
    error = swp_agree(plan->comm, split(plan, color, order, &made->comm));
  }
  if (error == SWP_SUCCESS)
    error = keep(plan, key, first, made);
  if (error == SWP_SUCCESS) {
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
  struct part *first;
  int key;
  *part = MPI_COMM_NULL;
  if (!plan->same_comm)
    return swp_agree(plan->comm, split(plan, color, order, part));
  int error = swp_agree(plan->comm, find_kept(plan, &key, &first));
  if (error != SWP_SUCCESS)
    return error;
  struct part *known = find(first, division);
  if (known == NULL)
    return make_kept(plan, division, color, order, key, first, part);
  *part = known->comm;
  return SWP_SUCCESS;
}

void swp_part_give(const struct swp_plan *plan, MPI_Comm *part) {
  if (*part != MPI_COMM_NULL && !plan->same_comm)
    MPI_Comm_free(part);
  *part = MPI_COMM_NULL;
}
