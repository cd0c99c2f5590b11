/*
 * matrix: the halo of a sparse matrix-vector product. An item is one element of the vector, owned with the
 * row of its number, and needed by each rank that has an entry in its column.
 */
#include "pattern.h"

#include "matrix.h"

#include <stdlib.h>

static int generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  pattern->matrix = allocate_zeros(sizeof *pattern->matrix);
  if (matrix_read(team, spec->file, spec->part, pattern->matrix))
    return -1;
  struct halo halo;
  halo_create(team, pattern->matrix, &halo);
  pattern->nitems = pattern->matrix->partition.nrows;
  pattern->sends = halo.sends;
  pattern->recvs = halo.recvs;
  pattern->halo_columns = halo.columns;
  return 0;
}

const struct pattern_family pattern_matrix = {
    .name = "matrix",
    .summary = "halo of a Matrix Market file's product with a vector",
    .from_file = true,
    .generate = generate,
};
