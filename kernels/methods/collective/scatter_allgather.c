/*
 * scatter_allgather: the root's vector is cut in as many pieces as there are ranks, which are scattered along
 * a binomial tree and gathered by all, along a hypercube or around a ring (van de Geijn's broadcast).
 */
#include "blocks.h"
#include "textbook.h"

#include <stdio.h>

enum { HYPERCUBE, RING };

static const char *const allgathers[] = {"hypercube", "ring", NULL};

static bool scatter_allgather_variant(enum swp_operation operation, int index, int procs, char *text,
                                      size_t length) {
  (void)operation, (void)procs;
  if (index > RING)
    return false;
  snprintf(text, length, "scatter_allgather:allgather=%s", allgathers[index]);
  return true;
}

/* The tree has the positions of the fold, or all ranks; a position's pieces begin with this one. */
struct tree {
  const struct fold *fold;
  bool folded;
};

static int first_piece(const struct tree *tree, int position) {
  if (tree->folded)
    return swp_fold_first(tree->fold, position);
  return position < tree->fold->procs ? position : tree->fold->procs;
}

static int rank_at(const struct tree *tree, int position) {
  return (first_piece(tree, position) + tree->fold->root) % tree->fold->procs;
}

/* A subtree's pieces go to its first position. */
static int scatter(struct swp_plan *plan, const struct tree *tree, const struct blocks *pieces,
                   int position) {
  int size = tree->folded ? tree->fold->size : plan->procs, bit = 1, n = 0, error = SWP_SUCCESS;
  MPI_Request requests[31];
  while (bit < size && (position & bit) == 0)
    bit *= 2;
  if (position != 0) {
    int first = first_piece(tree, position);
    TRY(swp_receive(plan, swp_blocks_at(pieces, first),
                    swp_blocks_run(pieces, first, first_piece(tree, position + bit)), pieces->type,
                    rank_at(tree, position - bit)));
  }
  for (bit /= 2; bit > 0; bit /= 2) {
    int child = position + bit, first = first_piece(tree, child);
    if (child < size)
      MPI_TRY(MPI_Isend(swp_blocks_at(pieces, first),
                        swp_blocks_run(pieces, first, first_piece(tree, child + bit)), pieces->type,
                        rank_at(tree, child), COLLECTIVE_TAG, plan->comm, &requests[n++]));
  }
  TRY(swp_complete(plan, n, requests));
done:
  return error;
}

static int scatter_allgather_bcast(struct swp_plan *plan, const void *send, void *recv) {
  static const struct side bytes = {.extent = 1};
  struct fold fold = swp_fold(plan, plan->features.root);
  struct tree tree = {&fold, plan->spec.arguments[0].value == HYPERCUBE};
  int index = (plan->rank - plan->features.root + plan->procs) % plan->procs, error = SWP_SUCCESS;
  int position = tree.folded ? fold.position : index;
  char *image;
  (void)send;
  TRY(swp_image_begin(plan, recv, &image));
  struct blocks pieces = swp_blocks_of_vector(plan, &bytes, image, plan->features.total_bytes);
  pieces.type = MPI_PACKED;
  if (position >= 0)
    TRY(scatter(plan, &tree, &pieces, position));
  if (tree.folded)
    TRY(swp_blocks_hypercube(plan, &pieces, &fold));
  else
    TRY(swp_blocks_ring(plan, &pieces, index));
  TRY(swp_image_end(plan, image, recv));
done:
  return error;
}

static int scatter_allgather_estimate(const struct swp_plan *plan, const struct estimate *estimate,
                                      double *seconds) {
  if (estimate->spec->arguments[0].value == HYPERCUBE)
    return swp_estimate_textbook(plan, estimate, seconds);
  return swp_estimate_formula(plan, estimate, swp_textbook_scatter_ring_s, seconds);
}

const struct method swp_collective_scatter_allgather = {
    .name = "scatter_allgather",
    .summary = "pieces scattered along a binomial tree, and gathered by all",
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, On optimizing collective communication, 2004",
    .usage = "allgather=hypercube|ring (hypercube when not given)",
    .parameters = {{.name = "allgather", .type = PARAMETER_CHOICE, .choices = allgathers}},
    .variant = scatter_allgather_variant,
    .estimate = scatter_allgather_estimate,
    .procedures =
        {
            [SWP_BCAST] = {scatter_allgather_bcast, swp_image_scratch_bytes, swp_image_applicable},
        },
};
